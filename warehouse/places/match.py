"""The match of a query in a release, or the reason why it has none."""

import msgspec


class Match(msgspec.Struct, frozen=True):
    """The match of a query in one release. Created for each request."""

    query: str  # canonical form: queries with the same form have the same answer
    keys: tuple[str, ...]  # the keys of its entries
    cities: tuple[str, ...] = ()  # as answers print them, if a name other than their own matched


class UnknownZip(msgspec.Struct, frozen=True):
    """The release has no entry for the ZIP code."""

    zip_code: str


class OtherCity(msgspec.Struct, frozen=True):
    """The ZIP code exists, but not in the requested city or state."""

    zip_code: str
    city: str  # where it is ("Dickinson, AL")


class UnknownCity(msgspec.Struct, frozen=True):
    """The state has no city of that name."""

    city_name: str
    state_code: str
    similar: tuple[str, ...]  # up to three cities of the state with similar names
    states: tuple[str, ...]  # other states with a city of that name; a state at the end of the name comes first
    county: str | None = None  # the five-digit FIPS code of the state's county of that name


NoMatch = UnknownZip | OtherCity | UnknownCity


def part_query(zip_code: str, city: str) -> str:
    """Returns the canonical query for the part of a ZIP code in a city. `city` is the canonical query for the city."""
    return f"zip:{zip_code}+{city}"


def city_query(state_code: str, folded: str) -> str:
    """Returns the canonical query for a city."""
    return f"city:{state_code}:{folded}"
