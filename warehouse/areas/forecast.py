"""The forecast area: population and housing by ZIP code.

Entries are encoded when a release is built; a look-up only joins bytes (`forecast_body`). Members are in the contract's
order (docs/reference/contract.md, "The fixed part").
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import duckdb
import msgspec
from msgspec import Meta

from warehouse import sql
from warehouse.areas import data_area, entry_file
from warehouse.areas.data_area import DataArea
from warehouse.areas.fields import (
    City,
    FipsCode,
    Latitude,
    Longitude,
    NextCursor,
    StateCode,
    TotalMatching,
    ZipCode,
    figure,
)
from warehouse.areas.paging import Cursors, Page
from warehouse.lookup.engine import Engine
from warehouse.places.keyset import KeySet
from warehouse.places.keyset_builder import KeySetBuilder
from warehouse.places.match import Match
from warehouse.places.regions import Region
from warehouse.schema.tables import HOUSING_FIGURES

# Measured: with lz4 and 512 rows a look-up reads one group in about a millisecond, and the file stays small.
_ROWS_PER_GROUP = 512


# The OpenAPI description shows partners the docstrings of these structs. Publishing creates 800,000 of the structs.
# They have no cycles: without gc=False, a fifth of the time would go into the search for cycles.
class Location(msgspec.Struct, frozen=True, gc=False):
    """The location of a ZIP code."""

    zip_code: ZipCode
    county_name: Annotated[str | None, Meta(description="Null for military addresses, and if no source has it.")]
    county_fips_code: Annotated[FipsCode | None, Meta(description="Null if county_name is null.")]
    city: City
    state_code: StateCode
    latitude: Latitude
    longitude: Longitude


class PopulationYear(msgspec.Struct, frozen=True, gc=False):
    """The population of one year."""

    year: Annotated[
        int,
        Meta(
            description="2010 and 2020 are counts, other years to 2024 estimates, and later years forecasts. No other "
            "member says which of these a figure is."
        ),
    ]
    tot_population: Annotated[
        int,
        figure(
            "All residents.",
            unit="people",
            source="decennial census (2010, 2020); American Community Survey, five-year estimates, table B01003 (other "
            "years to 2024); extrapolation (from 2025)",
            years="2010 to 2035",
        ),
    ]


def _homes_of(year: int) -> Meta:
    return figure(
        "Housing units of that year, occupied and vacant.",
        unit="homes",
        source="American Community Survey, five-year estimates, table B25001" if year > 2020 else "interpolation",
        years=str(year),
    )


class Housing(msgspec.Struct, frozen=True, gc=False):
    """The housing figures; null if unknown."""

    tot_home_available_2020: Annotated[int | None, _homes_of(2020)]
    tot_home_available_2021: Annotated[int | None, _homes_of(2021)]
    tot_home_available_2022: Annotated[int | None, _homes_of(2022)]
    tot_home_available_2023: Annotated[int | None, _homes_of(2023)]
    est_total_home_demand_2030: Annotated[
        int | None,
        figure(
            "Housing units that will be needed in 2030.",
            unit="homes",
            source="extrapolation from the growth of the county",
            years="2030",
        ),
    ]


class ForecastEntry(msgspec.Struct, frozen=True, gc=False):
    """All data of one ZIP code."""

    location: Annotated[Location, Meta(description="The place.")]
    population: Annotated[
        tuple[PopulationYear, ...],
        Meta(description="Ascending by year, without years that have no figure; empty if none has."),
    ]
    housing: Annotated[Housing, Meta(description="Homes, available and needed.")]


_Entries = Annotated[Sequence[ForecastEntry], Meta(description="Ascending by ZIP code.")]


class ForecastBody(msgspec.Struct, frozen=True):
    """The body of a 200: an entry for each ZIP code that the query matches."""

    total_results: Annotated[int, Meta(description="The length of zip_codes.")]
    zip_codes: _Entries


class ForecastPage(msgspec.Struct, frozen=True):
    """One page of the ZIP codes of a county or state."""

    total_results: Annotated[int, Meta(description="The length of zip_codes.")]
    total_matching: TotalMatching
    next_cursor: NextCursor
    zip_codes: _Entries


class _EncodedBody(msgspec.Struct, frozen=True):
    total_results: int
    zip_codes: list[msgspec.Raw]


class _EncodedPage(msgspec.Struct, frozen=True):
    total_results: int
    total_matching: int
    next_cursor: str | None
    zip_codes: list[msgspec.Raw]


_encoder = msgspec.json.Encoder()


def forecast_body(entries: Sequence[bytes]) -> bytes:
    """Returns the encoded body of a 200, from encoded entries that ascend by ZIP code."""
    return _encoder.encode(_EncodedBody(len(entries), [msgspec.Raw(entry) for entry in entries]))


# The bytes around the only entry of an encoded body.
_BEFORE, _, _AFTER = forecast_body([b"0"]).rpartition(b"0")


def entry_of(body: bytes) -> bytes:
    """Returns the encoded entry in the encoded body of a single ZIP code's answer."""
    return body[len(_BEFORE) : -len(_AFTER)]


def cursor_scope(query: str) -> str:
    """Returns the scope of a cursor for `query`: it is valid only there."""
    return f"forecast\n{query}"


def on_page(region: Region, page: Page) -> tuple[str, ...]:
    """Returns the ZIP codes of one page."""
    start = bisect_right(region.zip_codes, page.after)
    return region.zip_codes[start : start + page.limit]


async def look_up_page(engine: Engine, region: Region, page: Page, cursors: Cursors) -> bytes:
    """Returns the encoded body of a 200. Raises LookupBusy, LookupTimeout or LookupFailure, as `Engine.entries`."""
    shown = on_page(region, page)
    entries = [msgspec.Raw(entry) for entry in await engine.entries(FORECAST_AREA.name, shown)]
    is_last = not shown or shown[-1] == region.zip_codes[-1]
    following = None if is_last else cursors.encode(cursor_scope(region.query), shown[-1])
    return _encoder.encode(_EncodedPage(len(entries), len(region.zip_codes), following, entries))


async def look_up_forecast(engine: Engine, match: Match) -> bytes:
    """Returns the encoded body of a 200.

    Raises:
        LookupBusy, LookupTimeout, LookupFailure: as `Engine.entries`.
    """
    return forecast_body(await engine.entries(FORECAST_AREA.name, match.keys))


def forecast_answers_to_warm(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yields every answer of the release in `folder`, as canonical query and encoded body."""
    entries = dict(entry_file.read_entries(folder / FORECAST_AREA.entries))
    for match in FORECAST_AREA.keys_in(folder).matches():
        yield match.query, forecast_body([entries[zip_code] for zip_code in match.keys])


def build_forecast(connection: duckdb.DuckDBPyConnection, tables: Path, out: Path) -> KeySet:
    """Writes the area's entries to `out`, from the normalised tables of a release. Returns the key set."""
    keys = KeySetBuilder()

    def groups() -> Iterator[list[tuple[str, bytes]]]:
        entries = _entries(connection, tables)
        while group := list(islice(entries, _ROWS_PER_GROUP)):
            for entry in group:
                place = entry.location
                figures, county = _has_figures(entry), place.county_fips_code
                keys.add(place.zip_code, place.city, place.state_code, has_figures=figures, county=county)
                if county is not None and place.county_name is not None:
                    keys.add_county(county, place.county_name)
            yield [(entry.location.zip_code, _encoder.encode(entry)) for entry in group]

    entry_file.write_entries(out / FORECAST_AREA.entries, ["zip_code"], groups())
    for alias in data_area.acceptable_aliases(connection, tables):
        keys.add_alias(*alias)
    return keys.build()


def flatten_forecast(connection: duckdb.DuckDBPyConnection, tables: Path) -> None:
    """Creates the flat rows that partners download, from the normalised tables of a release."""
    files = _files(tables)
    found = connection.execute(sql.statement("population_years", population=files["population"])).fetchall()
    years = [str(year) for (year,) in found]
    figures = [*(f"p.tot_population_{year}" for year in years), *(f"h.{name}" for name in HOUSING_FIGURES)]
    columns = ["zip_code", *(sql.statement("population_of_year", year=year) for year in years)]
    connection.execute(sql.statement("flat_forecast", figures=", ".join(figures), years=", ".join(columns), **files))


def _has_figures(entry: ForecastEntry) -> bool:
    return bool(entry.population) or any(value is not None for value in msgspec.structs.astuple(entry.housing))


def _entries(connection: duckdb.DuckDBPyConnection, tables: Path) -> Iterator[ForecastEntry]:
    figures = ", ".join(f"h.{name}" for name in HOUSING_FIGURES)
    cursor = connection.execute(sql.statement("forecast_entries", figures=figures, **_files(tables)))
    while rows := cursor.fetchmany(4096):
        for row in rows:
            yield _entry(row)


def _files(tables: Path) -> dict[str, str]:
    return {name: sql.rows_of(tables / f"{name}.parquet") for name in FORECAST_AREA.tables}


def _entry(row: tuple[Any, ...]) -> ForecastEntry:
    zip_code, county, fips, city, state, latitude, longitude, years, figures, *housing = row
    return ForecastEntry(
        Location(zip_code, county, fips, f"{city}, {state}", state, latitude, longitude),
        tuple(map(PopulationYear, years or (), figures or ())),
        Housing(*housing),
    )


FORECAST_AREA = DataArea(
    name="forecast",
    tables=("locations", "population", "housing"),
    lookup="entries_by_zip_code",
    probe=(["00000"],),
    by_key=True,
    build=build_forecast,
    record="zip_code",
    flatten=flatten_forecast,
    answers_to_warm=lambda folder, _: forecast_answers_to_warm(folder),
)
