"""Names that people type for a whole city, although the postal service lists them for one ZIP code or not at all.

A row applies if the area has no city of the typed name but has the intended one. Each row has its source. Domain names
are those of the cities' own sites. `Census` is a name in the Census Bureau's Gazetteer of places: for consolidated
cities and a few others, it differs from the postal service's.
"""

from collections.abc import Collection, Mapping

import msgspec

from warehouse.places.names import fold_city


class Variant(msgspec.Struct, frozen=True):
    """One name that people type. `meant` are the postal cities that it stands for: for a borough, several."""

    state_code: str
    typed: tuple[str, ...]
    meant: tuple[str, ...]
    source: str


def _one(state_code: str, meant: str, source: str, *typed: str) -> Variant:
    return Variant(state_code, typed, (meant,), source)


_QUEENS = (
    "Arverne", "Astoria", "Bayside", "Bellerose", "Breezy Point", "Cambria Heights", "College Point", "Corona",
    "East Elmhurst", "Elmhurst", "Far Rockaway", "Flushing", "Forest Hills", "Fresh Meadows", "Glen Oaks", "Hollis",
    "Howard Beach", "Jackson Heights", "Jamaica", "Kew Gardens", "Little Neck", "Long Island City", "Maspeth",
    "Middle Village", "Oakland Gardens", "Ozone Park", "Queens Village", "Rego Park", "Richmond Hill", "Ridgewood",
    "Rockaway Park", "Rosedale", "Saint Albans", "South Ozone Park", "South Richmond Hill", "Springfield Gardens",
    "Sunnyside", "Whitestone", "Woodhaven", "Woodside",
)  # fmt: skip

# Folded names whose parts are cities of their own in some sources. There, they stand for all (nyc.gov: boroughs).
BOROUGHS = {("NY", "newyork"): ("bronx", "brooklyn", "manhattan", "queens", "statenisland")}

VARIANTS: tuple[Variant, ...] = (
    _one("NY", "New York", "nyc.gov: the City of New York", "New York City", "NYC", "NY City", "NY"),
    _one("NY", "New York", "nyc.gov: boroughs; its postal city is New York", "Manhattan"),
    _one("NY", "Bronx", "nyc.gov: boroughs", "The Bronx", "Bronx County"),
    _one("NY", "Brooklyn", "nyc.gov: boroughs", "Bklyn", "Kings County"),
    _one("NY", "Staten Island", "nyc.gov: boroughs", "Richmond County"),
    Variant("NY", ("Queens", "Queens County"), _QUEENS, "postal cities whose ZIP codes are all in Queens County"),
    _one("FL", "Saint Petersburg", "stpete.org", "St. Pete", "St. Pete City"),
    _one("FL", "Jacksonville", "jacksonville.gov; visitjacksonville.com", "Jax"),
    _one("FL", "Fort Lauderdale", "visitlauderdale.com", "Lauderdale"),
    _one("UT", "Salt Lake City", "slc.gov", "Salt Lake", "SLC"),
    _one("CA", "Los Angeles", "lacity.gov", "LA", "Los Angeles City"),
    _one("CA", "San Francisco", "sf.gov", "SF", "San Fran"),
    _one("CA", "San Diego", "sandiego.gov", "SD"),
    _one("CA", "Ventura", "Census: San Buenaventura (Ventura)", "San Buenaventura"),
    _one("CA", "Paso Robles", "Census: El Paso de Robles (Paso Robles)", "El Paso de Robles"),
    _one("NV", "Las Vegas", "visitlasvegas.com", "Vegas", "LV"),
    _one("MO", "Kansas City", "kcmo.gov", "KC", "KCMO"),
    _one("KS", "Kansas City", "wycokck.org", "KC", "KCK"),
    _one("OK", "Oklahoma City", "okc.gov", "OKC", "Oklahoma"),
    _one("PA", "Philadelphia", "phila.gov; visitphilly.com", "Philly", "Phila"),
    _one("PA", "Pittsburgh", "pittsburghpa.gov; named Pittsburg from 1891 to 1911", "Pittsburg", "PGH"),
    _one("IN", "Indianapolis", "indy.gov", "Indy", "Indianapolis City"),
    _one("LA", "New Orleans", "nola.gov", "NOLA"),
    _one("NM", "Albuquerque", "cabq.gov", "ABQ"),
    _one("OH", "Cincinnati", "cincinnati-oh.gov; visitcincy.com", "Cincy"),
    _one("GA", "Atlanta", "atlantaga.gov; airport code ATL", "ATL"),
    _one("TX", "Dallas", "dallascityhall.com; airport code DAL", "DAL"),
    _one("MN", "Minneapolis", "minneapolismn.gov; Meet Minneapolis", "Mpls"),
    _one("MI", "Sault Sainte Marie", "saultcity.com", "Sault St Marie", "Soo"),
    _one("ID", "Boise", "Census: Boise City", "Boise City"),
    _one("HI", "Honolulu", "Census: Urban Honolulu", "Urban Honolulu"),
    _one("TN", "Nashville", "Census: Nashville-Davidson", "Nashville-Davidson", "Nashville Davidson County"),
    _one("KY", "Lexington", "Census: Lexington-Fayette", "Lexington-Fayette", "Lexington Fayette County"),
    _one("KY", "Louisville", "Census: Louisville/Jefferson County", "Louisville/Jefferson County", "Louisville Metro"),
    _one("GA", "Athens", "Census: Athens-Clarke County", "Athens-Clarke County", "Athens-Clarke"),
    _one("GA", "Augusta", "Census: Augusta-Richmond County", "Augusta-Richmond County", "Augusta-Richmond"),
    _one("GA", "Macon", "Census: Macon-Bibb County", "Macon-Bibb County", "Macon-Bibb"),
    _one("MT", "Butte", "Census: Butte-Silver Bow", "Butte-Silver Bow"),
    _one("MT", "Anaconda", "Census: Anaconda-Deer Lodge County", "Anaconda-Deer Lodge County"),
    _one("DC", "Washington", "dc.gov", "DC", "District of Columbia", "Washington District of Columbia"),
)


def variants_among(names: Mapping[str, Collection[str]]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Returns the cities behind each name that people type, by state; all folded. `names` are those of all cities."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for variant in VARIANTS:
        known = frozenset(names.get(variant.state_code, ()))
        meant = tuple(name for name in map(fold_city, variant.meant) if name in known)
        for typed in map(fold_city, variant.typed):
            if meant and typed not in known:
                found.setdefault(variant.state_code, {})[typed] = meant
    return found
