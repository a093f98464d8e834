"""Asks a running instance for every ZIP code and every city of a drop, and compares every field with the drop itself.

``python -m tests.national http://127.0.0.1:8000 KEY DROP``: the drop that is served there, long or wide. What is
expected is worked out here from the Parquet files alone, with none of the code that is checked.
"""

import http.client
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pyarrow.parquet as pq

_CALLERS = 4
_PATH = "/v1/population-housing-forecast"
_HOUSING = (
    "tot_home_available_2020",
    "tot_home_available_2021",
    "tot_home_available_2022",
    "tot_home_available_2023",
    "est_total_home_demand_2030",
)

Row = dict[str, Any]


def rows_of(drop: Path) -> Iterator[tuple[set[str], list[Row]]]:
    for path in sorted(drop.glob("*.parquet")):
        table = pq.read_table(path)
        table = table.rename_columns([name.lower() for name in table.column_names])
        yield set(table.column_names), table.to_pylist()


def expected_entries(drop: Path) -> dict[str, Row]:
    """The entry of every ZIP code that has a location."""
    locations: list[Row] = []
    population: dict[str, dict[int, int]] = defaultdict(dict)
    housing: dict[str, Row] = {}
    for columns, rows in rows_of(drop):
        if "latitude" in columns and "project_id" not in columns:
            locations = rows
        elif "tot_home_available_2021" in columns:
            housing = {row["zip_code"]: row for row in rows}
        elif any(name.startswith(("tot_census_pop", "tot_population")) for name in columns):
            for row in rows:
                population[row["zip_code"]].update(years_of(row))
    return {row["zip_code"]: entry_of(row, population.get(row["zip_code"], {}), housing) for row in locations}


def years_of(row: Row) -> dict[int, int]:
    if "year" in row:
        figures = {row["year"]: row["tot_population"]}
    else:
        figures = {int(name[-4:]): value for name, value in row.items() if name.startswith(("tot_census_", "tot_fx_"))}
    return {year: figure for year, figure in figures.items() if figure is not None}


def entry_of(row: Row, population: dict[int, int], housing: dict[str, Row]) -> Row:
    homes = housing.get(row["zip_code"], {})
    return {
        "location": {
            "zip_code": row["zip_code"],
            "county_name": row["county_name"],
            "county_fips_code": row["county_fips_code"],
            "city": f"{row['city_name']}, {row['state_code']}",
            "state_code": row["state_code"],
            "latitude": row["latitude"],
            "longitude": row["longitude"],
        },
        "population": [{"year": year, "tot_population": population[year]} for year in sorted(population)],
        "housing": {name: homes.get(name) for name in _HOUSING},
    }


def questions(entries: dict[str, Row]) -> Iterator[tuple[dict[str, str], list[Row]]]:
    """Every query, and the entries that must answer it."""
    cities: dict[str, list[Row]] = defaultdict(list)
    for zip_code, entry in sorted(entries.items()):
        yield {"zip_code": zip_code}, [entry]
        cities[entry["location"]["city"]].append(entry)
    for city, inside in cities.items():
        name, _, state = city.rpartition(", ")
        yield {"city_name": name, "state_code": state}, inside


def ask_all(base: str, key: str, asked: list[tuple[dict[str, str], list[Row]]]) -> list[str]:
    """The queries whose answer differs from what the drop says, member order included."""
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=10)
    wrong = []
    for query, entries in asked:
        connection.request("GET", f"{_PATH}?{urlencode(query)}", headers={"x-api-key": key})
        answer = connection.getresponse()
        body = answer.read()
        expected = {"total_results": len(entries), "zip_codes": entries}
        agrees = answer.status == 200 and json.dumps(json.loads(body)) == json.dumps(expected)
        if not agrees:
            wrong.append(f"{query}: {answer.status} {body[:200]!r}")
    return wrong


def main(base: str, key: str, drop: str) -> int:
    asked = list(questions(expected_entries(Path(drop))))
    began = time.monotonic()
    parts = [asked[start::_CALLERS] for start in range(_CALLERS)]
    with ThreadPoolExecutor(_CALLERS) as callers:
        wrong = [line for lines in callers.map(lambda part: ask_all(base, key, part), parts) for line in lines]
    zips = sum("zip_code" in query for query, _ in asked)
    seconds = time.monotonic() - began
    print(f"{zips:,} ZIP codes and {len(asked) - zips:,} cities: {len(asked) - len(wrong):,} agree, {seconds:.1f} s")  # noqa: T201 - it is what it is run for
    for line in wrong[:20]:
        print(line)  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
