"""Small drops in the shapes of real ones, written as Parquet into a folder of the test's."""

from collections.abc import Mapping, Sequence
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

_FIGURES = pa.int64()
_TYPES: dict[str, pa.DataType] = {
    "year": pa.int32(),
    "tot_population": _FIGURES,
    **dict.fromkeys(_HOUSING, _FIGURES),
    "latitude": pa.float64(),
    "longitude": pa.float64(),
}


def write_table(path: Path, rows: Rows, types: Mapping[str, pa.DataType] | None = None, **options: Any) -> Path:
    """`rows` as one Parquet file; columns and their order are those of the first row, `types` override ours."""
    known = {**_TYPES, **(types or {})}
    columns = list(rows[0])
    arrays = [pa.array([row[name] for row in rows], known.get(name, pa.string())) for name in columns]
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
) -> Path:
    """A drop in the long shape; None leaves a table out."""
    tables = {
        "zip_locations": locations,
        "zip_population": population,
        "zip_housing": housing,
        "zip_city_aliases": aliases,
    }
    for name, rows in tables.items():
        if rows is not None:
            write_table(folder / f"{name}.parquet", rows)
    return folder
