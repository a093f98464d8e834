"""Asks a running instance for every project of a drop by ZIP code and by city, and walks the pages of large cities.

``python -m tests.national_projects http://127.0.0.1:8000 KEY DROP DATA_FOLDER``: every field is held against the drop,
with none of the code that is checked; during each walk the two latest releases of the data folder are switched.
"""

import http.client
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pyarrow.parquet as pq

from warehouse.releases.catalog import Catalog
from warehouse.releases.changes import roll_back

_PATH = "/v1/development-projects"
_WALKS = ((limit, city) for city in ("San Francisco, CA", "Brooklyn, NY") for limit in (1000, 100, 7))
_STATUSES = {
    "pl filed": "proposed",
    "bp filed": "proposed",
    "pl approved": "approved",
    "bp approved": "approved",
    "bp issued": "permitted",
    "bp reinstated": "permitted",
    "construction": "under_construction",
    "in progress": "under_construction",
    "completed": "completed",
}

Row = dict[str, Any]
Query = dict[str, str | int]


def expected(drop: Path) -> list[Row]:
    """Every project as it must be answered, ascending."""
    rows = pq.read_table(drop / "development_projects.parquet").to_pylist()
    places = {row["zip_code"]: row for row in pq.read_table(drop / "zip_locations.parquet").to_pylist()}
    return [entry_of(row, places.get(row["zip_code"], {})) for row in sorted(rows, key=lambda row: row["project_id"])]


def entry_of(row: Row, place: Row) -> Row:
    days = {name: row[name] and row[name].isoformat() for name in ("status_date", "start_date", "completion_date")}
    units = {name: row[name] if (row[name] or 0) >= 0 else None for name in ("total_units", "affordable_units")}
    return {
        "project_id": row["project_id"],
        "project_name": row["project_name"],
        "project_type": row["project_type"],
        "status": _STATUSES[row["status"].lower()],
        "status_source": row["status"],
        **days,
        "tot_units": units["total_units"],
        "affordable_units": units["affordable_units"],
        "street_address": row["address"],
        "location": {
            "zip_code": row["zip_code"],
            "county_name": place.get("county_name"),
            "county_fips_code": place.get("county_fips_code"),
            "city": f"{row['city_name']}, {row['state_code']}",
            "state_code": row["state_code"],
            "latitude": row["latitude"],
            "longitude": row["longitude"],
        },
    }


class Asker:
    def __init__(self, base: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=10)
        self._key = key
        self.releases: set[str] = set()

    def ask(self, query: Query) -> Row:
        self._connection.request("GET", f"{_PATH}?{urlencode(query)}", headers={"x-api-key": self._key})
        answer = self._connection.getresponse()
        body: Row = json.loads(answer.read())
        assert answer.status == 200, body
        self.releases.add(answer.headers["x-data-release"])
        return body

    def walk(self, query: Query) -> Iterator[list[Row]]:
        while True:
            body = self.ask(query)
            assert body["total_results"] == len(body["development_projects"])
            yield body["development_projects"]
            if body["next_cursor"] is None:
                return
            query = {**query, "cursor": body["next_cursor"]}


def query_of(city: str) -> Query:
    name, _, state = city.rpartition(", ")
    return {"city_name": name, "state_code": state}


def reach_all(asker: Asker, projects: list[Row]) -> int:
    """How many places differ from the drop: ZIP codes, cities, and what lies in both."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for project in projects:
        city, zip_code = project["location"]["city"], project["location"]["zip_code"]
        groups["", city].append(project)
        if zip_code:
            groups[zip_code, ""].append(project)
            groups[zip_code, city].append(project)
    wrong = 0
    for place, inside in groups.items():
        zip_code, city = place
        query: Query = {"zip_code": zip_code, **(query_of(city) if city else {})}
        found = [one for page in asker.walk({**query, "limit": 1000}) for one in page]
        if json.dumps(found) != json.dumps(inside):  # member order included
            wrong += 1
            print("differs:", place, len(found), len(inside))  # noqa: T201 - it is what it is run for
    print(f"{len(projects):,} projects by {len(groups)} queries for ZIP code, city or both: {wrong} differ")  # noqa: T201
    return wrong


def switched_walk(asker: Asker, catalog: Catalog, city: str, limit: int, wanted: list[str]) -> bool:
    """Walks through `city` with a switch after the first page; whether it found each project once, in order."""
    asker.releases.clear()
    began, found, pages = time.monotonic(), [], 0
    for page in asker.walk({**query_of(city), "limit": limit}):
        found += [one["project_id"] for one in page]
        pages += 1
        if pages == 1:
            roll_back(catalog)
            time.sleep(1.0)  # every worker follows the pointer twice in this time
    right = found == wanted and len(asker.releases) == 2
    seconds = time.monotonic() - began
    what = f"{len(found):,} projects, {pages} pages, {len(asker.releases)} releases"
    print(f"{city}, limit {limit}: {what}, {seconds:.1f} s")  # noqa: T201
    return right


def main(base: str, key: str, drop: str, data: str) -> int:
    projects = expected(Path(drop))
    asker = Asker(base, key)
    wrong = reach_all(asker, projects)
    for limit, city in _WALKS:
        wanted = [one["project_id"] for one in projects if one["location"]["city"] == city]
        wrong += not switched_walk(asker, Catalog(Path(data)), city, limit, wanted)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
