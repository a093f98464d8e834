"""Compares two releases state by state."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import duckdb

from warehouse import sql
from warehouse.releases.files import table_file
from warehouse.schema.comparison import FigureChange, StateChange
from warehouse.schema.tables import HOUSING, POPULATION, TABLES


def key_figures(figures: Sequence[FigureChange], first_open_year: int) -> tuple[str, ...]:
    """Returns the key figures of states: the latest counted population, the latest homes, and demand.

    The latest figure that both releases have takes precedence.
    """
    years = [one for one in figures if one.figure.startswith("population ")]
    counted = [one for one in years if int(one.figure[-4:]) < first_open_year]
    homes = [one for one in figures if one.figure.startswith("tot_home_")]
    demand = [one for one in figures if one.figure.startswith("est_")]
    return tuple(_latest(kind) for kind in (counted or years, homes, demand) if kind)


def _latest(figures: Sequence[FigureChange]) -> str:
    both = [one for one in figures if one.old_count and one.new_count]
    return max(both or figures, key=lambda one: one.figure[-4:]).figure


def compare_states(
    connection: duckdb.DuckDBPyConnection, old: Path, new: Path, key: Sequence[str]
) -> tuple[StateChange, ...]:
    """Returns how each state changed, by code. Queries `state_totals` and `zip_changes`."""
    rows = _rows(connection, old, new)
    figures: dict[str, list[FigureChange]] = defaultdict(list)
    for state, *values in connection.execute(sql.statement("figures_of_states"), [key]).fetchall():
        figures[state].append(figure_change(values))
    answers = {row[0]: row[1:] for row in connection.execute(sql.statement("answers_of_states")).fetchall()}
    changes = []
    for state in sorted({*rows, *answers}):
        gained, lost, changed, without = answers.get(state, (0, 0, 0, 0))
        changes.append(
            StateChange(
                state=state,
                rows=rows.get(state, {}),
                gained=gained,
                lost=lost,
                changed=changed,
                without=without,
                figures=tuple(figures.get(state, ())),
            )
        )
    return tuple(changes)


def figure_change(values: Sequence[object]) -> FigureChange:
    """Returns a figure's change, from a row of `figure_totals`, or of `figures_of_states` without its state."""
    return FigureChange(**dict(zip(FigureChange.__struct_fields__, values, strict=True)))  # type: ignore[arg-type]


def _rows(connection: duckdb.DuckDBPyConnection, old: Path, new: Path) -> dict[str, dict[str, tuple[int, int]]]:
    """Returns the rows in both releases, by state and table. Figures of a moved ZIP code are in its new state."""
    found: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for table in TABLES:
        if "state_code" in table.column_names:
            before, after = (_rows_of_states(connection, table_file(folder, table.name)) for folder in (old, new))
            for state in {*before, *after}:
                found[state][table.name] = before.get(state, 0), after.get(state, 0)
    for state, *rows in connection.execute(sql.statement("figure_rows_of_states")).fetchall():
        for name, pair in ((POPULATION.name, rows[:2]), (HOUSING.name, rows[2:])):
            if any(pair):
                found[state][name] = pair[0] or 0, pair[1] or 0
    return found


def _rows_of_states(connection: duckdb.DuckDBPyConnection, path: Path) -> dict[str, int]:
    if not path.exists():
        return {}
    return dict(connection.execute(sql.statement("rows_of_states", rows=sql.rows_of(path))).fetchall())
