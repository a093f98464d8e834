"""Compares the answers that partners get from two releases."""

from collections import defaultdict

import duckdb

from warehouse import sql
from warehouse.schema.comparison import AnswerChanges, AnswerExample, FieldChange, FigureChange, StateChange

_MAX_FIELDS = 8  # of an example
_PLACE_FIELDS = ("city_name", "state_code", "county_name", "county_fips_code", "latitude", "longitude")


def compare_answers(
    connection: duckdb.DuckDBPyConnection, states: tuple[StateChange, ...], figures: tuple[FigureChange, ...]
) -> AnswerChanges:
    """What changes for partners. Asks `zip_changes`, and the places and aliases of both releases."""
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
        examples=_examples(connection),
    )


def _examples(connection: duckdb.DuckDBPyConnection) -> tuple[AnswerExample, ...]:
    """Each ZIP code once, with the first of the reasons for which it was chosen."""
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
