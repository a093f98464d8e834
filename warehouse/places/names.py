"""Names of cities and states: the spellings of one name folded to one form, and states by any of theirs."""

import unicodedata

from warehouse.schema.states import STATES

# Characters that only some spellings of a name have. Dashes, spaces, accents and invisible characters are dropped by
# their category.
_DROPPED = frozenset("'’‘ʻʼ`´.")
_DROPPED_CATEGORIES = frozenset({"Pd", "Zs", "Mn", "Cf"})
# Applied after spaces are dropped, so that "StLouis", "St. Louis" and "Saint Louis" become the same.
_SHORT_FORMS = (("saint", "st"), ("fort", "ft"), ("mount", "mt"))
# code -> name, then other ways to write it
STATE_NAMES: dict[str, tuple[str, ...]] = {
    "AA": ("Armed Forces Americas",),
    "AE": ("Armed Forces Europe", "Armed Forces Africa", "Armed Forces Canada", "Armed Forces Middle East"),
    "AP": ("Armed Forces Pacific",),
    "AK": ("Alaska",),
    "AL": ("Alabama", "Ala"),
    "AR": ("Arkansas", "Ark"),
    "AS": ("American Samoa",),
    "AZ": ("Arizona", "Ariz"),
    "CA": ("California", "Calif", "Cal", "Cali"),
    "CO": ("Colorado", "Colo"),
    "CT": ("Connecticut", "Conn"),
    "DC": ("District of Columbia", "Washington DC", "Wash DC", "D C"),
    "DE": ("Delaware", "Del"),
    "FL": ("Florida", "Fla"),
    "FM": ("Federated States of Micronesia", "Micronesia"),
    "GA": ("Georgia",),
    "GU": ("Guam",),
    "HI": ("Hawaii",),
    "IA": ("Iowa",),
    "ID": ("Idaho",),
    "IL": ("Illinois", "Ill"),
    "IN": ("Indiana", "Ind"),
    "KS": ("Kansas", "Kans"),
    "KY": ("Kentucky",),
    "LA": ("Louisiana",),
    "MA": ("Massachusetts", "Mass"),
    "MD": ("Maryland",),
    "ME": ("Maine",),
    "MH": ("Marshall Islands",),
    "MI": ("Michigan", "Mich"),
    "MN": ("Minnesota", "Minn"),
    "MO": ("Missouri",),
    "MP": ("Northern Mariana Islands",),
    "MS": ("Mississippi", "Miss"),
    "MT": ("Montana", "Mont"),
    "NC": ("North Carolina", "N Carolina", "N Car"),
    "ND": ("North Dakota", "N Dakota", "N Dak"),
    "NE": ("Nebraska", "Nebr"),
    "NH": ("New Hampshire",),
    "NJ": ("New Jersey", "Jersey"),
    "NM": ("New Mexico", "N Mex"),
    "NV": ("Nevada", "Nev"),
    "NY": ("New York", "New York State"),
    "OH": ("Ohio",),
    "OK": ("Oklahoma", "Okla"),
    "OR": ("Oregon", "Oreg", "Ore"),
    "PA": ("Pennsylvania", "Penna", "Penn"),
    "PR": ("Puerto Rico",),
    "PW": ("Palau",),
    "RI": ("Rhode Island",),
    "SC": ("South Carolina", "S Carolina", "S Car"),
    "SD": ("South Dakota", "S Dakota", "S Dak"),
    "TN": ("Tennessee", "Tenn"),
    "TX": ("Texas", "Tex"),
    "UT": ("Utah",),
    "VA": ("Virginia",),
    "VI": ("Virgin Islands", "US Virgin Islands"),
    "VT": ("Vermont",),
    "WA": ("Washington", "Wash", "Washington State"),
    "WI": ("Wisconsin", "Wis", "Wisc"),
    "WV": ("West Virginia", "W Virginia", "W Va", "West Va"),
    "WY": ("Wyoming", "Wyo"),
}


def fold_city(name: str) -> str:
    """Returns `name` in lower case, without spaces, accents, apostrophes, periods and hyphens.

    Saint, Fort and Mount are abbreviated.
    """
    folded = "".join(
        character
        for character in unicodedata.normalize("NFKD", name)
        if character not in _DROPPED and unicodedata.category(character) not in _DROPPED_CATEGORIES
    ).casefold()
    for long, short in _SHORT_FORMS:
        folded = folded.replace(long, short)
    return folded


def strip_state(name: str, state_code: str) -> str:
    """Returns `name` without a trailing ``, ST`` that repeats `state_code`. People copy it from answers."""
    head, comma, tail = name.rpartition(",")
    return head.strip() if comma and tail.strip().upper() == state_code else name


_CODES = {fold_city(name): code for code, names in STATE_NAMES.items() for name in names}
_NUMBERS = {state.fips: state.code for state in STATES if state.fips is not None}
# Letters that may differ: enough for typing errors, too few to confuse two states.
_MOST_TYPOS = 2
_SHORTEST_MISSPELT = 5


def state_of(text: str) -> str | None:
    """Returns the code of the state in `text`: a name, an abbreviation, a code (``US-CA``, ``C.A.``) or FIPS number."""
    folded = fold_city(text).removeprefix("us") if text[:2].upper() == "US" else fold_city(text)
    if folded.upper() in STATE_NAMES:
        return folded.upper()
    return _CODES.get(folded) or _CODES.get(fold_city(text)) or _NUMBERS.get(folded.zfill(2) if folded else "")


def nearest_state(text: str) -> str | None:
    """Returns the same as `state_of`, and also accepts misspelt names. The cost is the same for any parameter."""
    known = state_of(text)
    if known is not None:
        return known
    folded = fold_city(text)
    if len(folded) < _SHORTEST_MISSPELT:
        return None
    # here, because drops are read without it
    from warehouse.places.similar import nearest

    return _CODES.get(nearest(folded, _CODES, _MOST_TYPOS) or "")
