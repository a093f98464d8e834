"""Small drops in the shapes of real ones, written as Parquet into a folder of the test's."""

import random
import string
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rows = Sequence[Mapping[str, Any]]

_HOUSING = {
    "tot_home_available_2020": 216,
    "tot_home_available_2021": 333,
    "tot_home_available_2022": 334,
    "tot_home_available_2023": 281,
    "est_total_home_demand_2030": 467,
}


def location(zip_code: str, city: str, state: str, **over: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "zip_code": zip_code,
        "city_name": city,
        "state_code": state,
        "county_name": "Clarke County",
        "county_fips_code": "01025",
        "latitude": 31.7061,
        "longitude": -87.9999,
    }
    return {**row, **over}


def people(zip_code: str, year: int, figure: int | None) -> dict[str, Any]:
    return {"zip_code": zip_code, "year": year, "tot_population": figure}


def homes(zip_code: str, **over: Any) -> dict[str, Any]:
    return {"zip_code": zip_code, **_HOUSING, **over}


def alias(zip_code: str, city: str, state: str, status: str = "acceptable") -> dict[str, Any]:
    return {"zip_code": zip_code, "city_name": city, "state_code": state, "usps_status": status}


def project(project_id: str, **over: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "project_id": project_id,
        "project_name": "Mill Lofts",
        "address": "1 MILL ST",
        "city_name": "Dickinson",
        "state_code": "AL",
        "zip_code": "36436",
        "project_type": "Housing",
        "status": "Completed",
        "total_units": 12,
        "affordable_units": 3,
        "start_date": date(2024, 1, 2),
        "completion_date": date(2025, 3, 4),
        "status_date": date(2025, 3, 4),
        "latitude": 31.7,
        "longitude": -87.9,
    }
    return {**row, **over}


def wide_people(zip_code: str, **figures: Any) -> dict[str, Any]:
    """A row of a wide population table as a warehouse exports it, with columns that are not needed."""
    return {"ZIP_CODE": zip_code, "CITY_NAME": "Somewhere", "STATE_CODE": "AL", **figures, "MONTH_CODE": 10}


NOWHERE = {"county_name": None, "county_fips_code": None, "latitude": None, "longitude": None}

LOCATIONS: Rows = (
    location("36436", "Dickinson", "AL"),
    location("00501", "Holtsville", "NY", county_name="Suffolk County", county_fips_code="36103"),
    location("63101", "Saint Louis", "MO"),
    location("63102", "Saint Louis", "MO"),
    location("90028", "Los Angeles", "CA"),
    location("90001", "Los Angeles", "CA"),
    location("63366", "O Fallon", "MO"),
    location("58601", "Dickinson", "ND"),
    location("09001", "APO", "AE", **NOWHERE),
)
POPULATION: Rows = (
    people("36436", 2023, 783),
    people("36436", 2010, 531),
    people("90028", 2023, 30000),
    people("63101", 2023, 2620),
)
HOUSING: Rows = (homes("36436"), homes("90028", tot_home_available_2020=None))
ALIASES: Rows = (
    alias("36436", "Dickinson", "AL", "primary"),
    alias("90028", "Hollywood", "CA"),
    alias("90028", "Tinseltown", "CA", "unacceptable"),
)

WIDE_POPULATION: Rows = (
    wide_people("36436", TOT_CENSUS_POP_2010=531, TOT_CENSUS_POP_2023=783, TOT_FX_POP_2030=801),
    wide_people("90028", TOT_CENSUS_POP_2010=None, TOT_CENSUS_POP_2023=30000, TOT_FX_POP_2030=None),
    wide_people("63101", TOT_CENSUS_POP_2010=None, TOT_CENSUS_POP_2023=2620, TOT_FX_POP_2030=2700),
)

_FIGURES = pa.int64()
_TYPES: dict[str, pa.DataType] = {
    "year": pa.int32(),
    "month_code": pa.int32(),
    "tot_population": _FIGURES,
    **dict.fromkeys(_HOUSING, _FIGURES),
    "latitude": pa.float64(),
    "longitude": pa.float64(),
    "total_units": _FIGURES,
    "affordable_units": _FIGURES,
    **dict.fromkeys(("start_date", "completion_date", "status_date"), pa.date32()),
}


def _type(column: str) -> pa.DataType:
    name = column.strip().lower()
    return _FIGURES if name.startswith(("tot_census_pop", "tot_fx_pop")) else _TYPES.get(name, pa.string())


def write_table(path: Path, rows: Rows, types: Mapping[str, pa.DataType] | None = None, **options: Any) -> Path:
    """`rows` as one Parquet file; columns and their order are those of the first row, `types` override ours."""
    columns = list(rows[0])
    kinds = {name: (types or {}).get(name, _type(name)) for name in columns}
    arrays = [pa.array([row[name] for row in rows], kinds[name]) for name in columns]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(arrays, names=columns), path, **options)
    return path


def write_drop(
    folder: Path,
    *,
    locations: Rows | None = LOCATIONS,
    population: Rows | None = POPULATION,
    housing: Rows | None = HOUSING,
    aliases: Rows | None = ALIASES,
    projects: Rows | None = None,
) -> Path:
    """A drop in the long shape; None leaves a table out."""
    tables = {
        "zip_locations": locations,
        "zip_population": population,
        "zip_housing": housing,
        "zip_city_aliases": aliases,
        "development_projects": projects,
    }
    for name, rows in tables.items():
        if rows is not None:
            write_table(folder / f"{name}.parquet", rows)
    return folder


def write_swelling(path: Path, rows: int) -> Path:
    """Projects of 27 KB each in a file of 0.3 MB: a few long texts that a dictionary and run lengths make tiny."""
    rng = random.Random(0)
    words = pa.array(["".join(rng.choices(string.ascii_letters, k=9000)) for _ in range(8)])
    text = pa.DictionaryArray.from_arrays(pa.array([row * 8 // rows for row in range(rows)], pa.int32()), words)
    columns = {name: pa.repeat(pa.scalar(value, _type(name)), rows) for name, value in project("p").items()}
    columns |= dict.fromkeys(("project_name", "address", "project_type"), text)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=rows, compression="zstd")
    return path


def write_wide_drop(folder: Path, *, population: Rows = WIDE_POPULATION) -> Path:
    """A drop in the wide shape, upper case, its housing with location columns and columns that are not needed."""
    described = {"city_name": "Somewhere", "county_name": "Clarke County", "state_code": "AL"}
    housing = [{**row, **described, "tot_housing_unit": "9", "updated_at": "2026-10-05"} for row in HOUSING]
    write_table(folder / "US_POPULATION_FORECAST_BY_ZIP_CODE.parquet", population)
    write_table(folder / "US_HOUSING_FORECAST.parquet", upper(housing))
    write_table(folder / "ZIP_MASTER_TABLE.parquet", upper(LOCATIONS))
    write_table(folder / "ZIP_CITY_ALIASES.parquet", ALIASES)
    return folder


def upper(rows: Rows) -> Rows:
    return [{name.upper(): value for name, value in row.items()} for row in rows]
