"""Names of parameters: those of other interfaces and misspelt ones, and how errors and headers show them."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote, quote_plus

from config.text import visible
from service.base.masking import masked
from warehouse.places.similar import nearest

MOST_NAMES = 10  # unknown parameters that are checked, or named in a header
LONGEST = 50  # characters of the caller's text
PLACE = "place"  # of no endpoint: a text that names a place, in whatever form
_MOST_TYPOS = 3
# Names of the same in other interfaces.
_OTHER_NAMES = {
    "zip_code": ("zip", "zips", "zipcodes", "zip5", "zcta", "zcta5", "postalcode", "postcode", "postal", "plz", "zc"),
    "city_name": ("city", "cities", "town", "municipality", "cityname", "placename", "cname", "ciudad", "village",
                  "borough"),
    "state_code": ("state", "states", "st", "statename", "stateabbr", "stateabbreviation", "stateid", "province",
                   "region", "regioncode", "usstate", "stusab"),
    "county_fips_code": ("county", "counties", "fips", "fipscode", "countycode", "countyfips", "geoid", "parish",
                         "countyname"),
    "status_date_from": ("statusdate", "since"),
    "start_date_from": ("startdate", "started", "startedafter"),
    "completion_date_from": ("completiondate", "completedafter"),
    "project_type": ("type", "kind", "category"),
    "limit": ("pagesize", "perpage", "size", "count", "maxresults", "top", "rows", "pagelimit", "max", "first", "n"),
    "cursor": ("page", "offset", "nextcursor", "next", "after", "pagetoken", "nextpagetoken", "skip", "start", "token",
               "continuation", "pagenumber", "startafter"),
    PLACE: ("location", "address", "query", "q", "search", "where", "citystate", "area", "locality", "text", "name",
            "lat", "latitude", "lon", "lng", "long", "longitude", "coordinates", "neighborhood", "metro", "msa"),
}  # fmt: skip


def folded(name: str) -> str:
    return "".join(filter(str.isalnum, name[:LONGEST].casefold()))


def nearest_parameter(name: str, known: Sequence[str]) -> str | None:
    """Returns the known parameter that a name stands for: itself, a synonym, or a misspelling."""
    text = folded(name)
    is_other = name in _OTHER_NAMES and name not in known
    if not text or is_other or (text.startswith("county") and "county_fips_code" not in known):
        return None
    names = {other: one for one in known for other in _OTHER_NAMES.get(one, ())} | {folded(one): one for one in known}
    if text in names:
        return names[text]
    long = {other: one for other, one in names.items() if len(other) > 4 or other == folded(one)}
    near = nearest(text, long, min(_MOST_TYPOS, (len(text) + 1) // 3))
    within = {names[other] for other in long if len(text) > 3 and (other in text or text in other)}
    return names[near] if near is not None else within.pop() if len(within) == 1 else None


def echoed(text: str, longest: int = LONGEST) -> str:
    """Returns the caller's text as an error may repeat it: short and printable, with keys masked."""
    seen = visible(masked(text[:longest]))  # in this order: a key with spaces in it would not be masked
    return "".join(character for character in seen if character.isprintable())


def as_query(parameters: Mapping[str, str]) -> str:
    """Returns the parameters as they are sent."""
    return "&".join(f"{name}={quote_plus(echoed(text), safe=',')}" for name, text in parameters.items())


def as_header(names: Sequence[str]) -> bytes:
    """Returns the first names of parameters as a header may repeat them: ASCII, without a key."""
    shown = dict.fromkeys(quote(echoed(name), safe="[]$@*") for name in names[:MOST_NAMES])
    return ", ".join(shown).encode()
