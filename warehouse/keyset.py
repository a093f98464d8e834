"""The key set of a release: every ZIP code and folded city name, held in memory.

It decides what a query matches before any cache or file is asked, so an unknown name costs nothing and made-up names
cannot grow anything.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

import msgspec

from warehouse.names import fold_city, strip_state


class Match(msgspec.Struct, frozen=True):
    """What a query means in one release. `query` is its canonical form: equal forms have equal answers.

    `keys` find its entries.
    """

    query: str
    keys: tuple[str, ...]


class UnknownZip(msgspec.Struct, frozen=True):
    zip_code: str


class OtherCity(msgspec.Struct, frozen=True):
    """The ZIP code is there, but not in the city or state asked for; `city` is where it is ("Dickinson, AL")."""

    zip_code: str
    city: str


class UnknownCity(msgspec.Struct, frozen=True):
    """`similar`: up to three cities of the state whose names begin alike; `states`: where else the name occurs."""

    city_name: str
    state_code: str
    similar: tuple[str, ...]
    states: tuple[str, ...]


NoMatch = UnknownZip | OtherCity | UnknownCity


class _Zip(msgspec.Struct, frozen=True, array_like=True):
    city: str
    state_code: str
    has_figures: bool


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    zips: dict[str, _Zip]
    cities: dict[str, dict[str, tuple[str, ...]]]
    aliases: dict[str, dict[str, tuple[str, ...]]]


class KeySet:
    """Immutable. Cities and aliases are by state, then by folded name; values are ascending ZIP codes."""

    def __init__(self, stored: _Stored) -> None:
        self._stored = stored
        self._zips = stored.zips
        self._names = {state: sorted(cities) for state, cities in stored.cities.items()}
        self._states: dict[str, list[str]] = defaultdict(list)
        for state in sorted(stored.cities):
            for name in stored.cities[state]:
                self._states[name].append(state)

    @classmethod
    def decoded(cls, data: bytes) -> "KeySet":
        """Raises msgspec.DecodeError if `data` is no key set."""
        try:
            return cls(msgspec.msgpack.decode(data, type=_Stored))
        except UnicodeDecodeError as error:
            raise msgspec.DecodeError(str(error)) from None

    def encoded(self) -> bytes:
        return msgspec.msgpack.encode(self._stored)

    @property
    def zip_count(self) -> int:
        return len(self._zips)

    @property
    def city_count(self) -> int:
        return sum(len(cities) for cities in self._stored.cities.values())

    def matches(self) -> Iterator[Match]:
        """Every canonical query that there is, each once: ZIP codes, cities, then aliases that no city hides."""
        for zip_code in self._zips:
            yield Match(f"zip:{zip_code}", (zip_code,))
        for state in sorted({*self._stored.cities, *self._stored.aliases}):
            names = {**self._stored.aliases.get(state, {}), **self._stored.cities.get(state, {})}
            for name, zip_codes in names.items():
                yield Match(f"city:{state}:{name}", zip_codes)

    def has_figures(self, zip_codes: tuple[str, ...]) -> bool:
        return any(self._zips[zip_code].has_figures for zip_code in zip_codes)

    def resolve(self, zip_code: str | None, city_name: str | None, state_code: str | None) -> Match | NoMatch:
        """What the parameters match together. Either `zip_code`, or `city_name` and `state_code`, must be given."""
        if zip_code is not None:
            return self._resolve_zip(zip_code, city_name, state_code)
        if city_name is None or state_code is None:
            raise ValueError("neither a ZIP code nor a city and state")
        return self._resolve_city(city_name, state_code)

    def _resolve_zip(self, zip_code: str, city_name: str | None, state_code: str | None) -> Match | NoMatch:
        known = self._zips.get(zip_code)
        if known is None:
            return UnknownZip(zip_code)
        if city_name is not None and state_code is not None:
            name = fold_city(strip_state(city_name, state_code))
            inside = any(
                zip_code in names.get(state_code, {}).get(name, ())
                for names in (self._stored.cities, self._stored.aliases)
            )
        else:
            inside = state_code is None or state_code == known.state_code
        return Match(f"zip:{zip_code}", (zip_code,)) if inside else OtherCity(zip_code, known.city)

    def _resolve_city(self, city_name: str, state_code: str) -> Match | NoMatch:
        name = fold_city(strip_state(city_name, state_code))
        for names in (self._stored.cities, self._stored.aliases):
            zip_codes = names.get(state_code, {}).get(name)
            if zip_codes:
                return Match(f"city:{state_code}:{name}", zip_codes)
        return UnknownCity(city_name, state_code, self._similar(name, state_code), tuple(self._states.get(name, ())))

    def _similar(self, name: str, state_code: str) -> tuple[str, ...]:
        names = self._names.get(state_code, [])
        cities = self._stored.cities.get(state_code, {})
        for length in (6, 4, 3):
            prefix = name[:length]
            if len(prefix) < length:
                continue
            start = bisect_left(names, prefix)
            alike = [candidate for candidate in names[start : start + 3] if candidate.startswith(prefix)]
            if alike:
                return tuple(self._zips[cities[candidate][0]].city for candidate in alike)
        return ()


class KeySetBuilder:
    def __init__(self) -> None:
        self._zips: dict[str, _Zip] = {}
        self._cities: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._aliases: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def add(self, zip_code: str, city: str, state_code: str, *, has_figures: bool) -> None:
        """`city` is as answers print it ("Dickinson, AL")."""
        self._zips[zip_code] = _Zip(city, state_code, has_figures)
        self._cities[state_code][fold_city(strip_state(city, state_code))].append(zip_code)

    def add_alias(self, zip_code: str, city_name: str, state_code: str) -> None:
        if zip_code in self._zips:
            self._aliases[state_code][fold_city(strip_state(city_name, state_code))].append(zip_code)

    def build(self) -> KeySet:
        def frozen(names: dict[str, dict[str, list[str]]]) -> dict[str, dict[str, tuple[str, ...]]]:
            return {
                state: {name: tuple(sorted(set(zips))) for name, zips in cities.items()}
                for state, cities in names.items()
            }

        return KeySet(_Stored(self._zips, frozen(self._cities), frozen(self._aliases)))
