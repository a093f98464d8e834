"""Compares two releases: gains, losses and changes, in numbers.

Publishing compares a drop with the current release and checks the result (drift.py); `diff` shows it.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from warehouse import sql
from warehouse.compare.pairing import pair_releases
from warehouse.compare.state_comparison import compare_states, figure_change, key_figures
from warehouse.releases.catalog import Catalog
from warehouse.releases.files import table_file
from warehouse.schema.comparison import (
    CHANGE_STEPS,
    SIZE_STEPS,
    AnswerChanges,
    AnswerExample,
    Comparison,
    Distribution,
    FieldChange,
    FigureChange,
    Mover,
    PlaceChanges,
    RecordChanges,
    StateChange,
)
from warehouse.schema.errors import CatalogError
from warehouse.schema.tables import LOCATIONS, TABLES, first_open_year
from warehouse.sql import connections

_MAX_MOVERS = 10
_MAX_SAMPLES = 5
_MAX_DISTRIBUTIONS = 3
_MAX_STATES = 100
_MAX_FIELDS = 8  # in an example
_LEAPING = (
    "more than fivefold, of {:,} that changed; the column may be exchanged with another one, in another unit, "
    "or be per cent or totals of several records, or a join may have multiplied it"
)
_RENUMBERED = "they have the values of other ids; rows may have been numbered again"
_PLACE_FIELDS = ("city_name", "state_code", "county_name", "county_fips_code", "latitude", "longitude")


def compare(connection: duckdb.DuckDBPyConnection, old: Path, new: Path, first_open_year: int) -> Comparison:
    """Returns the changes from the normalised tables in folder `old` to those in `new`.

    Figures of `first_open_year` and later may still be revised. Leaves the tables of `pair_releases`.
    """
    pair_releases(connection, old, new, first_open_year)
    connection.execute(sql.statement("zip_changes"))
    connection.execute(sql.statement("state_totals"))
    figures = tuple(figure_change(row) for row in connection.execute(sql.statement("figure_totals")).fetchall())
    movers = connection.execute(sql.statement("largest_movers"), [_MAX_MOVERS]).fetchall()
    key = key_figures(figures, first_open_year)
    states = compare_states(connection, old, new, key)
    return Comparison(
        rows=_rows(connection, old, new),
        places=_places(connection),
        figures=figures,
        movers=tuple(Mover(*row) for row in movers),
        changed_zip_codes=_number(connection, sql.statement("changed_zip_codes")),
        records=_records(connection, old, new),
        key_figures=key,
        states=_largest(states),
        distributions=_distributions(connection, figures),
        answers=_compare_answers(connection, states, figures),
    )


def compare_releases(catalog: Catalog, old: str, new: str) -> Comparison:
    """Returns the changes from release `old` to release `new`. Raises CatalogError if one is unknown or damaged."""
    folders = _table_folders(catalog, old, new)
    with _reading(old, new) as connection:
        return compare(connection, *folders, _open_year())


def write_release_changes(catalog: Catalog, old: str, new: str, out: Path) -> int:
    """Writes every changed figure to `out`, and returns their number. Raises CatalogError, also if writing fails."""
    folders = _table_folders(catalog, old, new)
    with _reading(old, new) as connection:
        return write_figure_changes(connection, *folders, out)


def _table_folders(catalog: Catalog, old: str, new: str) -> tuple[Path, Path]:
    old_folder, new_folder = (catalog.folder(catalog.manifest(release).id) / "tables" for release in (old, new))
    return old_folder, new_folder


@contextmanager
def _reading(old: str, new: str) -> Iterator[duckdb.DuckDBPyConnection]:
    try:
        with connections.connect() as connection:
            yield connection
    except duckdb.Error as error:
        raise CatalogError(f"{old} and {new} cannot be compared: {sql.reason(error)}") from None


def write_figure_changes(connection: duckdb.DuckDBPyConnection, old: Path, new: Path, out: Path) -> int:
    """Writes every figure that differs to `out`, as CSV or Parquet by its suffix; returns their number."""
    pair_releases(connection, old, new, _open_year())
    form = "csv" if out.suffix.lower() == ".csv" else "parquet"
    text = sql.statement("write_changed_figures", path=sql.quoted(str(out)), form=form)
    return _number(connection, text)


def _largest(states: tuple[StateChange, ...]) -> tuple[StateChange, ...]:
    """Returns the states with the most ZIP codes: invented state codes must not fill a report."""
    ranked = sorted(states, key=lambda state: -sum(state.rows.get(LOCATIONS.name, (0, 0))))
    return tuple(sorted(ranked[:_MAX_STATES], key=lambda state: state.state))


def _open_year() -> int:
    return first_open_year(datetime.now(UTC).date())


def _places(connection: duckdb.DuckDBPyConnection) -> PlaceChanges:
    by_state = connection.execute(sql.statement("locations_gained_and_lost")).fetchall()
    ((old_count, new_count, changed),) = connection.execute(sql.statement("count_places")).fetchall()
    return PlaceChanges(
        old_count=old_count,
        new_count=new_count,
        gained={state: gained for state, gained, _ in by_state if gained},
        lost={state: lost for state, _, lost in by_state if lost},
        gained_samples=_samples(connection, "gained"),
        lost_samples=_samples(connection, "lost"),
        changed=changed,
    )


def _samples(connection: duckdb.DuckDBPyConnection, fate: str) -> tuple[str, ...]:
    rows = connection.execute(sql.statement("place_samples"), [fate, _MAX_SAMPLES]).fetchall()
    return tuple(row[0] for row in rows)


def _distributions(
    connection: duckdb.DuckDBPyConnection, figures: tuple[FigureChange, ...]
) -> tuple[Distribution, ...]:
    ranked = sorted((one for one in figures if one.changed), key=lambda one: -one.moved_share)
    names = [one.figure for one in ranked[:_MAX_DISTRIBUTIONS]]
    steps: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * len(SIZE_STEPS))
    steps |= {(name, "changes"): [0] * len(CHANGE_STEPS) for name in names}
    for figure, kind, step, count in connection.execute(sql.statement("figure_steps"), [names]).fetchall():
        steps[figure, kind][step] = count
    return tuple(
        Distribution(
            figure=name,
            changes=tuple(steps[name, "changes"]),
            old_sizes=tuple(steps[name, "old"]),
            new_sizes=tuple(steps[name, "new"]),
        )
        for name in names
    )


def _rows(connection: duckdb.DuckDBPyConnection, old: Path, new: Path) -> dict[str, tuple[int | None, int | None]]:
    names = sorted({path.stem for folder in (old, new) for path in folder.glob("*.parquet")})
    return {name: (_count(connection, old, name), _count(connection, new, name)) for name in names}


def _records(connection: duckdb.DuckDBPyConnection, old: Path, new: Path) -> dict[str, RecordChanges]:
    found = {}
    for table in TABLES:
        before, after = (table_file(folder, table.name) for folder in (old, new))
        if not table.has_ids or not before.exists() or not after.exists():
            continue
        parts = {"id": table.key[0], "old": _servable(table.name, old), "new": _servable(table.name, new)}
        others = ", ".join(name for name in table.column_names if name not in table.key)
        text = sql.statement("records_changed", columns=others, **parts)
        ((count, gained, lost, changed, renumbered, samples),) = connection.execute(text).fetchall()
        columns = {}
        suspicions: dict[str, tuple[str, int]] = {}
        for column in table.columns if changed else ():
            text = sql.statement("column_moves", column=column.name, isnumber=str(column.kind == "integer"), **parts)
            ((number, leaping, moves, suspicion, city),) = connection.execute(text).fetchall()
            columns[column.name] = number, tuple(moves)
            if suspicion or leaping:
                why = f"{suspicion or _LEAPING.format(number)}{f'; nearly all in {city}' if city else ''}"
                suspicions[column.name] = why, number if suspicion else leaping
        if 2 * renumbered > changed:
            suspicions = {table.key[0]: (_RENUMBERED, renumbered)}
        found[table.name] = RecordChanges(
            old_count=count,
            gained=gained,
            lost=lost,
            changed=changed,
            columns={name: number for name, (number, _) in columns.items() if number},
            moves={name: moves for name, (_, moves) in columns.items() if moves},
            suspicions={name: why for name, (why, _) in suspicions.items()},
            suspects={name: number for name, (_, number) in suspicions.items()},
            lost_samples=tuple(samples),
            emptied=dict(connection.execute(sql.statement("states_emptied", **parts)).fetchall()) if lost else {},
        )
    return found


def _servable(name: str, folder: Path) -> str:
    """Returns the FROM expression for the rows of a table that answers can show."""
    rows, locations = (sql.rows_of(table_file(folder, one)) for one in (name, "locations"))
    if f"servable_{name}" not in sql.statements():
        return rows
    city = sql.statement("named_city", value="p.city_name")
    return sql.statement(f"servable_{name}", rows=rows, locations=locations, city=city)


def _count(connection: duckdb.DuckDBPyConnection, folder: Path, name: str) -> int | None:
    path = table_file(folder, name)
    return _number(connection, sql.statement("count_rows", rows=sql.rows_of(path))) if path.exists() else None


def _number(connection: duckdb.DuckDBPyConnection, text: str) -> int:
    row = connection.execute(text).fetchone()
    return int(row[0]) if row else 0


def _compare_answers(
    connection: duckdb.DuckDBPyConnection, states: tuple[StateChange, ...], figures: tuple[FigureChange, ...]
) -> AnswerChanges:
    """Returns the changes for partners. Queries `zip_changes`, and the places and aliases of both releases."""
    for release in ("old", "new"):
        connection.execute(sql.statement("city_answers", release=release))
    ((gained, lost, changed),) = connection.execute(sql.statement("city_changes")).fetchall()
    return AnswerChanges(
        gained=sum(state.gained for state in states),
        lost=sum(state.lost for state in states),
        changed=sum(state.changed for state in states),
        without=sum(state.without for state in states),
        cities_gained=gained,
        cities_lost=lost,
        cities_changed=changed,
        old_figures=sum(figure.old_count for figure in figures),
        new_figures=sum(figure.new_count for figure in figures),
        examples=_answer_examples(connection),
    )


def _answer_examples(connection: duckdb.DuckDBPyConnection) -> tuple[AnswerExample, ...]:
    """Returns each chosen ZIP code once, with the first reason for its choice."""
    reasons: dict[int, str] = {}
    for zip_code, why in connection.execute(sql.statement("example_zip_codes")).fetchall():
        reasons.setdefault(zip_code, why)
    fields: dict[int, list[FieldChange]] = defaultdict(list)
    for zip_code, figure, old, new in connection.execute(sql.statement("example_figures"), [list(reasons)]).fetchall():
        fields[zip_code].append(FieldChange(figure, old, new))
    for zip_code, *values in connection.execute(sql.statement("example_places"), [list(reasons)]).fetchall():
        middle = len(_PLACE_FIELDS)
        for name, old, new in zip(_PLACE_FIELDS, values[:middle], values[middle:], strict=True):
            if old != new:
                fields[zip_code].append(FieldChange(name, old, new))
    return tuple(
        AnswerExample(
            zip_code=f"{zip_code:05}",
            why=why,
            fields=tuple(fields[zip_code][:_MAX_FIELDS]),
            more=max(0, len(fields[zip_code]) - _MAX_FIELDS),
        )
        for zip_code, why in reasons.items()
    )
