"""Temporary tables with the figures, places and aliases of two releases side by side, which comparisons ask."""

from pathlib import Path

import duckdb

from warehouse import sql
from warehouse.releases.table_files import table_file
from warehouse.schema.states import STATES
from warehouse.schema.tables import ALIASES, HOUSING, HOUSING_FIGURES, LOCATIONS, POPULATION


def pair_figures(connection: duckdb.DuckDBPyConnection, old: Path | None, new: Path) -> None:
    """Creates `paired_figures`: every figure of the releases in folders `old` and `new`, side by side."""
    view_figures(connection, "old_figures", old)
    view_figures(connection, "new_figures", new)
    connection.execute(sql.statement("paired_figures"))


def view_figures(connection: duckdb.DuckDBPyConnection, view: str, folder: Path | None) -> None:
    """Creates the view of the figures of the release in `folder`. None: there is no such release, and no figure."""
    if folder is None:
        connection.execute(sql.statement("no_figures_view", view=view))
        return
    text = sql.statement(
        "figures_view",
        view=view,
        population=sql.rows_of(table_file(folder, POPULATION.name)),
        housing=sql.rows_of(table_file(folder, HOUSING.name)),
        figures=", ".join(HOUSING_FIGURES),
    )
    connection.execute(text)


def pair_places(connection: duckdb.DuckDBPyConnection, old: Path | None, new: Path) -> None:
    """Creates `old_places`, `new_places`, `old_aliases` and `new_aliases`."""
    _view_places(connection, "new_places", new)
    if old is None:
        connection.execute(sql.statement("no_places", table="old_places", like="new_places"))
    else:
        _view_places(connection, "old_places", old)
    for name, folder in (("old_aliases", old), ("new_aliases", new)):
        _view_aliases(connection, name, folder)


def place_figures(connection: duckdb.DuckDBPyConnection, first_open_year: int) -> None:
    """Creates what else plausibility.sql asks, from `paired_figures` and the places.

    Figures of `first_open_year` and later are open: they may still be revised.
    """
    _name_states(connection)
    connection.execute(sql.statement("known_figures"), [first_open_year])
    for statement in ("figures_with_states", "figures_by_state", "series_by_state", "figure_sample"):
        connection.execute(sql.statement(statement))


def _name_states(connection: duckdb.DuckDBPyConnection) -> None:
    columns = [[state.code for state in STATES], [state.fips for state in STATES], [state.box for state in STATES]]
    connection.execute(sql.statement("known_states"), columns)
    prefixes = [
        (state.code, f"{prefix:03}")
        for state in STATES
        for first, last in state.prefixes
        for prefix in range(first, last + 1)
    ]
    connection.execute(sql.statement("known_prefixes"), [list(column) for column in zip(*prefixes, strict=True)])


def _view_places(connection: duckdb.DuckDBPyConnection, name: str, folder: Path) -> None:
    rows = sql.rows_of(table_file(folder, LOCATIONS.name))
    connection.execute(sql.statement("places", table=name, locations=rows))


def _view_aliases(connection: duckdb.DuckDBPyConnection, name: str, folder: Path | None) -> None:
    path = table_file(folder, ALIASES.name) if folder is not None else None
    if path is None or not path.exists():
        connection.execute(sql.statement("no_aliases", table=name))
    else:
        connection.execute(sql.statement("aliases_of", table=name, aliases=sql.rows_of(path)))
