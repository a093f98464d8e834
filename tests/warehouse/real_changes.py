"""What happens from one month to the next in real data, made up on the country: all of it must be published."""

import math
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.country import COUNTED, DEMAND, FORECAST, HOMES, Country, Shape, census
from tests.warehouse.altering import (
    COUNTY,
    FIGURES,
    POINT,
    Alter,
    added,
    each,
    edit,
    edit_aliases,
    lose,
    noise,
    scale,
    without,
)

Finish = Callable[[Path], object]


class RealChange(msgspec.Struct, frozen=True):
    """`alter` changes the country, `finish` the files of its drop."""

    kind: str
    alter: Alter = lambda _: None
    finish: Finish = lambda _: None
    shape: Shape = "long"


def in_place(state: str, factor: float) -> Alter:
    """A town of about 10,000 people in the state has other figures from 2022 on."""

    def alter(country: Country) -> None:
        of_last_year = country.figures[census(2023)]
        row = min(country.rows_in(state), key=lambda row: abs((of_last_year[row] or 0) - 10_000))
        for name in FIGURES:
            if int(name[-4:]) >= 2022:
                country.figures[name][row] = round(country.figures[name][row] * factor)

    return alter


def _counted_2025(country: Country) -> None:
    """The census of 2025 replaces its forecast: 3% off in most places, up to 40% in small ones; forecasts follow."""
    rng = random.Random(9)
    forecast = country.figures["tot_fx_pop_2025"]
    for row, figure in enumerate(forecast):
        if figure is not None:
            error = rng.gauss(0, 0.04) if figure > 1_500 else max(-0.4, min(0.4, rng.gauss(0, 0.15)))
            for name in FORECAST:
                country.figures[name][row] = round(country.figures[name][row] * (1 + error))
    country.figures[census(2025)] = country.figures.pop("tot_fx_pop_2025")


def _next_forecast(country: Country) -> None:
    pairs = zip(country.figures["tot_fx_pop_2029"], country.figures["tot_fx_pop_2030"], strict=True)
    country.figures["tot_fx_pop_2031"] = [None if last is None else round(last * last / one) for one, last in pairs]


def _steeper(country: Country) -> None:
    """Forecasts are extrapolated again, from growth that differs by a third of a per cent a year."""
    rng = random.Random(10)
    for row in range(len(country)):
        change = rng.gauss(0, 0.004)
        for name in FORECAST:
            if country.figures[name][row] is not None:
                figure = country.figures[name][row] * math.exp(change * (int(name[-4:]) - 2024))
                country.figures[name][row] = round(figure)


def _another_model(country: Country) -> None:
    """Forecasts of another model are 6% off in a usual place, and 1% above in all."""
    rng = random.Random(15)
    for row in range(len(country)):
        factor = 1.01 * math.exp(rng.gauss(0, 0.06))
        for name in FORECAST:
            if country.figures[name][row] is not None:
                country.figures[name][row] = round(country.figures[name][row] * factor)


def _demand_by_county(country: Country) -> None:
    """Each county's demand is estimated again: a few per cent off, in one by 30%."""
    rng = random.Random(11)
    counties = list(dict.fromkeys(country.places["county_fips_code"]))
    factors = {county: 1 + rng.gauss(0.01, 0.03) for county in counties} | {"48005": 1.3}
    for row, county in enumerate(country.places["county_fips_code"]):
        if country.figures[DEMAND][row] is not None:
            country.figures[DEMAND][row] = round(country.figures[DEMAND][row] * factors[county])


def _planning_regions(country: Country) -> None:
    """As in Connecticut: new counties with new codes and names, each of parts of the old ones."""
    for at, row in enumerate(country.rows_in("CT")):
        country.places["county_fips_code"][row] = f"09{110 + 10 * (at % 9)}"
        country.places["county_name"][row] = f"Region {'ABCDEFGHI'[at % 9]} Planning Region"


def _small_places(change: Callable[[int], int | None]) -> Alter:
    def alter(country: Country) -> None:
        for name in COUNTED:
            column = country.figures[name]
            column[:] = [figure if figure is None or figure > 1_200 else change(figure) for figure in column]

    return alter


def _county_merged(country: Country) -> None:
    """The last county of New Mexico becomes a part of the first one."""
    rows = country.rows_in("NM")
    for row in rows[-6:]:
        for name in COUNTY:
            country.places[name][row] = country.places[name][rows[0]]


def _one_kilometre(country: Country) -> None:
    rng = random.Random(12)
    edit(POINT, lambda degrees: round(degrees + rng.uniform(-0.01, 0.01), 5))(country)


def _fewer_aliases(country: Country) -> None:
    rng = random.Random(13)
    status = country.aliases["usps_status"]
    rows = [row for row in range(len(status)) if status[row] == "primary" or rng.random() > 0.03]
    country.aliases = {name: [values[row] for row in rows] for name, values in country.aliases.items()}


def _more_aliases(country: Country) -> None:
    for row in country.rows_in("OH")[:60]:
        new = ("zip_code", "state_code", "city_name", "usps_status")
        city = f"Old {country.places['city_name'][row]}"
        values = (country.places["zip_code"][row], "OH", city, "acceptable")
        for name, value in zip(new, values, strict=True):
            country.aliases[name].append(value)


def _renamed_cities(country: Country) -> None:
    """One city in forty, with its primary alias."""
    new = {city: f"Port {city}" for city in sorted(set(country.places["city_name"]) - {"APO"})[::40]}
    for values in (country.places["city_name"], country.aliases["city_name"]):
        values[:] = [new.get(city, city) for city in values]


def _spelt_otherwise(country: Country) -> None:
    """All in capitals, with a hyphen, as another system writes them."""
    for values in (country.places["city_name"], country.aliases["city_name"]):
        values[:] = [city.upper().replace("BRIDGE", "-BRIDGE") for city in values]


def _new_month(country: Country) -> None:
    country.updated_at, country.month_code = "2026-11-04", 11


def _zip_codes_as_numbers(folder: Path) -> None:
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        numbers = table["zip_code"].cast(pa.int64())
        pq.write_table(table.set_column(table.schema.get_field_index("zip_code"), "ZIP_CODE", numbers), path)


def _figures_as_text(folder: Path) -> None:
    table = pq.read_table(folder / "housing.parquet")
    fields = [pa.field(field.name, pa.string()) for field in table.schema]
    pq.write_table(table.cast(pa.schema(fields)), folder / "housing.parquet")


def _part_files(folder: Path) -> None:
    for name in ("locations", "population"):
        table = pq.read_table(folder / f"{name}.parquet")
        (folder / f"{name}.parquet").unlink()
        (folder / name).mkdir()
        third = table.num_rows // 3
        for part, start in enumerate((0, third, 2 * third)):
            rows = table.slice(start, third if part < 2 else None)
            pq.write_table(rows, folder / name / f"part-{part:05}.parquet")


def _other_order(folder: Path) -> None:
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        rows = random.Random(14).sample(range(table.num_rows), table.num_rows)
        columns = list(reversed(table.column_names))
        pq.write_table(table.take(rows).select(columns), path)


REVISIONS = (
    RealChange("nothing"),
    RealChange("revised-by-1-percent", noise(FIGURES, 0.01)),
    RealChange("1-percent-more-everywhere", scale(FIGURES, 1.01)),
    RealChange("some-revised-by-5-percent", noise(FIGURES, 0.05, share=0.2)),
    RealChange("a-state-revised", noise(COUNTED, 0.04, "OH", mean=1.01)),
    RealChange("latest-year-revised", noise(COUNTED[-1], 0.03, mean=1.01)),
    RealChange("forecasts-extrapolated-again", _steeper),
    RealChange("a-model-of-forecasts-replaced", _another_model),
    RealChange("demand-estimated-by-county", _demand_by_county),
    RealChange("small-places-revised", _small_places(lambda figure: round(figure * (1.15 if figure % 2 else 0.87)))),
    RealChange("small-places-suppressed", _small_places(lambda figure: None if figure < 350 else figure)),
    RealChange("homes-revised", noise(HOMES, 0.02, mean=1.005)),
)

EVENTS = (
    RealChange("a-fire", in_place("CA", 0.15)),
    RealChange("a-boom-town", in_place("TX", 3)),
    RealChange("a-prison-closed", in_place("NM", 0.55)),
    RealChange("a-storm", noise((*COUNTED[-2:], *FORECAST), 0.05, "FL", share=0.1, mean=0.75)),
    RealChange("a-place-left", edit(COUNTED[-1], lambda figure: 0 if figure < 260 else figure, "TX")),
)

NEW_YEARS = (
    RealChange("a-new-forecast-year", _next_forecast),
    RealChange("a-census-for-a-forecast", _counted_2025),
    RealChange("a-new-month", each(_new_month, noise(FIGURES, 0.003))),
)

PLACES = (
    RealChange("zip-codes-retired", without(share=0.004)),
    RealChange("zip-codes-added", added(8, "TX")),
    RealChange("figures-for-some-more", lose(FIGURES, share=0.01)),
    RealChange("renamed-cities", _renamed_cities),
    RealChange("spelt-otherwise", _spelt_otherwise),
    RealChange("new-counties-of-a-state", _planning_regions),
    RealChange("a-county-merged", _county_merged),
    RealChange("a-county-renamed", edit("county_name", lambda name: f"Fort {name}" if name[0] == "K" else name)),
    RealChange("points-rounded", edit(POINT, lambda degrees: round(degrees, 2))),
    RealChange("points-improved", _one_kilometre),
    RealChange("aliases-added", _more_aliases),
    RealChange("aliases-dropped", _fewer_aliases),
    RealChange("aliases-judged-again", edit_aliases("usps_status", lambda _: "acceptable", share=0.1)),
)

FILES = (
    RealChange("wide-shape", shape="wide"),
    RealChange("zip-codes-as-numbers", finish=_zip_codes_as_numbers),
    RealChange("figures-as-text", finish=_figures_as_text),
    RealChange("part-files", finish=_part_files),
    RealChange("another-order", finish=_other_order),
    RealChange("without-aliases", finish=lambda folder: (folder / "aliases.parquet").unlink()),
)

REAL_CHANGES = (*REVISIONS, *EVENTS, *NEW_YEARS, *PLACES, *FILES)

# What comes together in one drop, as it does in a month. Changes that would hide each other are not together.
REAL_TOGETHER = (
    ("revised-by-1-percent", "1-percent-more-everywhere"),
    ("some-revised-by-5-percent",),
    ("a-state-revised", "latest-year-revised", "forecasts-extrapolated-again"),
    ("demand-estimated-by-county", "small-places-revised", "homes-revised"),
    ("a-fire", "a-boom-town", "a-prison-closed", "a-storm"),
    ("a-place-left", "a-new-forecast-year", "a-census-for-a-forecast", "zip-codes-retired"),
    ("a-new-month", "zip-codes-added", "figures-for-some-more", "renamed-cities"),
    ("spelt-otherwise", "new-counties-of-a-state", "a-county-merged", "a-county-renamed"),
    ("points-rounded", "points-improved", "aliases-added", "aliases-dropped"),
    ("aliases-judged-again", "zip-codes-as-numbers", "part-files", "another-order"),
    ("figures-as-text", "without-aliases"),
)
