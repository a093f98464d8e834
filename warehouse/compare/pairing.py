"""Temporary tables with the figures, places and aliases of two releases side by side. Comparisons query them."""

from pathlib import Path

import duckdb

from warehouse import sql
from warehouse.releases.files import table_file
from warehouse.schema.counties import RETIRED_COUNTIES
from warehouse.schema.states import STATES
from warehouse.schema.tables import ALIASES, HOUSING, HOUSING_FIGURES, LOCATIONS, POPULATION, TABLES

# Ordinals of housing figures begin here (compare.sql). The ordinal of a population is its year.
_FIRST_HOUSING = 10_000


def pair_releases(connection: duckdb.DuckDBPyConnection, old: Path | None, new: Path, first_open_year: int) -> None:
    """Creates the tables of the releases in folders `old` and `new`. Without `old`, everything is new.

    They are `placed_figures`, `known_figures`, `paired_places`, `changed_places`, `old_places`, `new_places`,
    `old_aliases` and `new_aliases`. Figures of `first_open_year` and later are open: they may still be revised.
    """
    _pair_places(connection, old, new)
    view_figures(connection, "old_figures", _rows(old, new))
    view_figures(connection, "new_figures", _rows(new, new))
    ordinals = [row[0] for row in connection.execute(sql.statement("figure_ordinals")).fetchall()]
    names = [_figure(ordinal) for ordinal in ordinals]
    listed = ", ".join(f"'{name}'" for name in names or HOUSING_FIGURES)  # an empty ENUM is an error
    connection.execute(sql.statement("known_figures", names=listed), [first_open_year, ordinals, names])
    connection.execute(sql.statement("placed_figures"))


def _rows(folder: Path | None, like: Path) -> dict[str, str]:
    """Returns the FROM expressions for the needed tables in `folder`. Without a folder, they have no rows."""
    tables = {table.name: sql.rows_of(table_file(folder or like, table.name)) for table in TABLES if table.needed}
    return tables if folder else {name: sql.statement("no_rows", rows=rows) for name, rows in tables.items()}


def view_figures(connection: duckdb.DuckDBPyConnection, view: str, rows: dict[str, str]) -> None:
    """Creates the view of the figures in `rows`, by table."""
    year = POPULATION.column("year")
    text = sql.statement(
        "figures_view",
        view=view,
        population=rows[POPULATION.name],
        first=str(year.minimum),
        last=str(year.maximum),
        housing=rows[HOUSING.name],
        ordinals=", ".join(str(_FIRST_HOUSING + number) for number in range(len(HOUSING_FIGURES))),
        figures=", ".join(HOUSING_FIGURES),
    )
    connection.execute(text)


def total_figures(connection: duckdb.DuckDBPyConnection) -> None:
    """Creates the other tables and macros that the rules query, from the tables of `pair_releases`."""
    _create_states(connection)
    _create_areas(connection, "area_figures", "(SELECT *, old AS current FROM placed_figures)")
    for name in (
        "latest_count",
        "last_year",
        "drift_of",
        "losses_of",
        "figures_by_state",
        "one_way_figures",
        "series_by_state",
        "moved_figures",
        "figure_sample",
        "county_growth",
    ):
        connection.execute(sql.statement(name))


def pair_baseline(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Creates `baseline_figures` from the release in `folder` and the tables of `pair_releases`."""
    rows = _rows(folder, folder)
    view_figures(connection, "old_baseline", rows)
    _create_areas(connection, "baseline_figures", sql.statement("since_baseline", locations=rows[LOCATIONS.name]))


def _create_areas(connection: duckdb.DuckDBPyConnection, table: str, figures: str) -> None:
    connection.execute(sql.statement("area_figures", table=table, figures=figures))


def _create_states(connection: duckdb.DuckDBPyConnection) -> None:
    columns = [[state.code for state in STATES], [state.fips for state in STATES], [state.box for state in STATES]]
    connection.execute(sql.statement("known_states"), columns)
    prefixes = [(state.code, prefix) for state in STATES for prefix in state.zip_prefixes]
    connection.execute(sql.statement("known_prefixes"), [list(column) for column in zip(*prefixes, strict=True)])
    retired = [(code, successor) for code, successors in RETIRED_COUNTIES.items() for successor in successors]
    connection.execute(sql.statement("retired_counties"), [list(column) for column in zip(*retired, strict=True)])


def _figure(ordinal: int) -> str:
    return f"population {ordinal}" if ordinal < _FIRST_HOUSING else HOUSING_FIGURES[ordinal - _FIRST_HOUSING]


def _pair_places(connection: duckdb.DuckDBPyConnection, old: Path | None, new: Path) -> None:
    for name, rows in (("old_places", _rows(old, new)), ("new_places", _rows(new, new))):
        connection.execute(sql.statement("places", table=name, locations=rows[LOCATIONS.name]))
    connection.execute(sql.statement("paired_places"))
    connection.execute(sql.statement("changed_places"))
    for name, folder in (("old_aliases", old), ("new_aliases", new)):
        _view_aliases(connection, name, folder)


def _view_aliases(connection: duckdb.DuckDBPyConnection, name: str, folder: Path | None) -> None:
    path = table_file(folder, ALIASES.name) if folder is not None else None
    if path is None or not path.exists():
        connection.execute(sql.statement("no_aliases", table=name))
    else:
        connection.execute(sql.statement("aliases_of", table=name, aliases=sql.rows_of(path)))
