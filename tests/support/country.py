"""A small country, made up with a fixed seed, whose figures and places are plausible to every rule.

Small enough to be checked in a third of a second, and as large as the rules need: they ask for shares and likenesses
of at least 20 larger ZIP codes of a state.
"""

import math
import random
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.schema.states import STATES, State
from warehouse.schema.tables import HOUSING_FIGURES

SEED = 1836
# ZIP codes by state: two large ones, small ones with a few counties, and military ones without a place.
SIZES = {"TX": 100, "CA": 80, "OH": 65, "FL": 60, "CT": 50, "NM": 40, "VT": 30, "DE": 25, "AE": 8}
ZIP_CODES_OF_A_COUNTY = 12
PO_BOX = 0.08  # share of the ZIP codes without figures
PEOPLE_OF_A_HOME = 2.25

COUNTED_YEARS = range(2015, 2025)
FORECAST_YEARS = range(2025, 2031)


def census(year: int) -> str:
    """The name of the figure."""
    return f"tot_census_pop_{year}"


COUNTED = tuple(census(year) for year in COUNTED_YEARS)
FORECAST = tuple(f"tot_fx_pop_{year}" for year in FORECAST_YEARS)
PEOPLE = (*COUNTED, *FORECAST)
DEMAND = "est_total_home_demand_2030"
HOMES = tuple(name for name in HOUSING_FIGURES if name != DEMAND)

Shape = Literal["wide", "long"]
Columns = dict[str, list[Any]]
Figures = dict[str, int]  # of one ZIP code

_FIRST = ("Ash", "Bel", "Cedar", "Dun", "Elm", "Fair", "Glen", "Har", "Iron", "King", "Lin", "Mill", "Nor", "Oak")
_LAST = ("bridge", "brook", "bury", "dale", "field", "ford", "gate", "haven", "mont", "port", "ton", "ville", "wood")
_LONGEST_CITY = "Saint Bartholomew Junction"


class Country(msgspec.Struct):
    """A drop as columns of values. `places` and `figures` have an entry for each ZIP code, in the same order.

    Tests change their own copy and write it. Rows of figures that are None throughout are not written.
    """

    places: Columns  # of the locations
    figures: Columns  # of people, named as in the wide shape, and of homes
    aliases: Columns
    projects: Columns
    updated_at: str = "2026-10-05"
    month_code: int = 10

    def __len__(self) -> int:
        return len(self.places["zip_code"])

    def copy(self) -> Self:
        tables = {name: getattr(self, name) for name in ("places", "figures", "aliases", "projects")}
        copies = {name: {key: list(values) for key, values in table.items()} for name, table in tables.items()}
        return msgspec.structs.replace(self, **copies)

    def column(self, name: str) -> list[Any]:
        """The values of a figure, or else of a column of the locations."""
        return self.figures[name] if name in self.figures else self.places[name]

    def rows_in(self, *states: str) -> list[int]:
        """The rows of the states, or of the whole country."""
        return [row for row, state in enumerate(self.places["state_code"]) if not states or state in states]

    def keep(self, rows: list[int]) -> None:
        """Leaves out all other ZIP codes, in every table."""
        for table in (self.places, self.figures):
            for name in table:
                table[name] = [table[name][row] for row in rows]
        left = set(self.places["zip_code"])
        self.keep_aliases(lambda zip_code: zip_code in left)

    def keep_aliases(self, wanted: Callable[[str], bool]) -> None:
        """Leaves out the aliases of other ZIP codes."""
        rows = [row for row, zip_code in enumerate(self.aliases["zip_code"]) if wanted(zip_code)]
        self.aliases = {name: [values[row] for row in rows] for name, values in self.aliases.items()}

    def write(self, folder: Path, shape: Shape = "long") -> Path:
        """The drop as five files. The long shape is read faster."""
        folder.mkdir(parents=True, exist_ok=True)
        population = self._with_figures(self.years) if shape == "wide" else self._long_population()
        population["month_code"] = [self.month_code] * len(population["zip_code"])
        homes = self._with_figures((*HOMES, DEMAND))
        homes["updated_at"] = [self.updated_at] * len(homes["zip_code"])
        tables = {"locations": self.places, "population": population, "housing": homes, "aliases": self.aliases}
        tables["projects"] = self.projects
        for name, columns in tables.items():
            pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        return folder

    @property
    def years(self) -> tuple[str, ...]:
        """The names of its figures of people."""
        return tuple(name for name in self.figures if "_pop_" in name)

    def _with_figures(self, names: tuple[str, ...]) -> Columns:
        present = [name for name in names if name in self.figures]
        rows = [row for row in range(len(self)) if any(self.figures[name][row] is not None for name in present)]
        zip_codes = [self.places["zip_code"][row] for row in rows]
        figures = {name: pa.array([self.figures[name][row] for row in rows], pa.int64()) for name in present}
        return {"zip_code": zip_codes, **figures}

    def _long_population(self) -> Columns:
        cells = [
            (zip_code, int(name[-4:]), figure)
            for name in self.years
            for zip_code, figure in zip(self.places["zip_code"], self.figures[name], strict=True)
            if figure is not None
        ]
        zip_codes, years, figures = zip(*cells, strict=True)
        return {"zip_code": list(zip_codes), "year": list(years), "tot_population": list(figures)}


def make_country() -> Country:
    """The country; always the same."""
    rng = random.Random(SEED)
    places: list[dict[str, Any]] = []
    for state in STATES:
        if state.code in SIZES:
            places += _places_of(state, SIZES[state.code], rng)
    next(place for place in places if place["state_code"] == "FL")["city_name"] = _LONGEST_CITY
    figures = [_figures_of(place, rng) for place in places]
    aliases = [alias for place in places for alias in _aliases_of(place, rng)]
    projects = [project for place in places if place["state_code"] == "CA" for project in _projects_of(place)]
    names = (*PEOPLE, *HOMES, DEMAND)
    return Country(
        {name: [place[name] for place in places] for name in places[0]},
        {name: [one[name] if one else None for one in figures] for name in names},
        {name: [alias[name] for alias in aliases] for name in aliases[0]},
        {name: [project[name] for project in projects] for name in projects[0]},
    )


def revise(figures: list[int | None], spread: float, rng: random.Random, *, share: float = 1) -> list[int | None]:
    """The figures with noise in a `share` of them, as a revision leaves it."""
    return [
        figure if figure is None or rng.random() >= share else round(figure * math.exp(rng.gauss(0, spread)))
        for figure in figures
    ]


def _places_of(state: State, number: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    prefixes = [prefix for first, last in state.prefixes for prefix in range(first, last + 1)]
    zip_codes = sorted(rng.sample([f"{prefix:03}{at:02}" for prefix in prefixes for at in range(1, 100)], number))
    if state.box is None:
        nowhere = dict.fromkeys(("county_name", "county_fips_code", "latitude", "longitude"))
        yield from ({"zip_code": one, "city_name": "APO", "state_code": state.code, **nowhere} for one in zip_codes)
        return
    names = [first + last for first in _FIRST for last in _LAST]
    cities = rng.sample(names, len(names))
    south, west, north, east = state.box
    saint, of_county = ("Saint ", "Doña ") if state.code == "NM" else ("", "")
    middle = (0.0, 0.0)
    for at, zip_code in enumerate(zip_codes):
        county = at // ZIP_CODES_OF_A_COUNTY
        is_city = state.code == "TX" and county == number // ZIP_CODES_OF_A_COUNTY  # independent, beside its namesake
        if at % ZIP_CODES_OF_A_COUNTY == 0:
            middle = rng.uniform(south + 0.4, north - 0.4), rng.uniform(west + 0.4, east - 0.4)
        yield {
            "zip_code": zip_code,
            "city_name": saint + cities[at * 2 // 3],  # every second city has two ZIP codes
            "state_code": state.code,
            "county_name": f"City of {cities[-1]}" if is_city else f"{of_county}{cities[-1 - county]} County",
            "county_fips_code": f"{state.fips}510" if is_city else f"{state.fips}{2 * county + 1:03}",
            "latitude": round(middle[0] + rng.uniform(-0.2, 0.2), 5),
            "longitude": round(middle[1] + rng.uniform(-0.2, 0.2), 5),
        }


def _figures_of(place: dict[str, Any], rng: random.Random) -> Figures | None:
    """Growth is steady, and that of counties differs; counts have noise, which forecasts lack."""
    if place["latitude"] is None or rng.random() < PO_BOX:
        return None
    size = min(60_000.0, math.exp(rng.gauss(8.6, 1.0)))
    if place["state_code"] in ("TX", "CA", "OH") and place["zip_code"][-1] == "7":
        size /= 3_000  # so few that they may be hidden
    growth = 1 + rng.gauss(0.008, 0.008) + (int(place["county_fips_code"]) // 2 % 5 - 2) * 0.005
    figures = {}
    for year, name in zip(COUNTED_YEARS, COUNTED, strict=True):
        figures[name] = round(size * growth ** (year - COUNTED_YEARS[0]) * math.exp(rng.gauss(0, 0.02)))
    for year, name in zip(FORECAST_YEARS, FORECAST, strict=True):
        figures[name] = round(figures[COUNTED[-1]] * growth ** (year - COUNTED_YEARS[-1]))
    homes_of_a_person = math.exp(rng.gauss(0, 0.15)) / PEOPLE_OF_A_HOME
    for name in HOMES:
        figures[name] = round(figures[census(int(name[-4:]))] * homes_of_a_person)
    figures[DEMAND] = round(figures["tot_fx_pop_2030"] * homes_of_a_person * math.exp(rng.gauss(0, 0.03)))
    return figures


def _aliases_of(place: dict[str, Any], rng: random.Random) -> Iterator[dict[str, Any]]:
    city = place["city_name"]
    same = {"zip_code": place["zip_code"], "state_code": place["state_code"]}
    yield {**same, "city_name": city, "usps_status": "primary"}
    for name in (f"North {city}", f"{city} Heights"):
        if rng.random() < 0.4:
            yield {**same, "city_name": name, "usps_status": rng.choice(("acceptable", "unacceptable"))}


def _projects_of(place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for at, status in enumerate(("Proposed", "Construction", "Completed")):
        yield {
            "project_id": f"{place['zip_code']}-{at}",
            "project_name": f"{place['city_name']} Lofts {at + 1}",
            "address": f"{at + 1} Mill Street",
            **{name: place[name] for name in ("city_name", "state_code", "zip_code", "latitude", "longitude")},
            **({"zip_code": None} if status == "Completed" and place["zip_code"][-1] < "6" else {}),  # unknown
            "project_type": "Housing",
            "status": status,
            "total_units": 12 + 8 * at,
            "affordable_units": 3,
            "start_date": date(2024, 1 + at, 2),
            "completion_date": date(2026, 1 + at, 4),
            "status_date": date(2026, 8, 1 + at),
        }
