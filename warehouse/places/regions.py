"""The counties and states of a key set: which ZIP codes each has."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

import msgspec

_SIMILAR = 3


class Region(msgspec.Struct, frozen=True):
    """A county or a state in one release. Made for each request."""

    query: str  # canonical form, as of a Match
    zip_codes: tuple[str, ...]  # ascending


class UnknownRegion(msgspec.Struct, frozen=True):
    """The release has no ZIP code in the region."""

    code: str
    similar: tuple[str, ...]  # up to three of the codes that there are: of a county, those next to it in its state


class Regions:
    """The regions of one area in one open release. Immutable; a `KeySet` holds them."""

    def __init__(self, places: Iterable[tuple[str, str, str | None]]) -> None:
        """`places`: ZIP code, state, and five-digit FIPS code of the county if there is one."""
        counties: dict[str, list[str]] = defaultdict(list)
        states: dict[str, list[str]] = defaultdict(list)
        for zip_code, state, county in sorted(places):
            states[state].append(zip_code)
            if county is not None:
                counties[county].append(zip_code)
        self._counties = {code: tuple(counties[code]) for code in sorted(counties)}
        self._codes = list(self._counties)
        self._states = {code: tuple(states[code]) for code in sorted(states)}

    @property
    def has_counties(self) -> bool:
        """False also in a release of a builder that did not keep them."""
        return bool(self._counties)

    def county(self, code: str) -> Region | UnknownRegion:
        """`code`: five digits."""
        zip_codes = self._counties.get(code)
        if zip_codes is not None:
            return Region(f"county:{code}", zip_codes)
        at = max(0, bisect_left(self._codes, code) - 1)
        near = self._codes[at : at + _SIMILAR]
        return UnknownRegion(code, tuple(each for each in near if each[:2] == code[:2]))

    def state(self, code: str) -> Region | UnknownRegion:
        """`code`: two letters in upper case."""
        zip_codes = self._states.get(code)
        if zip_codes is not None:
            return Region(f"state:{code}", zip_codes)
        return UnknownRegion(code, tuple(each for each in self._states if each[0] == code[0])[:_SIMILAR])
