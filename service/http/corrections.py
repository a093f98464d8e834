"""Corrects a query that failed: reads all its parameters together, and offers only queries that the release answers."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import unquote_to_bytes

from rapidfuzz.distance import OSA

from config.text import visible
from service.base.masking import has_key, is_key_name
from service.http.suggestions import COORDINATES, PARTIAL_ZIP, city_in, county_in, encoded_in, unset_in, zips_in
from service.request.errors import ApiError
from service.request.parameters import LONGEST, MOST_NAMES, PLACE, echoed, nearest_parameter
from warehouse.places.keyset import KeySet, Zip
from warehouse.places.match import Match, UnknownCity
from warehouse.places.names import STATE_NAMES, fold_city, nearest_state, state_of, strip_state
from warehouse.places.regions import FIPS
from warehouse.schema.counties import related_counties

COUNTY = "county_fips_code"
OF_PLACES = ("zip_code", "city_name", "state_code", COUNTY, PLACE)
_KEPT_OUT = (*OF_PLACES, "cursor")  # of a correction, which is the first page of its place
_CODES = {fips: code for code, fips in FIPS.items()}
_MOST_OFFERS, _MOST_COUNTIES = 3, 6  # of one kind
_WORDS = re.compile(r"(?!(?:zip|zipcode|code|and|or|usa?)\b)\b[^\W\d_]{2,}", re.IGNORECASE)
_LONGEST_LIST = 700  # characters: a hundred ZIP codes
_NEXT_PARAMETER = re.compile(r"[&?;](?=[A-Za-z_]+[=:])")
_REGION = re.compile(
    r"(?:(?:new|upper|lower|central|pacific|mid|deep|greater|the) )*(?:england|midwest|north|south|east|west|northeast"
    r"|northwest|southeast|southwest|.* (?:area|region|coast|metro|msa))|mid-?atlantic|sun ?belt|rust ?belt|appalachia"
    r"|long island|hampton roads|silicon valley|inland empire|hudson valley|cape cod|twin cities|(?:north|south) jersey"
    r"|(?:south|east) bay|outer banks|(?:(?:north|south|east|west)ern|central|upstate|downstate) "
    rf"(?:{'|'.join(name for names in STATE_NAMES.values() for name in names)})",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\s*[,;|/&]\s*|\s+and\s+")
_MOST_CITIES = 6  # that are looked up: each costs a third of a millisecond if it is not there
# Values of state_code that name another country, whose places may have the names of ours.
_ABROAD = re.compile(
    r"AB|BC|MB|NB|NL|NS|NT|NU|ON|PE|QC|SK|YT|UK|MX|FR|GB|JP|CN|AU|BR|ES|canada|alberta|british columbia|ontario"
    r"|manitoba|qu[eé]bec|mexico|united kingdom|england|scotland|ireland|france|germany|spain|italy|japan|china|india"
    r"|australia|brazil|vic|nsw",
    re.IGNORECASE,
)
_LED_ABROAD = re.compile(rf".*, *(?:{_ABROAD.pattern})", re.IGNORECASE)
# Of Canada, Germany and its neighbours, the United Kingdom and the Netherlands.
_FOREIGN_ZIP = re.compile(
    r"[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]|[A-Z]-[0-9]{4,5}|[A-Z]{1,2}[0-9][A-Z0-9]? ?[0-9][A-Z]{2}|[0-9]{4} [A-Z]{2}",
    re.IGNORECASE,
)
NEXT_PAGE = "Send the next_cursor of this page as the cursor of the next."
# Texts that name no place, and what to request instead; {regions} are the endpoints for counties and states.
_ADVICE = (
    (re.compile(r"[*%?]+|all|any|every|everything|usa?|united states|nation(?:al|wide)?", re.IGNORECASE),
     "One request answers one place.{regions}"),
    (re.compile(r"[0-9]{5}\s*(?:-|–|\.\.+|:|to)\s*[0-9]{5}", re.IGNORECASE),
     "Ranges match nothing. Send each ZIP code.{regions}"),
    (PARTIAL_ZIP, "Parts of ZIP codes match nothing. Give all five digits.{regions}"),
    (_FOREIGN_ZIP, "It is a postal code of another country; there are figures for the United States only."),
    (_ABROAD, "It is not in the United States, and there are no figures for other countries."),
    (_LED_ABROAD, "It is not in the United States, and there are no figures for other countries."),
    (_REGION, "It is no city or state.{regions}"),
    (COORDINATES, "Coordinates match nothing. Give the ZIP code, or city_name and state_code."),
    (re.compile(r"(?:P\.? ?O\.? box|[0-9]+ [A-Za-z]).*", re.IGNORECASE | re.DOTALL),
     "If it is an address, give its ZIP code alone, or its city as city_name with state_code."),
)  # fmt: skip

Parameters = dict[str, str]
# Returns the request for a place, with further parameters, as an error shows it; None if the release has no answer.
Offer = Callable[[Parameters, Parameters], str | None]
Texts = Mapping[str, Sequence[str]]  # by the parameter that each was probably meant for


def correct(
    query: bytes, error: ApiError, known: Sequence[str], keys: KeySet, offer: Offer, regions: str
) -> str | None:
    """Returns the remedy for a failed query: its likely corrections, or advice on its values; None without any.

    `known` are the endpoint's parameters; `regions` says how to request more than a place.
    """
    pairs = list(_pairs_in(query))
    if (warning := warn_of_key(pairs)) is not None:
        return warning
    names = (*known, *OF_PLACES)
    read = [(name, name if name in known else nearest_parameter(name, names), value) for name, value in pairs]
    for name, parameter, value in read:
        remedy = unset_in(name, value) if value or error.code == "missing_parameter" else None
        if parameter is not None and remedy is not None:
            return remedy
    misnamed = {parameter for name, parameter, _ in read if name not in known}
    is_other = error.parameter in known and error.parameter not in OF_PLACES
    if is_other or (error.code == "unknown_parameter" and misnamed == {None}):
        return None
    texts, notes = _texts_of(read)
    others = {one: value for _, one, value in read if one is not None and one in known and one not in _KEPT_OUT}
    offers: dict[str, None] = {}
    for place in _places_in(texts, keys, prefers_county=COUNTY in known) if misnamed != {"cursor"} else ():
        shown = offer(place, others)
        name_of_county = keys.regions.name_of(place[COUNTY]) if COUNTY in place else None
        if shown is not None:
            offers[shown if name_of_county is None else f"{shown} ({name_of_county})"] = None
        if len(offers) > _MOST_OFFERS or (shown is not None and "zip_codes" in place):
            break
    advice = f"Did you mean {' or '.join(offers)}?" if offers else _advice_on(texts, keys, regions)
    states = tuple(_states_in(texts))
    if offers and states and all(one.startswith("city_name=") and not one.endswith(states) for one in offers):
        advice = f"{advice} If it is a neighborhood, send its ZIP code."
    return " ".join([*notes, *([NEXT_PAGE] if "cursor" in misnamed else []), *([advice] if advice else [])]) or None


def warn_of_key(pairs: Sequence[tuple[str, str]]) -> str | None:
    """Returns the hint for an API key among parameters; None if there is none."""
    if any(is_key_name(name) or has_key(value) for name, value in pairs[:MOST_NAMES]):
        return "An API key belongs in the header x-api-key; in the address, logs keep it: ask for a new one."
    return None


def _pairs_in(query: bytes) -> Iterator[tuple[str, str]]:
    """Yields names and values, also of parameters whose separator is part of a value."""
    for pair in query.split(b"&")[:MOST_NAMES]:
        text = unquote_to_bytes(pair.replace(b"+", b" ")).decode("utf-8", "replace")
        for part in _NEXT_PARAMETER.split(text):
            name, _, value = part.partition("=") if "=" in part else part.partition(":")
            name = "".join(filter(str.isprintable, visible(name))).removeprefix("amp;").lstrip("?&")
            value = visible(value)[:_LONGEST_LIST].strip()
            value = value.strip("\"'`“”‘’") or value
            if name:
                yield name, value


def _texts_of(read: Sequence[tuple[str, str | None, str]]) -> tuple[Texts, list[str]]:
    """Returns the texts that name a place, decoded, by parameter; and how some were encoded once too often."""
    texts, notes = defaultdict[str, list[str]](list), []
    for name, parameter, value in read:
        if parameter in OF_PLACES and value:
            encoded = encoded_in(value)
            texts[parameter].append(value if encoded is None else encoded[1])
            notes += [f"The value of {echoed(name)} {encoded[0]}."] if encoded is not None else []
    return texts, notes


def _places_in(texts: Texts, keys: KeySet, *, prefers_county: bool) -> Iterator[Parameters]:
    """Yields the places that the texts name together, the likeliest first."""
    if prefers_county:
        yield from _counties_in([*texts[COUNTY], *texts[PLACE]], texts, keys)
    written = [text for name in OF_PLACES if name != COUNTY for text in texts[name]]
    ours = [text for text in written if _FOREIGN_ZIP.fullmatch(text) is None]
    zip_codes = [code for text in ours for code in zips_in(text) if _agrees(text, keys.entry(code))]
    if len(set(zip_codes)) > 1:
        yield {"zip_codes": ",".join(zip_codes)}
    for zip_code in zip_codes:
        if prefers_county and (known := keys.entry(zip_code)) is not None and known.county is not None:
            yield {COUNTY: known.county}
        yield {"zip_code": zip_code}
    yield from _cities_in(texts, keys)
    if not prefers_county and not texts["city_name"]:
        yield from _counties_in(texts[COUNTY], texts, keys)
    if not any(texts[name] for name in ("zip_code", "city_name", COUNTY)) and not (
        texts[PLACE] and texts["state_code"]
    ):
        yield from ({"state_code": code} for code in _states_in(texts))


def _agrees(text: str, known: Zip | None) -> bool:
    """Returns whether the words around a ZIP code in a text may be its place."""
    words = _WORDS.findall(text[: 2 * LONGEST])
    if known is None or not words or known.state_code in map(state_of, words):
        return known is not None
    return fold_city(strip_state(known.city, known.state_code)) in fold_city("".join(words))


def _states_in(texts: Texts) -> list[str]:
    listed = [one for text in texts["state_code"] for one in (text, *_LISTED.split(text))]
    found = [nearest_state(text.strip("\"'`“”‘’[](){}<>#.,; ")) for text in (*listed, *texts[PLACE])]
    return list(dict.fromkeys(code for code in found if code is not None))


def _cities_in(texts: Texts, keys: KeySet) -> Iterator[Parameters]:
    """Yields cities as they were named, then those of the same name in other states, then those of similar names."""
    codes = _states_in({**texts, PLACE: ()})
    names = [text[: 2 * LONGEST] for name in ("city_name", PLACE, "zip_code") for text in texts[name]]
    if any(map(_ABROAD.fullmatch, texts["state_code"])) or any(map(_LED_ABROAD.fullmatch, names)):
        return
    if not codes:  # city and state may be exchanged
        codes = [code for text in texts["city_name"] if (code := state_of(text)) is not None]
        names += [text for text in texts["state_code"] if codes or city_in(text) is not None]
    cities = dict.fromkeys(split for name in names if (split := city_in(name)) is not None)
    for name in names:
        split = city_in(name)
        written = [name, *([split[0]] if split is not None else []), *_LISTED.split(name)]
        cities |= dict.fromkeys((one, code) for code in codes for one in written if not any(map(str.isdigit, one)))
    found = {place: keys.resolve(None, *place) for place in list(cities)[:_MOST_CITIES]}
    exact = [place for place, match in found.items() if isinstance(match, Match)]
    yield from ({"city_name": city, "state_code": code} for city, code in exact)
    yield from ({"state_code": code} for name in names for code in codes if not exact and state_of(name) == code)
    if exact or any(map(_REGION.fullmatch, names)):
        return
    misses = [miss for miss in found.values() if isinstance(miss, UnknownCity)]
    counties = [miss.county for miss in misses if miss.county is not None]
    yield from ({COUNTY: one} for county in counties for one in (county, *related_counties(county)))
    elsewhere = [(name, state) for name in names for state in keys.states_with(name)] if not codes else []
    elsewhere += [(miss.city_name, state) for miss in misses for state in miss.states]
    if len({state for _, state in elsewhere}) <= _MOST_OFFERS:
        yield from ({"city_name": city, "state_code": code} for city, code in elsewhere)
    for miss in misses:
        for label in miss.similar if miss.county is None and state_of(miss.city_name) != miss.state_code else ():
            city = strip_state(label, miss.state_code)
            # any more different, and the same name in another state is likelier
            if not elsewhere or OSA.distance(fold_city(city), fold_city(miss.city_name)) == 1:
                yield {"city_name": city, "state_code": miss.state_code}


def _counties_in(named: Sequence[str], texts: Texts, keys: KeySet) -> Iterator[Parameters]:
    """Yields counties by their codes, then those that have the area of a code, then those of a name."""
    states = _states_in(texts)
    for text in (one for each in named for one in (_LISTED.split(each) if each[:1].isdigit() else [each])):
        code = county_in(text)
        split = city_in(text)
        if code is not None:
            place = keys.entry(code)  # a ZIP code
            found = [code, *([place.county] if place is not None and place.county is not None else [])]
        elif text.isdigit():
            found = [f"{FIPS[state]}{text.zfill(3)}" for state in states if FIPS[state] is not None and len(text) < 4]
        elif split is not None:
            found = keys.regions.counties_named(*split)
        else:
            found = [one for state in states or ("",) for one in keys.regions.counties_named(text, state)]
            found = found if len(found) <= _MOST_OFFERS else []
        yield from ({COUNTY: one} for each in found[:_MOST_COUNTIES] for one in (each, *related_counties(each)))


def _advice_on(texts: Texts, keys: KeySet, regions: str) -> str | None:
    """Returns what to do about texts that name no place of the release; None if they say nothing."""
    for name in OF_PLACES:
        for text in texts[name]:
            advice = next((advice for pattern, advice in _ADVICE if pattern.fullmatch(text)), None)
            if advice is not None and not (name == COUNTY and text[:1].isdigit()):
                return advice.format(regions=regions)
    for text in (*texts["city_name"], *texts[PLACE], *texts["zip_code"]):
        states = keys.states_with((city_in(text) or (text,))[0])
        if states:
            return f"There is a city of that name in {', '.join(states)}: send its state_code."
    found = [one for text in texts[COUNTY] for one in keys.regions.counties_named(text, "")]
    return f"It is a county in {', '.join(_CODES[one[:2]] for one in found)}: add its state." if found else None
