"""The tables that a drop can bring: their columns, what each column means, and how a table is told from the others."""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from warehouse.schema.vocabulary import PROJECT_STATUSES

ColumnKind = Literal["zip", "fips", "state", "text", "integer", "real", "date"]


class Column(msgspec.Struct, frozen=True):
    """`required`: no row may lack a value. `maximum`: a larger figure is absurd. `unknown_below`: becomes NULL.

    `short`: queries ask for it, so it has at most 95 characters, none of them a control character. `meanings`: what
    sources write there, folded (vocabulary.py), and what it means to us.
    """

    name: str
    kind: ColumnKind
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    unknown_below: int | None = None
    short: bool = False
    meanings: Mapping[str, str] = {}


class Table(msgspec.Struct, frozen=True):
    """`key`: columns that tell rows apart. `distinctive`: columns that no other table has, which decide recognition.

    `needed`: there is no release without it. `of_locations`: rows of a ZIP code without a location are left out.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    distinctive: tuple[str, ...]
    needed: bool = False
    of_locations: bool = False

    @property
    def has_ids(self) -> bool:
        """Whether a row is a thing with an id of its own, which releases can be compared by."""
        return not self.needed and len(self.key) == 1

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


_PEOPLE_OF_A_ZIP_CODE = 1_000_000.0
_HOMES_OF_A_ZIP_CODE = 500_000.0

LOCATIONS = Table(
    "locations",
    (
        Column("zip_code", "zip", required=True),
        Column("city_name", "text", required=True, short=True),
        Column("state_code", "state", required=True),
        Column("county_name", "text", short=True),
        Column("county_fips_code", "fips"),
        Column("latitude", "real", minimum=-90, maximum=90),
        Column("longitude", "real", minimum=-180, maximum=180),
    ),
    key=("zip_code",),
    distinctive=("county_name", "county_fips_code", "latitude", "longitude"),
    needed=True,
)

POPULATION = Table(
    "population",
    (
        Column("zip_code", "zip", required=True),
        Column("year", "integer", required=True, minimum=1900, maximum=2200),
        Column("tot_population", "integer", minimum=0, maximum=_PEOPLE_OF_A_ZIP_CODE),
    ),
    key=("zip_code", "year"),
    distinctive=("year", "tot_population"),
    needed=True,
    of_locations=True,
)

HOUSING_FIGURES = (
    "tot_home_available_2020",
    "tot_home_available_2021",
    "tot_home_available_2022",
    "tot_home_available_2023",
    "est_total_home_demand_2030",
)

HOUSING = Table(
    "housing",
    (
        Column("zip_code", "zip", required=True),
        *(Column(name, "integer", minimum=0, maximum=_HOMES_OF_A_ZIP_CODE) for name in HOUSING_FIGURES),
    ),
    key=("zip_code",),
    distinctive=HOUSING_FIGURES,
    needed=True,
    of_locations=True,
)

ALIASES = Table(
    "aliases",
    (
        Column("zip_code", "zip", required=True),
        Column("city_name", "text", short=True),  # blank in one row of a real drop; such rows are left out
        Column("state_code", "state", required=True),
        Column("usps_status", "text", required=True),
    ),
    key=("zip_code", "city_name", "state_code"),
    distinctive=("usps_status",),
    of_locations=True,
)

PROJECTS = Table(
    "development_projects",
    (
        Column("project_id", "text", required=True, short=True),
        Column("project_name", "text"),
        Column("address", "text"),
        Column("city_name", "text", short=True),
        Column("state_code", "state"),
        Column("zip_code", "zip"),
        Column("project_type", "text"),
        Column("status", "text", meanings=PROJECT_STATUSES),
        Column("total_units", "integer", minimum=0, maximum=1_000_000, unknown_below=0),
        Column("affordable_units", "integer", minimum=0, maximum=1_000_000, unknown_below=0),
        Column("start_date", "date"),
        Column("completion_date", "date"),
        Column("status_date", "date"),
        Column("latitude", "real", minimum=-90, maximum=90),
        Column("longitude", "real", minimum=-180, maximum=180),
    ),
    key=("project_id",),
    distinctive=("project_id", "project_name", "project_type", "total_units"),
)

TABLES: tuple[Table, ...] = (LOCATIONS, POPULATION, HOUSING, ALIASES, PROJECTS)

# A wide population table has a column per year: counted figures (CENSUS) and forecasts (FX).
WIDE_POPULATION = re.compile(r"tot_(census|fx)_pop_([0-9]{4})")


def table_named(name: str) -> Table:
    return next(table_named for table_named in TABLES if table_named.name == name)
