"""The tables that a drop can contain: their columns, the type of each column, and how tables are distinguished."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Literal

import msgspec

from warehouse.schema.states import STATES
from warehouse.schema.vocabulary import PROJECT_STATUSES

# The most characters of a text, and of a name in queries.
LONGEST_TEXT, LONGEST_NAME = 10_000, 95
# Characters that are not allowed in names, as a class in regular expressions: they break or reverse a line of output,
# or are invisible.
CONTROL_CHARACTERS = r"\x00-\x1f\x7f-\x9f" + "\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"

ColumnKind = Literal["zip", "fips", "state", "text", "integer", "real", "date"]


class Column(msgspec.Struct, frozen=True):
    """One column of a table. Declared below, constant."""

    name: str
    kind: ColumnKind
    required: bool = False  # every row must have a value
    minimum: float | None = None  # a smaller figure is an error
    maximum: float | None = None  # a larger figure is an error
    unknown_below: int | None = None  # a smaller figure means unknown, and becomes NULL
    zero_within: float | None = None  # a value closer to 0 stands for an unknown one, and is an error
    choices: tuple[str, ...] = ()  # the only valid words
    short: bool = False  # a name in queries: at most `LONGEST_NAME` characters, no control characters
    meanings: Mapping[str, str] = {}  # the meaning of each word that sources write, folded (vocabulary.py)

    @property
    def longest(self) -> int:
        """The most characters of a text."""
        return LONGEST_NAME if self.short else LONGEST_TEXT


class Table(msgspec.Struct, frozen=True):
    """One table that a drop can contain. Declared below, constant."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]  # columns that identify a row
    distinctive: tuple[str, ...]  # columns that distinguish the table from the others
    needed: bool = False  # every release must have it
    of_locations: bool = False  # rows whose ZIP code has no location are left out

    @property
    def has_ids(self) -> bool:
        """Whether each row has an id of its own, by which releases can be compared."""
        return not self.needed and len(self.key) == 1

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


_STATE_CODES = tuple(state.code for state in STATES)
_MAX_PEOPLE_PER_ZIP_CODE = 1_000_000.0
_MAX_HOMES_PER_ZIP_CODE = 500_000.0

LOCATIONS = Table(
    "locations",
    (
        Column("zip_code", "zip", required=True),
        Column("city_name", "text", required=True, short=True),
        Column("state_code", "state", required=True, choices=_STATE_CODES),
        Column("county_name", "text", short=True),
        Column("county_fips_code", "fips"),
        Column("latitude", "real", minimum=-90, maximum=90, zero_within=0.5),
        Column("longitude", "real", minimum=-180, maximum=180, zero_within=0.5),
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
        Column("tot_population", "integer", minimum=0, maximum=_MAX_PEOPLE_PER_ZIP_CODE),
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
        *(Column(name, "integer", minimum=0, maximum=_MAX_HOMES_PER_ZIP_CODE) for name in HOUSING_FIGURES),
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
        Column("city_name", "text", short=True),  # one row of a real drop had none; such rows are left out
        Column("state_code", "state", required=True, choices=_STATE_CODES),
        Column("usps_status", "text", required=True, choices=("primary", "acceptable", "unacceptable")),
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
        Column("state_code", "state", choices=_STATE_CODES),
        Column("zip_code", "zip"),
        Column("project_type", "text"),
        Column("status", "text", meanings=PROJECT_STATUSES),
        Column("total_units", "integer", minimum=0, maximum=1_000_000, unknown_below=0),
        Column("affordable_units", "integer", minimum=0, maximum=1_000_000, unknown_below=0),
        Column("start_date", "date"),
        Column("completion_date", "date"),
        Column("status_date", "date"),
        Column("latitude", "real", minimum=-90, maximum=90, zero_within=0.5),
        Column("longitude", "real", minimum=-180, maximum=180, zero_within=0.5),
    ),
    key=("project_id",),
    distinctive=("project_id", "project_name", "project_type", "total_units"),
)

TABLES: tuple[Table, ...] = (LOCATIONS, POPULATION, HOUSING, ALIASES, PROJECTS)

# A wide population table has one column per year: counted (CENSUS) or forecast (FX).
WIDE_POPULATION = re.compile(r"tot_(census|fx)_pop_([0-9]{4})")


# Columns of any table that give its month: the day of its last update, and the number of the month.
UPDATED_AT, MONTH_CODE = "updated_at", "month_code"


def first_open_year(today: date) -> int:
    """Returns the first year whose figures may still be revised: the census publishes a year within two years."""
    return today.year - 2


def table_named(name: str) -> Table:
    """Returns the table called `name`, which must exist."""
    return next(table_named for table_named in TABLES if table_named.name == name)
