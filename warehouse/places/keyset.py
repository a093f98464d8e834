"""The key set of an area in a release: every ZIP code and folded city name, held in memory.

Queries are matched here before any cache or file is read. So an unknown name costs almost nothing, and invented names
cannot fill a cache.
"""

import random
from collections import defaultdict
from collections.abc import Iterator

import msgspec

from warehouse.places.match import Match, NoMatch, OtherCity, UnknownCity, UnknownZip, city_query, part_query
from warehouse.places.names import fold_city, strip_state
from warehouse.places.regions import Regions
from warehouse.places.similar import similar_names
from warehouse.places.spellings import other_forms, plain_name, split_state
from warehouse.places.variants import BOROUGHS, variants_among

_MOST_SIMILAR = 3

# State -> folded name -> ZIP codes, ascending.
CityNames = dict[str, dict[str, tuple[str, ...]]]


# Fields that were added later have defaults, because releases of earlier versions must still open. gc=False: there are
# too many for the garbage collector to traverse, and none is part of a cycle.
class Zip(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One ZIP code in a key set."""

    city: str  # as answers print it
    state_code: str
    has_figures: bool  # False if its entry has no figure at all
    records: int = 1
    county: str | None = None  # five-digit FIPS code


class Place(msgspec.Struct, frozen=True):
    """One ZIP code as queries can name it: by itself, by its city and state, or by its county if it has one."""

    zip_code: str
    city_name: str
    state_code: str
    county: str | None  # five-digit FIPS code


class Group(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A set of entries stored under one key, because no union of ZIP codes yields it.

    It is a city of the area's own, or such a city's part of a ZIP code that several cities share.
    """

    city: str  # as answers print it
    records: int


class StoredKeySet(msgspec.Struct, frozen=True, array_like=True):
    """A key set as its file in the release holds it, in MessagePack."""

    zips: dict[str, Zip]  # by ZIP code
    cities: CityNames  # the area's own cities
    aliases: CityNames
    postal: CityNames = {}  # postal cities of ZIP codes
    groups: dict[str, Group] = {}  # by key
    counties: dict[str, str] = {}  # name by FIPS code, where the area has counties
    types: tuple[str, ...] = ()  # types of records, as sources write them; empty in earlier releases


class KeySet:
    """The key set of one area in one open release. Immutable; an `OpenRelease` holds it as long as it lives.

    A city name is looked up on three levels, and the first match wins: the area's own cities, postal cities, aliases.
    Names that people type for a whole city (`VARIANTS`) and other forms of the name (`other_forms`) are looked up among
    cities before aliases: an alias may match only a small part of the same city.
    """

    def __init__(self, stored: StoredKeySet) -> None:
        self._stored = stored
        self._zips = stored.zips
        self._groups = stored.groups
        places = ((zip_code, known.state_code, known.county) for zip_code, known in stored.zips.items())
        self.regions = Regions(places, stored.counties)
        self._elsewhere = _other_states(stored) if stored.groups else {}
        cities = [names for names in (stored.cities, stored.postal) if names]
        self._names = {
            state: sorted({name for level in cities for name in level.get(state, ())})
            for state in sorted(set().union(*cities))
        }
        variants = variants_among(self._names)
        # variants of a single city, with its name; `several` below has the variants of several cities
        self._variants = {
            state: {typed: intended[0] for typed, intended in names.items() if len(intended) == 1}
            for state, names in variants.items()
        }
        # candidates for a misspelt name
        self._spelt = {state: sorted({*names, *self._variants.get(state, ())}) for state, names in self._names.items()}
        self._parts = {
            (state, name): keys
            for (state, name), parts in BOROUGHS.items()
            if name not in stored.cities.get(state, {})
            and stored.groups.keys() >= set(keys := tuple(city_query(state, part) for part in parts))
        }
        several = {} if stored.groups else _united(stored.cities, variants)
        self._own = tuple(cities)
        self._whole = (*cities, *([several] if several else ()))
        self._levels = (*self._whole, *([stored.aliases] if stored.aliases else ()))
        self._states: dict[str, list[str]] = defaultdict(list)
        for state, names in self._names.items():
            for name in {*names, *variants.get(state, ())}:
                self._states[name].append(state)

    @classmethod
    def decoded(cls, data: bytes) -> "KeySet":
        """Returns the key set in a file's bytes. Raises msgspec.DecodeError if they are not a key set."""
        try:
            return cls(msgspec.msgpack.decode(data, type=StoredKeySet))
        except UnicodeDecodeError as error:
            raise msgspec.DecodeError(str(error)) from None

    def encoded(self) -> bytes:
        """Returns the bytes of its file."""
        return msgspec.msgpack.encode(self._stored)

    @property
    def zip_count(self) -> int:
        return len(self._zips)

    @property
    def city_count(self) -> int:
        """The number of the area's own cities."""
        return sum(len(cities) for cities in self._stored.cities.values())

    @property
    def own_cities(self) -> tuple[str, ...] | None:
        """The cities of an area that has its own, as answers print them; None if its cities are the postal ones."""
        return tuple(sorted({group.city for group in self._groups.values()})) or None

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its records, as sources write them; empty if there are none, or the release is too old."""
        return self._stored.types

    def some(self, most: int) -> list[Match]:
        """Returns matches for at most `most` random ZIP codes."""
        zips = random.sample(list(self._zips), min(most, len(self._zips)))
        return [Match(f"zip:{zip_code}", (zip_code,)) for zip_code in zips]

    def place(self, preferred: str, *, has_figures: bool) -> Place | None:
        """Returns a ZIP code with or without figures: `preferred` if it fits, else the first that does, or None."""
        for zip_code in (preferred, *self._zips):
            known = self._zips.get(zip_code)
            if known is not None and known.has_figures is has_figures:
                return Place(zip_code, strip_state(known.city, known.state_code), known.state_code, known.county)
        return None

    def matches(self) -> Iterator[Match]:
        """Yields every canonical query with an answer once: ZIP codes, cities, and aliases that are not cities."""
        for zip_code in self._zips:
            yield Match(f"zip:{zip_code}", (zip_code,))
        for state in sorted(set().union(*self._levels)):
            names: dict[str, tuple[str, ...]] = {}
            for level in reversed(self._levels):
                names |= level.get(state, {})
            for name, zip_codes in names.items():
                yield self._city(state, name, zip_codes)

    def states_with(self, city_name: str) -> tuple[str, ...]:
        """Returns the states that have a city of that name."""
        return tuple(self._states.get(fold_city(city_name), ()))

    def entry(self, zip_code: str) -> Zip | None:
        return self._zips.get(zip_code)

    def has_figures(self, keys: tuple[str, ...]) -> bool:
        """Returns whether any entry of these ZIP codes has a figure. Unknown ZIP codes have none."""
        return any(known.has_figures for known in map(self._zips.get, keys) if known is not None)

    def records(self, keys: tuple[str, ...]) -> int:
        """Returns the number of records under all `keys` together."""
        return sum((self._groups.get(key) or self._zips[key]).records for key in keys)

    def resolve(self, zip_code: str | None, city_name: str | None, state_code: str | None) -> Match | NoMatch:
        """Returns the match of all parameters together, or the reason why there is none.

        Raises:
            ValueError: if there is neither `zip_code`, nor `city_name` and `state_code`.
        """
        if zip_code is not None:
            return self._resolve_zip(zip_code, city_name, state_code)
        if city_name is None or state_code is None:
            raise ValueError("neither a ZIP code nor a city and state")
        return self._resolve_city(city_name, state_code)

    def _resolve_zip(self, zip_code: str, city_name: str | None, state_code: str | None) -> Match | NoMatch:
        known = self._zips.get(zip_code)
        if known is None:
            return UnknownZip(zip_code)
        if city_name is None or state_code is None:
            inside = state_code in (None, known.state_code, *self._elsewhere.get(zip_code, ()))
            return Match(f"zip:{zip_code}", (zip_code,)) if inside else OtherCity(zip_code, known.city)
        for at, name in enumerate(self._candidates(city_name, state_code)):
            if self._groups and zip_code in self._stored.cities.get(state_code, {}).get(name, ()):
                found = self._part(zip_code, city_query(state_code, name))
            elif any(zip_code in level.get(state_code, {}).get(name, ()) for level in self._levels):
                found = Match(f"zip:{zip_code}", (zip_code,))
            else:
                continue
            is_own = at == 0 and any(zip_code in level.get(state_code, {}).get(name, ()) for level in self._own)
            return found if is_own else self._with_cities(found)
        return OtherCity(zip_code, known.city)

    def _resolve_city(self, city_name: str, state_code: str) -> Match | NoMatch:
        if self._parts:
            for name in self._candidates(city_name, state_code):
                if (state_code, name) in self._parts:
                    return self._with_cities(Match(f"cities:{state_code}:{name}", self._parts[state_code, name]))
        typed = fold_city(strip_state(city_name, state_code))
        own = self._named(state_code, typed, self._own)
        if own is not None:
            return own
        others = list(self._candidates(city_name, state_code))
        for levels in (self._whole, (self._stored.aliases,)):
            for name in others:
                found = self._named(state_code, name, levels)
                if found is not None:
                    return self._with_cities(found)
        return self._unknown(city_name, state_code, others)

    def _candidates(self, city_name: str, state_code: str) -> Iterator[str]:
        """Yields the folded names to look up, first the one that was typed."""
        variants = self._variants.get(state_code, {})
        typed = fold_city(strip_state(city_name, state_code))
        yield typed
        if typed in variants:
            yield variants[typed]
        for name in other_forms(city_name, state_code):
            yield name
            if name in variants:
                yield variants[name]

    def _unknown(self, city_name: str, state_code: str, names: list[str]) -> UnknownCity:
        split = split_state(city_name)
        city, behind = (fold_city(split[0]), split[1]) if split else (names[0], None)
        written_city = split[0] if split and behind == state_code else city_name  # East Texas may be a city elsewhere
        written = plain_name(written_city)
        states = next((found for name in (*names, city, written) if (found := self._states.get(name))), [])
        similar = similar_names(written, self._spelt.get(state_code, []), _MOST_SIMILAR)
        # the name as it is, in another state, is likelier than a part of it in this one: Kansas City, IL
        for name in (written, *([] if states else [plain_name(written_city, cities=True)])):
            if self._named(state_code, name, self._own) is not None:
                states, similar = [], [name]  # only the words around the name are wrong
                break
        variants = self._variants.get(state_code, {})
        shown = (self._named(state_code, variants.get(name, name), self._own) for name in similar)
        return UnknownCity(
            city_name,
            state_code,
            tuple(dict.fromkeys(self._label(match) for match in shown if match is not None)),
            tuple(sorted((state for state in states if state != state_code), key=lambda one: (one != behind, one))),
            next(iter(self.regions.counties_named(written_city, state_code)), None),
        )

    def _part(self, zip_code: str, city: str) -> Match:
        """Returns the match for the part of a ZIP code in one of the area's own cities."""
        query = part_query(zip_code, city)
        return Match(query, (query if query in self._groups else zip_code,))

    def _named(self, state_code: str, name: str, levels: tuple[CityNames, ...]) -> Match | None:
        for level in levels:
            zip_codes = level.get(state_code, {}).get(name)
            if zip_codes is not None:
                return self._city(state_code, name, zip_codes)
        return None

    def _city(self, state_code: str, name: str, zip_codes: tuple[str, ...]) -> Match:
        query = city_query(state_code, name)
        return Match(query, (query,) if query in self._groups else zip_codes)

    def _label(self, match: Match) -> str:
        """Returns the name of the city as answers print it."""
        key = match.keys[0]
        return self._groups[key].city if key in self._groups else self._zips[key].city

    def _with_cities(self, match: Match) -> Match:
        """Returns the match with its cities."""
        cities = {(self._groups.get(key) or self._zips[key]).city for key in match.keys}
        return msgspec.structs.replace(match, cities=tuple(sorted(cities)))


def _united(cities: CityNames, variants: dict[str, dict[str, tuple[str, ...]]]) -> CityNames:
    """Returns the ZIP codes of variants that stand for several cities."""
    found: CityNames = {}
    for state, names in variants.items():
        for typed, several in names.items():
            if len(several) > 1:
                zip_codes = {zip_code for name in several for zip_code in cities[state][name]}
                found.setdefault(state, {})[typed] = tuple(sorted(zip_codes))
    return found


def _other_states(stored: StoredKeySet) -> dict[str, set[str]]:
    """Returns, by ZIP code, the other states in which one of the area's own cities contains it."""
    found: dict[str, set[str]] = defaultdict(set)
    for state, cities in stored.cities.items():
        for zip_code in {zip_code for zip_codes in cities.values() for zip_code in zip_codes}:
            if stored.zips[zip_code].state_code != state:
                found[zip_code].add(state)
    return found
