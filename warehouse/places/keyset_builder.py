"""Builds the key set of an area while a release is built."""

from collections import defaultdict
from collections.abc import Iterable

from warehouse.places.keyset import CityNames, Group, KeySet, StoredKeySet, Zip
from warehouse.places.match import city_query, part_query
from warehouse.places.names import fold_city, strip_state
from warehouse.places.spellings import abbreviates


class KeySetBuilder:
    """Collects the names of one area. Created by the area's build function, used once.

    Cities are written as answers print them ("Dickinson, AL").
    """

    def __init__(self) -> None:
        self._zips: dict[str, Zip] = {}
        self._groups: dict[str, Group] = {}
        self._cities = _NameCollector()
        self._postal = _NameCollector()
        self._aliases = _NameCollector()
        self._types: list[str] = []
        self._counties: dict[str, str] = {}

    def add(self, zip_code: str, city: str, state_code: str, *, has_figures: bool, county: str | None = None) -> None:
        """Adds a ZIP code, which queries for its city find. `county` is a five-digit FIPS code."""
        self._zips[zip_code] = Zip(city, state_code, has_figures, county=county)
        self._cities.add(zip_code, city, state_code)

    def add_county(self, code: str, name: str) -> None:
        """Adds a name by which queries find a county. `code` is a five-digit FIPS code; the first name counts."""
        self._counties.setdefault(code, name)

    def add_postal(self, zip_code: str, city: str, state_code: str, records: int) -> None:
        """Adds a ZIP code with records. Its postal city finds it unless the area has its own city of that name."""
        self._zips[zip_code] = Zip(city, state_code, has_figures=True, records=records)
        self._postal.add(zip_code, city, state_code)

    def add_group(self, city: str, state_code: str, zip_codes: Iterable[str], records: int) -> str:
        """Adds a city of the area's own, with its ZIP codes. Returns the key of its entries."""
        name = self._cities.add_all(zip_codes, city, state_code)
        key = city_query(state_code, name)
        self._groups[key] = Group(city, records)
        return key

    def add_part(self, zip_code: str, group: str, city: str, records: int) -> str:
        """Adds the part of a shared ZIP code that lies in the city with key `group`. Returns the key of its entries."""
        key = part_query(zip_code, group)
        self._groups[key] = Group(city, records)
        return key

    def add_alias(self, zip_code: str, city_name: str, state_code: str) -> None:
        """Adds another name for a ZIP code, after all cities. Ignored if the area has no entry for the ZIP code.

        An abbreviation of its city's name matches the whole city, even if only some of its ZIP codes list it.
        """
        known = self._zips.get(zip_code)
        if known is None:
            return
        self._aliases.add(zip_code, city_name, state_code)
        city = strip_state(known.city, known.state_code)
        if known.state_code == state_code and abbreviates(city_name, city):
            cities = self._postal if self._groups else self._cities
            self._aliases.add_all(cities.zips_of(city, state_code), city_name, state_code)

    def add_types(self, types: Iterable[str]) -> None:
        """Adds the types of the records, as sources write them: the words that a filter accepts, in any case."""
        self._types += types

    def build(self) -> KeySet:
        """Returns the key set of everything added so far."""
        cities, postal, aliases = (names.frozen() for names in (self._cities, self._postal, self._aliases))
        types = tuple(self._types)
        stored = StoredKeySet(self._zips, cities, aliases, postal, self._groups, self._counties, types)
        return KeySet(stored)


class _NameCollector:
    """Collects the city names of one level: ZIP codes by state and folded name."""

    def __init__(self) -> None:
        self._zips: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def add(self, zip_code: str, city: str, state_code: str) -> str:
        return self.add_all((zip_code,), city, state_code)

    def add_all(self, zip_codes: Iterable[str], city: str, state_code: str) -> str:
        name = fold_city(strip_state(city, state_code))
        self._zips[state_code][name].extend(zip_codes)
        return name

    def zips_of(self, city: str, state_code: str) -> list[str]:
        return self._zips[state_code][fold_city(city)]

    def frozen(self) -> CityNames:
        return {
            state: {name: tuple(sorted(set(zips))) for name, zips in cities.items()}
            for state, cities in self._zips.items()
        }
