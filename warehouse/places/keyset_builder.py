"""Builds the key set of an area, when a release is built."""

from collections import defaultdict
from collections.abc import Iterable

from warehouse.places.city_names import fold_city, strip_state
from warehouse.places.keyset import CityNames, Group, KeySet, StoredKeySet, Zip, city_query, part_query


class KeySetBuilder:
    """Cities are given as answers print them ("Dickinson, AL")."""

    def __init__(self) -> None:
        self._zips: dict[str, Zip] = {}
        self._groups: dict[str, Group] = {}
        self._cities = _Gathered()
        self._postal = _Gathered()
        self._aliases = _Gathered()

    def add(self, zip_code: str, city: str, state_code: str, *, has_figures: bool) -> None:
        """A ZIP code, known by its city."""
        self._zips[zip_code] = Zip(city, state_code, has_figures)
        self._cities.add(zip_code, city, state_code)

    def add_postal(self, zip_code: str, city: str, state_code: str, records: int) -> None:
        """A ZIP code that has records of the area; its city is consulted where the area has no city of that name."""
        self._zips[zip_code] = Zip(city, state_code, has_figures=True, records=records)
        self._postal.add(zip_code, city, state_code)

    def add_group(self, city: str, state_code: str, zip_codes: Iterable[str], records: int) -> str:
        """A city of the area's own, with the ZIP codes that lie in it; returns the key that finds its entries."""
        name = self._cities.add_all(zip_codes, city, state_code)
        key = city_query(state_code, name)
        self._groups[key] = Group(city, records)
        return key

    def add_part(self, zip_code: str, group: str, city: str, records: int) -> str:
        """The part of a ZIP code that lies in the city of a group, where others share it; returns its key."""
        key = part_query(zip_code, group)
        self._groups[key] = Group(city, records)
        return key

    def add_alias(self, zip_code: str, city_name: str, state_code: str) -> None:
        if zip_code in self._zips:
            self._aliases.add(zip_code, city_name, state_code)

    def build(self) -> KeySet:
        cities, postal, aliases = (names.frozen() for names in (self._cities, self._postal, self._aliases))
        return KeySet(StoredKeySet(self._zips, cities, aliases, postal, self._groups))


class _Gathered:
    """Names while they are collected."""

    def __init__(self) -> None:
        self._zips: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def add(self, zip_code: str, city: str, state_code: str) -> str:
        return self.add_all((zip_code,), city, state_code)

    def add_all(self, zip_codes: Iterable[str], city: str, state_code: str) -> str:
        name = fold_city(strip_state(city, state_code))
        self._zips[state_code][name].extend(zip_codes)
        return name

    def frozen(self) -> CityNames:
        return {
            state: {name: tuple(sorted(set(zips))) for name, zips in cities.items()}
            for state, cities in self._zips.items()
        }
