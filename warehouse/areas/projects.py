"""The projects area: development projects by ZIP code, or by city and state, in pages.

Cities have the names that the sources use (Brooklyn). If no project has a city of that name, the ZIP codes of the
postal city match (New York, NY), or else those of an accepted alias. The serving file lists a project under its ZIP
code, under its city, and, if several cities share the ZIP code, under both together. So a page is a range of rows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby, islice
from math import isqrt
from pathlib import Path
from typing import Annotated, Any

import duckdb
import msgspec
from msgspec import Meta

from warehouse import sql
from warehouse.areas import data_area, entry_file
from warehouse.areas.data_area import DataArea, FurtherLookup
from warehouse.areas.fields import (
    City,
    FipsCode,
    Latitude,
    Longitude,
    NextCursor,
    StateCode,
    TotalMatching,
    ZipCode,
)
from warehouse.areas.paging import Cursors, Page
from warehouse.lookup.engine import Engine
from warehouse.places.keyset import KeySet
from warehouse.places.keyset_builder import KeySetBuilder
from warehouse.places.match import Match
from warehouse.places.names import fold_city, strip_state
from warehouse.schema.vocabulary import PROJECT_STATUSES, UNKNOWN, ProjectStatus

_MIN_ROWS_PER_GROUP = 512

# Name of the SQL statement, and of the look-up.
FILTERED = "filtered_page_of_projects"

EncodedProject = tuple[str, bytes]  # id, encoded entry


# The OpenAPI description shows partners the docstrings of these structs.
class ProjectLocation(msgspec.Struct, frozen=True):
    """The location of a project: its own coordinates, and perhaps no ZIP code."""

    zip_code: Annotated[ZipCode | None, Meta(description="Null if the source has none.")]
    county_name: Annotated[str | None, Meta(description="Null if unknown.")]
    county_fips_code: Annotated[FipsCode | None, Meta(description="Null if county_name is null.")]
    city: City
    state_code: StateCode
    latitude: Latitude
    longitude: Longitude


class Project(msgspec.Struct, frozen=True):
    """One development project. `status` is one of the documented words, `status_source` is the source's own word."""

    project_id: Annotated[str, Meta(description="Unique; the source's own id, with a prefix for the city.")]
    project_name: Annotated[str | None, Meta(description="The source's own name.")]
    project_type: Annotated[str | None, Meta(description="The source's own word.")]
    status: Annotated[ProjectStatus, Meta(description="unknown if the source's word is none of these.")]
    status_source: Annotated[str | None, Meta(description="The source's own word for the status.")]
    status_date: Annotated[date | None, Meta(description="The day on which the status began.")]
    start_date: Annotated[date | None, Meta(description="Start of the work, if the source has it.")]
    completion_date: Annotated[date | None, Meta(description="End of the work, past or planned, if the source has it.")]
    tot_units: Annotated[int | None, Meta(description="All homes.")]
    affordable_units: Annotated[int | None, Meta(description="Affordable homes among tot_units.")]
    street_address: Annotated[str | None, Meta(description="As the source writes it.")]
    location: Annotated[ProjectLocation, Meta(description="The place.")]


class ProjectsBody(msgspec.Struct, frozen=True):
    """One page of development projects."""

    total_results: Annotated[int, Meta(description="The length of development_projects.")]
    total_matching: TotalMatching
    next_cursor: NextCursor
    development_projects: Annotated[Sequence[Project], Meta(description="Ascending by project_id.")]


class _EncodedBody(msgspec.Struct, frozen=True):
    total_results: int
    total_matching: int
    next_cursor: str | None
    development_projects: list[msgspec.Raw]


_encoder = msgspec.json.Encoder()


def cursor_scope(query: str) -> str:
    """Returns the scope of a cursor for `query`: it is valid only there."""
    return f"projects\n{query}"


def projects_body(query: str, rows: Sequence[EncodedProject], page: Page, matching: int, cursors: Cursors) -> bytes:
    """Returns the encoded body of a 200. `rows` are those of the page, and the first of the next page, if any."""
    shown = rows[: page.limit]
    following = cursors.encode(cursor_scope(query), shown[-1][0]) if len(rows) > page.limit else None
    return _encoder.encode(_EncodedBody(len(shown), matching, following, [msgspec.Raw(entry) for _, entry in shown]))


async def look_up_projects(engine: Engine, keys: KeySet, match: Match, page: Page, cursors: Cursors) -> bytes:
    """Returns the encoded body of a 200. Raises LookupBusy, LookupTimeout or LookupFailure, as `Engine.rows`."""
    rows = await engine.rows(PROJECTS_AREA.name, list(match.keys), page.after, page.limit + 1)
    found = [(project_id, entry) for project_id, entry in rows]
    return projects_body(match.query, found, page, keys.records(match.keys), cursors)


class ProjectFilters(msgspec.Struct, frozen=True, omit_defaults=True):
    """Filters for the projects of a place, which must pass all that are set. Days are ISO 8601, included."""

    status: str | None = None
    project_type: str | None = None  # in lower case
    status_date_from: str | None = None
    status_date_to: str | None = None
    start_date_from: str | None = None
    start_date_to: str | None = None
    completion_date_from: str | None = None
    completion_date_to: str | None = None

    def of(self, query: str) -> str:
        """Returns the canonical query, including the filters; without any, `query` itself."""
        filters = msgspec.json.encode(self).decode()
        return query if filters == "{}" else f"{query}{filters}"


async def look_up_filtered_projects(
    engine: Engine, match: Match, filters: ProjectFilters, page: Page, cursors: Cursors
) -> bytes:
    """Returns the encoded body of a 200 with the projects that pass `filters`; an empty page if none does."""
    parameters = (list(match.keys), *msgspec.structs.astuple(filters), page.after, page.limit + 1)
    rows = await engine.rows(FILTERED, *parameters)
    found = [(project_id, entry) for project_id, entry, _ in rows if project_id is not None]
    return projects_body(filters.of(match.query), found, page, rows[0][2], cursors)


def projects_answers_to_warm(folder: Path, cursors: Cursors) -> Iterator[tuple[str, bytes]]:
    """Yields the first page of every query with a single key, in one pass through the file."""
    page = Page()
    keys = PROJECTS_AREA.keys_in(folder)
    queries: dict[str, list[str]] = defaultdict(list)
    for match in keys.matches():
        if len(match.keys) == 1:
            queries[match.keys[0]].append(match.query)
    for place, rows in groupby(entry_file.read_entries(folder / PROJECTS_AREA.entries), key=lambda row: row[0]):
        first = [(project_id, entry) for _, project_id, entry in islice(rows, page.limit + 1)]
        for query in queries.get(place, ()):
            yield cursors.name(query, page), projects_body(query, first, page, keys.records((place,)), cursors)


def build_projects(connection: duckdb.DuckDBPyConnection, tables: Path, out: Path) -> KeySet:
    """Writes the area's entries to `out`, from the normalised tables of a release. Returns the key set."""
    files = {name: sql.rows_of(tables / f"{name}.parquet") for name in ("locations", "development_projects")}
    connection.execute(
        sql.statement(
            "place_projects",
            folded=sql.statement("folded_text", value="p.status"),
            city=sql.statement("named_city", value="p.city_name"),
            projects=files["development_projects"],
            locations=files["locations"],
        )
    )
    keys = KeySetBuilder()
    for zip_code, city, state, count in connection.execute(sql.statement("project_zips")).fetchall():
        keys.add_postal(zip_code, _printed(city, state), state, count)
    _name_places(connection, keys, _cities(connection))
    keys.add_types(name for (name,) in connection.execute(sql.statement("project_types")).fetchall())
    for alias in data_area.acceptable_aliases(connection, tables):
        keys.add_alias(*alias)
    _write(connection, out / PROJECTS_AREA.entries)
    return keys.build()


def flatten_projects(connection: duckdb.DuckDBPyConnection, _: Path) -> None:
    """Creates the flat rows that partners download, from the temporary tables of `build_projects`."""
    words = [list(PROJECT_STATUSES), list(PROJECT_STATUSES.values()), UNKNOWN]
    connection.execute(sql.statement("flat_projects"), words)


class _City(msgspec.Struct):
    """A city as sources name it. Lives while a release is built."""

    state: str
    spellings: list[str] = []  # most frequent first
    zips: Counter[str] = msgspec.field(default_factory=Counter)  # number of its projects by ZIP code
    records: int = 0


def _cities(connection: duckdb.DuckDBPyConnection) -> list[_City]:
    found: dict[tuple[str, str], _City] = {}
    for spelling, state, count, zips in connection.execute(sql.statement("project_cities")).fetchall():
        city = found.setdefault((state, fold_city(strip_state(spelling, state))), _City(state))
        city.spellings.append(spelling)
        city.zips.update(zips)
        city.records += count
    return list(found.values())


def _name_places(connection: duckdb.DuckDBPyConnection, keys: KeySetBuilder, cities: list[_City]) -> None:
    """Adds every city, and its part of each shared ZIP code, as a group. Writes their keys to a temporary table."""
    sharing = Counter(zip_code for city in cities for zip_code in city.zips)
    named: list[tuple[str, str, str | None, str, list[str]]] = []
    for city in cities:
        label = _printed(city.spellings[0], city.state)
        place = keys.add_group(label, city.state, city.zips, city.records)
        within: list[tuple[str | None, list[str]]] = [(None, [place])]
        for zip_code, records in city.zips.items():
            part = [keys.add_part(zip_code, place, label, records)] if sharing[zip_code] > 1 else []
            within.append((zip_code, [zip_code, place, *part]))
        named += [
            (spelling, city.state, zip_code, _printed(spelling, city.state), places)
            for spelling in city.spellings
            for zip_code, places in within
        ]
    columns = [[row[at] for row in named] for at in range(5)]
    connection.execute(sql.statement("name_project_places"), columns)


def _printed(city: str, state: str) -> str:
    """Returns the city as answers print it. The name in the source may already include the state."""
    return f"{strip_state(city, state)}, {state}"


def _write(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    ((total,),) = connection.execute(sql.statement("count_projects")).fetchall()
    size = _rows_per_group(2 * total)  # most projects are listed twice: under their city and their ZIP code
    cursor = connection.execute(sql.statement("project_entries"))

    def groups() -> Iterator[list[tuple[str, str, bytes]]]:
        while rows := cursor.fetchmany(size):
            yield [(row[0], row[1], _encoder.encode(_project(row[1:]))) for row in rows]

    entry_file.write_entries(path, ["place", "project_id"], groups())


def _rows_per_group(total: int) -> int:
    """Returns the size of row groups that makes look-ups cheapest.

    A look-up pays for the metadata of every group and for the rows of one. Measured, the metadata of a group costs as
    much as about 36 rows, so the best size is the square root of 36 times the number of rows.
    """
    return max(_MIN_ROWS_PER_GROUP, 6 * isqrt(total))


def _project(row: tuple[Any, ...]) -> Project:
    project_id, name, kind, word, status, status_date, start, end, units, affordable, address, *place = row
    zip_code, county, fips, city, state, latitude, longitude = place
    location = ProjectLocation(zip_code, county, fips, city, state, latitude, longitude)
    meaning = PROJECT_STATUSES.get(word, UNKNOWN)
    return Project(
        project_id, name, kind, meaning, status, status_date, start, end, units, affordable, address, location
    )


PROJECTS_AREA = DataArea(
    name="projects",
    tables=("locations", "development_projects"),
    lookup="page_of_projects",
    probe=(["00000"], "", 1),
    further_lookups=(FurtherLookup(FILTERED, (["00000"], *msgspec.structs.astuple(ProjectFilters()), "", 1)),),
    build=build_projects,
    record="project_id",
    flatten=flatten_projects,
    answers_to_warm=projects_answers_to_warm,
)
