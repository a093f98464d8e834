"""The ZIP codes of each county and state of a key set."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from warehouse.places.names import fold_city
from warehouse.schema.counties import COUNTY_NAMES
from warehouse.schema.states import STATES

FIPS = {state.code: state.fips for state in STATES}  # by code; None for military addresses
# Words at the end of county names, which people often leave out.
_KINDS = ("county", "co", "parish", "borough", "municipio", "municipality", "census", "area", "island")


class Region(msgspec.Struct, frozen=True):
    """A county or a state in one release. Created for each request."""

    query: str  # canonical form, as of a Match
    zip_codes: tuple[str, ...]  # ascending


class Regions:
    """The regions of one area in one open release. Immutable; a `KeySet` holds them."""

    def __init__(self, places: Iterable[tuple[str, str, str | None]], names: Mapping[str, str]) -> None:
        """`places`: ZIP code, state, and five-digit FIPS code of the county or None. `names`: of counties, by code."""
        counties: dict[str, list[str]] = defaultdict(list)
        states: dict[str, list[str]] = defaultdict(list)
        for zip_code, state, county in sorted(places):
            states[state].append(zip_code)
            if county is not None:
                counties[county].append(zip_code)
        self._counties = {code: tuple(counties[code]) for code in sorted(counties)}
        self._states = {code: tuple(states[code]) for code in sorted(states)}
        self._names = names
        self._named: dict[str, list[str]] = defaultdict(list)
        for code, name in sorted({**COUNTY_NAMES, **names}.items()):
            self._named[_folded(name)].append(code)

    @property
    def has_counties(self) -> bool:
        """Whether the release has counties. Older builders did not store them."""
        return bool(self._counties)

    def county(self, code: str) -> Region | None:
        """Looks up a county by its five-digit FIPS code."""
        zip_codes = self._counties.get(code)
        return Region(f"county:{code}", zip_codes) if zip_codes is not None else None

    def counties_named(self, name: str, state_code: str) -> list[str]:
        """Returns the codes of the counties of this name, with or without the word County; of all states if empty."""
        fips = (FIPS.get(state_code) or "none") if state_code else ""
        return [code for code in self._named.get(_folded(name), ()) if code.startswith(fips)]

    def name_of(self, code: str) -> str | None:
        """Returns the name of the county with this code."""
        return self._names.get(code) or COUNTY_NAMES.get(code)

    def state(self, code: str) -> Region | None:
        """Looks up a state by its code, two letters in upper case."""
        zip_codes = self._states.get(code)
        return Region(f"state:{code}", zip_codes) if zip_codes is not None else None


def _folded(name: str) -> str:
    words = name.casefold().removeprefix("county of ").split()
    while len(words) > 1 and words[-1].strip(".") in _KINDS:
        words.pop()
    return fold_city("".join(words))
