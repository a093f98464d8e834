"""Suggests how to correct the parameters of a query.

No hint reads data. A value may be as long as the address, so only its beginning is read, and a long one costs no more
than a short one.
"""

import re
from calendar import monthrange
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from urllib.parse import quote_plus, unquote

from rapidfuzz import process
from rapidfuzz.distance import OSA

from config.text import invisible_in, visible
from service.base.masking import has_key, is_key_name, masked
from warehouse.places.names import STATE_NAMES, nearest_state, state_of
from warehouse.places.spellings import split_state

_FORECAST = "/v1/population-housing-forecast"
BY_COUNTY = f"{_FORECAST}/by-county"
SEVERAL = f"Give it once, or ask for several forecasts at {_FORECAST}/batch."
_SHOWN = 50  # characters of the caller's text
_MOST_NAMES = 10  # unknown parameters that are checked
_MOST_TYPOS = 3
# Names of the same in other interfaces.
_OTHER_NAMES = {
    "zip_code": ("zip", "zips", "zipcodes", "zip5", "zcta", "zcta5", "postalcode", "postcode", "postal", "plz", "zc"),
    "city_name": ("city", "cities", "town", "municipality", "cityname", "placename", "cname", "ciudad"),
    "state_code": ("state", "states", "st", "statename", "stateabbr", "stateabbreviation", "stateid", "province",
                   "region", "regioncode", "usstate", "stusab"),
    "county_fips_code": ("county", "fips", "fipscode", "countycode", "countyfips", "geoid"),
    "status_date_from": ("statusdate", "since"),
    "start_date_from": ("startdate", "started", "startedafter"),
    "completion_date_from": ("completiondate", "completedafter"),
    "limit": ("pagesize", "perpage", "size", "count", "maxresults", "top", "rows", "pagelimit", "max", "first", "n"),
    "cursor": ("page", "offset", "nextcursor", "next", "after", "pagetoken", "nextpagetoken", "skip", "start", "token",
               "continuation", "pagenumber"),
}  # fmt: skip
_PLACES = ("location", "place", "address", "query", "q", "search", "where", "citystate", "area", "locality", "text")
_UNSET = ("undefined", "null", "none", "nan", "nil", "na", "n/a", "[object object]", "true", "false")
_PLACEHOLDER = re.compile(r"[{<$%].*[}>A-Z_%]|:[a-z_]+")
_PADDED = "".maketrans("OoIlL", "00111")
_DIGITS = re.compile(r"[0-9]+")
_QUOTED_ZIP = re.compile(r"[\"']?[0-9]{4,5}[\"']?")
# A ZIP code after or before its city or address.
_ADDRESS = re.compile(
    r".*[A-Za-z].*?(?<![0-9])([0-9]{5})(?:-[0-9]{4})?|([0-9]{5})(?:-[0-9]{4})?[,\s]+[A-Za-z .,]+", re.DOTALL
)
_FIRST_ZIP = "00501"
_COUNTY = re.compile(r"[0-9]{5}")
_AROUND_COUNTY = re.compile(r"^0500000US|^US|[\"'\s-]|\.0*$")
_NEXT_PARAMETER = re.compile(r"[&?;](?=[a-z_]+=)")
_LISTED = re.compile(r"[\s,;|]+")
_YEAR_FIRST = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})(?:[T ].*)?")
_DIGITS_OF_A_DAY = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:[T ].*)?")
_MONTH = re.compile(r"([0-9]{4})[-/.]?([0-9]{1,2})")
_YEAR_LAST = re.compile(r"([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4})")


def echoed(text: str) -> str:
    """Returns the caller's text as an error may repeat it: short and printable, with keys masked."""
    seen = visible(masked(text[:_SHOWN]))  # in this order: a key with spaces in it would not be masked
    return "".join(character for character in seen if character.isprintable())


def nearest_parameter(name: str, known: Sequence[str]) -> str | None:
    """Returns the known parameter that an unknown name stands for: a synonym, or a misspelling."""
    folded = _folded(name)
    elsewhere = name in _OTHER_NAMES and name not in known
    if elsewhere or (folded.startswith("county") and "county_fips_code" not in known):
        return None
    for parameter in known:
        if folded == _folded(parameter) or folded in _OTHER_NAMES.get(parameter, ()):
            return parameter
    names = {_folded(parameter): parameter for parameter in known}
    names |= {other: parameter for parameter in known for other in _OTHER_NAMES.get(parameter, ()) if len(other) > 4}
    found = process.extractOne(
        folded, list(names), scorer=OSA.distance, score_cutoff=min(_MOST_TYPOS, (len(folded) + 1) // 3)
    )
    if found is not None:
        return names[found[0]]
    within = (parameter for text, parameter in names.items() if len(folded) > 3 and (text in folded or folded in text))
    return next(within, None)


def suggest_parameters(unknown: Sequence[tuple[str, str]], known: Sequence[str]) -> str | None:
    """Returns the hint for unknown parameters, with their values; None if no known parameter is similar."""
    if (key := warn_of_key(unknown)) is not None:
        return key
    zip_codes = (value for name, value in unknown[:_MOST_NAMES] if nearest_parameter(name, ("zip_code",)) is not None)
    several = [zip_code for value in zip_codes for zip_code in listed_in(value)]
    if len(several) > 1 and "zip_code" in known:
        asked = "&".join(f"zip_code={zip_code}" for zip_code in several[:2])
        one = f"There is no parameter {echoed(unknown[0][0])}. Send zip_code={several[0]}"
        return f"{one}, or all to {_FORECAST}/batch?{asked}"
    named: list[str] = []
    suggested: dict[str, str] = {}
    for name, value in unknown[:_MOST_NAMES]:
        corrected = _guess_parameters(name, value, known)
        if corrected:
            named.append(echoed(name))
            suggested |= {parameter: text for parameter, text in corrected.items() if parameter not in suggested}
    if not suggested:
        return None
    subject = f"There is no parameter {named[0]}" if len(named) == 1 else f"There are no parameters {', '.join(named)}"
    for name, _ in unknown[:_MOST_NAMES]:
        if invisible_in(name) or not name.isprintable():
            subject = f"A parameter's name contains {invisible_in(name) or 'an unprintable character'}"
            break
    return f"{subject}: did you mean {as_query(suggested)}?"


def warn_of_key(unknown: Sequence[tuple[str, str]]) -> str | None:
    """Returns the hint for an API key among unknown parameters; None if there is none."""
    if any(is_key_name(name) or has_key(value) for name, value in unknown[:_MOST_NAMES]):
        return "An API key belongs in the header x-api-key; in the address, logs keep it: ask for a new one."
    return None


def suggest_region(state_code: str | None, unknown: Sequence[tuple[str, str]]) -> str | None:
    """Returns where to find a whole state or county, if the query names no more than that."""
    for name, value in unknown[:_MOST_NAMES]:
        if nearest_parameter(name, ("county_fips_code",)) is not None:
            if _COUNTY.fullmatch(value):
                return f"All of a county: {BY_COUNTY}?county_fips_code={value}"
            return f"All of a county: {BY_COUNTY}, with its five digits, which every answer names."
    code = nearest_state(state_code) if state_code is not None else None
    return f"All of a state: {_FORECAST}/by-state?state_code={code}" if code else None


def listed_in(text: str) -> list[str]:
    """Returns the first ZIP codes of a list."""
    return list(filter(None, map(zip_in, _LISTED.split(text[: 2 * _SHOWN])[:_MOST_NAMES])))


def as_query(parameters: Mapping[str, str]) -> str:
    """Returns the parameters as they are sent; without a value where it is empty."""
    return "&".join(f"{name}={quote_plus(text, safe=',')}" if text else name for name, text in parameters.items())


def _guess_parameters(name: str, value: str, known: Sequence[str]) -> dict[str, str]:
    """Returns the parameters that one unknown parameter stands for, with their values; empty if none does."""
    name = name.removeprefix("amp;").lstrip("?&")
    if not value:
        name, _, value = name.partition(":")
    parameter = nearest_parameter(name, known)
    if parameter is not None:
        return {parameter: value_of(parameter, value.strip())}
    if _folded(name) in _PLACES:
        return place_in(value)
    return {}


def value_of(parameter: str, value: str) -> str:
    """Returns the value that a text probably stands for, as an error may suggest it; empty if there is none."""
    if parameter == "state_code":
        value = nearest_state(value) or value
    elif parameter == "zip_code":
        value = zip_in(value) or value
    elif parameter == "cursor" or (parameter == "county_fips_code" and not _COUNTY.fullmatch(value)):
        return ""  # a page number is not a cursor, and a name not a code
    return echoed(value)


def place_in(text: str) -> dict[str, str]:
    """Returns the parameters for a place in one text: a ZIP code, or a city with its state."""
    zip_code = zip_in(text)
    if zip_code is not None:
        return {"zip_code": zip_code}
    split = _city_in(text[: 2 * _SHOWN])
    return {"city_name": echoed(split[0]), "state_code": split[1]} if split else {}


def _city_in(text: str) -> tuple[str, str] | None:
    """Returns the city and state code that `text` ends with. For an address, only if a comma precedes the city."""
    split = split_state(text)
    if split is None or not any(map(str.isdigit, split[0])):
        return split
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) > 1 and state_of(parts[-1]) is not None:
        parts.pop()
        found = (parts[-1], split[1])
    else:
        found = split_state(parts[-1]) or (parts[-1], split[1])
    return found if len(parts) > 1 and not any(map(str.isdigit, found[0])) else None


def zip_in(text: str) -> str | None:
    """Returns the ZIP code in `text`, if any: without its leading zeros, as a number, in quotes, after a state."""
    bare = visible(unquote(text[: 2 * _SHOWN])).strip().strip("\"'`“”‘’[](){}#;,.* ")
    bare = re.sub(r"^(zip ?code|zip|[A-Za-z]{2})[\s:=-]+(?=[0-9OoIl])", "", bare, flags=re.IGNORECASE)
    if bare.isdecimal() and not bare.isascii():  # other scripts' digits
        bare = "".join(str(int(digit)) for digit in bare)
    if re.fullmatch(r"[0-9]{3,5}\.0*", bare):
        bare = bare.partition(".")[0]
    if re.fullmatch(r"[0-9]\.[0-9]{1,4}[eE]\+?0?4", bare):
        bare = str(round(float(bare)))
    if re.fullmatch(r"[0-9]{1,2},[0-9]{3}", bare):
        bare = bare.replace(",", "")
    address = _ADDRESS.fullmatch(bare)
    if address is not None:
        return address[1] or address[2]
    parts = [part for part in re.split(r"[\s\u2010-\u2015\u2212_.+/-]+", bare) if part]
    if len(parts) == 2 and len(parts[0]) in (4, 5) and all(map(_DIGITS.fullmatch, parts)) and len(parts[1]) <= 4:
        return parts[0].zfill(5)
    if len(parts) > 1 and len("".join(parts)) != 5:
        return None
    joined = "".join(parts).translate(_PADDED) if any(map(str.isdigit, bare)) else ""
    if not _DIGITS.fullmatch(joined):
        return None
    found = joined.zfill(5) if len(joined) <= 5 else joined.zfill(9)[:5] if len(joined) in (8, 9) else ""
    return found if found >= _FIRST_ZIP else None


def suggest_zip(text: str) -> str:
    """Returns how to correct an invalid `zip_code`."""
    unset = _unset(text)
    if unset:
        return unset
    several = [part for part in _LISTED.split(text.strip("[]() ")) if part]
    is_plus_four = [len(part) for part in several] == [5, 4]
    if len(several) > 1 and not is_plus_four and all(map(_QUOTED_ZIP.fullmatch, several)):
        first = next((f", zip_code={zip_code}" for zip_code in map(zip_in, several) if zip_code is not None), "")
        return f"Ask for one at a time{first}, or for several forecasts at {_FORECAST}/batch."
    if re.fullmatch(r"[0-9]{1,4}[xX*%_?]+", text):
        return "Parts of ZIP codes are not searched for. Give all five digits, or city_name and state_code."
    if "?" in text or "=" in text:
        head = zip_in(re.split(r"[?;=&]", text)[0])
        return f"Put & between parameters{f': zip_code={head}&...' if head else ''}."
    suggested = zip_in(text)
    if suggested is not None:
        return f"Did you mean {suggested}?"
    if re.fullmatch(r"[A-Za-z][0-9][A-Za-z] ?[0-9][A-Za-z][0-9]", text):
        return "It is a Canadian postal code; there are figures for the United States only."
    place = _city_in(text)
    if place is not None:
        return f"Did you mean {as_query({'city_name': echoed(place[0]), 'state_code': place[1]})}?"
    if re.match(r"[0-9]+ [A-Za-z]", text):
        return "If it is an address, send its ZIP code, or its city as city_name with state_code."
    if any(map(str.isalpha, text)) and not any(map(str.isdigit, text)):
        return f"If it is a city, send city_name={quote_plus(echoed(text))} with state_code."
    return "Give five digits, leading zeros included, like 36436."


def suggest_county(text: str) -> str:
    """Returns how to correct an invalid `county_fips_code`."""
    bare = _AROUND_COUNTY.sub("", text)
    if not (bare.isascii() and bare.isdigit()):
        return "Give two digits for the state and three for the county, like 01025: answers name it county_fips_code."
    if len(bare) in (4, 5):
        return f"Did you mean {bare.zfill(5)}?"
    if len(bare) < 4:
        return f"Put the two digits of its state before the three of the county, like 01{bare.zfill(3)} in Alabama."
    return "Give two digits for the state and three for the county, without a tract or block."


def suggest_separator(name: str, text: str) -> str | None:
    """Returns the hint if `text` contains further parameters because their separator was percent-encoded."""
    head, *rest = _NEXT_PARAMETER.split(text, maxsplit=1)
    if not rest:
        return None
    return f"Separate parameters by &, not percent-encoded: {as_query({name: echoed(head)})}&{echoed(rest[0])}"


def suggest_day(name: str, text: str) -> str:
    """Returns how to correct an invalid day; `name` is its parameter.

    For a month, that is the first day, or the last where a period ends. If day and month are ambiguous, both readings
    are named.
    """
    days = _days_in(text.strip(), at_end=name == "to" or name.endswith("_to"))
    return f"Did you mean {' or '.join(days)}?" if days else "Give one like 2026-11-01."


def _days_in(text: str, *, at_end: bool) -> list[str]:
    for pattern in (_YEAR_FIRST, _DIGITS_OF_A_DAY):
        whole = pattern.fullmatch(text)
        if whole is not None:
            return _existing(whole.groups())
    month = _MONTH.fullmatch(text)
    if month is not None and 1 <= int(month[2]) <= 12:
        last = monthrange(int(month[1]), int(month[2]))[1] if int(month[1]) else 1
        return _existing((*month.groups(), str(last if at_end else 1)))
    turned = _YEAR_LAST.fullmatch(text)
    if turned is None:
        return []
    first, second, year = turned.groups()
    found = [*_existing((year, first, second)), *_existing((year, second, first))]
    return list(dict.fromkeys(found))


def _existing(parts: Sequence[str]) -> list[str]:
    with suppress(ValueError):
        return [str(date(*map(int, parts)))]
    return []


def suggest_state(text: str, city_name: str | None) -> str:
    """Returns how to correct a `state_code` that is not two letters."""
    unset = _unset(text)
    if unset:
        return unset
    code = nearest_state(text.strip("\"'`“”‘’[](){}<>#.,; "))
    if code is not None:
        return f"Did you mean {code} ({STATE_NAMES[code][0]})?"
    if city_name is not None and city_name.upper() in STATE_NAMES:
        return f"Did you mean {as_query({'city_name': echoed(text), 'state_code': city_name.upper()})}?"
    split = split_state(text)
    if split is not None:
        return f"Did you mean {as_query({'city_name': echoed(split[0]), 'state_code': split[1]})}?"
    if "?" in text or "=" in text:
        return "Put & between parameters."
    return "Give one like AL."


def _unset(text: str) -> str | None:
    bare = text.strip()
    if bare.casefold() in _UNSET:
        return f"It says {bare}: a variable of your program is probably not set."
    if _PLACEHOLDER.fullmatch(bare):
        return f"{echoed(bare)} is a placeholder that your program did not replace."
    return None


def _folded(name: str) -> str:
    return "".join(filter(str.isalnum, name[:_SHOWN].casefold()))
