"""Checks the comparison with the current release against the limits of the drift rules."""

from collections.abc import Iterator, Mapping
from typing import Any

from warehouse.rules.all_rules import RuleLimits, make_finding
from warehouse.schema.comparison import Comparison, FigureChange
from warehouse.schema.findings import Finding
from warehouse.schema.tables import TABLES

# Tables without figures or ids: only their number of rows shows whether many were lost.
_COUNTED = tuple(table.name for table in TABLES if not table.needed and not table.has_ids)
# A column is not checked if fewer records changed: in a small table, a large share may change in a month.
_FEWEST_RECORDS = 20


def drift_findings(comparison: Comparison, limits: RuleLimits, first_open_year: int) -> list[Finding]:
    """Returns findings on all changes beyond their limit, and a one-line summary of all changes.

    Figures of `first_open_year` and later, and demand, may still be revised: they may change twice as much.
    """
    return [
        *_vanished(comparison, limits),
        *_gained(comparison, limits),
        *_coverage(comparison, limits, first_open_year),
        *_lost_figures(comparison),
        *_coverage_gained(comparison, limits),
        *_totals(comparison, limits, first_open_year),
        *_rows(comparison, limits),
        *_records_lost(comparison, limits),
        *_records_gained(comparison, limits),
        *_records_leaping(comparison, limits),
        *_records_changed(comparison, limits),
        _summary(comparison),
    ]


def _vanished(comparison: Comparison, limits: RuleLimits) -> Iterator[Finding]:
    counts = {change.figure: change.old_count for change in comparison.figures if not change.new_count}
    gone = [figure for figure, count in counts.items() if count]
    if len(gone) > limits["vanished-figure"]:
        yield make_finding(
            "vanished-figure",
            f"{len(gone)} figure(s) of the current release are missing: {', '.join(gone)}",
            figures=tuple(gone),
            count=max(counts.values()),
            measured=len(gone),
            samples=tuple(gone[:5]),
        )


def _gained(comparison: Comparison, limits: RuleLimits) -> Iterator[Finding]:
    places, limit = comparison.places, limits["zip-codes-gained"]
    number = sum(places.gained.values())
    share = number / places.old_count if places.old_count else 0
    if share > limit:
        yield make_finding(
            "zip-codes-gained",
            f"{number:,} ZIP codes are new; the current release has {places.old_count:,} "
            f"({share:.1%}, limit {limit:.1%})",
            table="locations",
            column="zip_code",
            count=number,
            measured=share,
            samples=places.gained_samples,
        )


def _coverage(comparison: Comparison, limits: RuleLimits, first_open_year: int) -> Iterator[Finding]:
    limit = limits["coverage-lost"]
    both = [change for change in comparison.figures if change.old_count and change.new_count]
    shares = {change: change.lost / change.old_count for change in both}
    beyond = _worst_first(shares, limit, first_open_year)
    if len(beyond) == 1:
        change = beyond[0]
        yield _make_figure_finding(
            "coverage-lost",
            change,
            f"{change.lost:,} of {change.old_count:,} ZIP codes lost their {change.figure} "
            f"({shares[change]:.1%}, limit {limit * _limit_factor(change, first_open_year):.1%})",
            count=change.lost,
            measured=shares[change],
        )
    elif beyond:
        yield make_finding(
            "coverage-lost",
            f"{len(beyond)} figures lost more than {limit:.1%} of their ZIP codes",
            count=len(beyond),
            measured=shares[beyond[0]],
            samples=tuple(
                f"{change.figure}: {change.lost:,} of {change.old_count:,} ({shares[change]:.1%})"
                for change in beyond[:5]
            ),
        )


def _lost_figures(comparison: Comparison) -> Iterator[Finding]:
    losing = sorted((one for one in comparison.figures if one.lost and one.new_count), key=lambda one: -one.lost)
    answers = comparison.answers
    # ZIP codes that are gone have no answer that could lose a figure
    if losing and (answers is None or answers.without):
        number = answers.without if answers else losing[0].lost
        yield make_finding(
            "lost-figures",
            f"{number:,} ZIP codes lose a figure that the current release has",
            count=number,
            samples=tuple(f"{one.figure}: {one.lost:,} of {one.old_count:,}" for one in losing[:5]),
        )


def _coverage_gained(comparison: Comparison, limits: RuleLimits) -> Iterator[Finding]:
    limit = limits["coverage-gained"]
    shares = {one: one.gained / one.old_count for one in comparison.figures if one.old_count}
    beyond = sorted((one for one in shares if shares[one] > limit), key=lambda one: -shares[one])
    if beyond:
        first = beyond[0]
        others = f", and {len(beyond) - 1} more figures as many" if len(beyond) > 1 else ""
        yield _make_figure_finding(
            "coverage-gained",
            first,
            f"{first.gained:,} ZIP codes have a new {first.figure}; {first.old_count:,} had it "
            f"({shares[first]:+.1%}, limit {limit:.1%}){others}; a join may have added rows",
            count=first.gained,
            measured=shares[first],
            figures=tuple(one.figure for one in beyond),
        )


def _totals(comparison: Comparison, limits: RuleLimits, first_open_year: int) -> Iterator[Finding]:
    limit = limits["total-drift"]
    drifts = {change: change.drift for change in comparison.figures if change.drift is not None}
    beyond = _worst_first(drifts, limit, first_open_year)
    if len(beyond) == 1:
        change = beyond[0]
        yield _make_figure_finding(
            "total-drift",
            change,
            f"the national total of {change.figure} changes from {change.old_total:,} to {change.new_total:,} "
            f"({drifts[change]:+.1%}, limit {limit * _limit_factor(change, first_open_year):.1%})",
            measured=abs(drifts[change]),
            samples=_movers_of(comparison, change),
        )
    elif beyond:
        yield make_finding(
            "total-drift",
            f"the national totals of {len(beyond)} figures change by more than {limit:.1%}",
            count=len(beyond),
            measured=abs(drifts[beyond[0]]),
            samples=tuple(
                f"{change.figure}: {change.old_total:,} to {change.new_total:,} ({drifts[change]:+.1%})"
                for change in beyond[:5]
            ),
        )


def _limit_factor(change: FigureChange, first_open_year: int) -> int:
    """Returns the factor by which the figure's limit is larger."""
    return 2 if change.figure.startswith("est_") or int(change.figure[-4:]) >= first_open_year else 1


def _worst_first(shares: Mapping[FigureChange, float], limit: float, first_open_year: int) -> list[FigureChange]:
    """Returns the figures beyond the limit, worst first. One finding covers them: a lost state affects all years."""
    beyond = [change for change, share in shares.items() if abs(share) > limit * _limit_factor(change, first_open_year)]
    return sorted(beyond, key=lambda change: -abs(shares[change]))


def _make_figure_finding(rule: str, change: FigureChange, message: str, **members: Any) -> Finding:
    table = "population" if change.figure.startswith("population ") else "housing"
    return make_finding(rule, message, table=table, column=change.figure, **members)


def _movers_of(comparison: Comparison, change: FigureChange) -> tuple[str, ...]:
    movers = [mover for mover in comparison.movers if mover.figure == change.figure]
    return tuple(f"{mover.zip_code}: {mover.old:,} to {mover.new:,}" for mover in movers[:5])


def _rows(comparison: Comparison, limits: RuleLimits) -> Iterator[Finding]:
    for name in _COUNTED:
        old, new = comparison.rows.get(name, (None, None))
        if old and new is not None and (old - new) / old > limits["rows-lost"]:
            share = (old - new) / old
            yield make_finding(
                "rows-lost",
                f"{name} changes from {old:,} to {new:,} rows ({-share:+.1%}, limit {limits['rows-lost']:.1%})",
                table=name,
                count=old - new,
                measured=share,
            )


def _records_lost(comparison: Comparison, limits: RuleLimits) -> Iterator[Finding]:
    limit = limits["records-lost"]
    for name, records in comparison.records.items():
        share = records.lost / records.old_count if records.old_count else 0
        if share > limit:
            others = (
                "; about as many are new, so ids may have changed"
                if abs(records.gained / records.lost - 1) < 0.1
                else ""
            )
            yield make_finding(
                "records-lost",
                f"{records.lost:,} of {records.old_count:,} records of {name} would be lost "
                f"({share:.1%}, limit {limit:.1%}){others}",
                table=name,
                count=records.lost,
                measured=share,
                samples=records.lost_samples,
            )
            continue
        for state, number in records.emptied.items():
            yield make_finding(
                "records-lost",
                f"all {number:,} records of {name} in {state} would be lost",
                table=name,
                count=number,
                measured=1.0,
                measured_in={state: 1.0},
            )


def _records_gained(comparison: Comparison, limits: RuleLimits) -> Iterator[Finding]:
    limit = limits["records-gained"]
    for name, records in comparison.records.items():
        share = records.gained / records.old_count if records.old_count else 0
        if share > limit:
            yield make_finding(
                "records-gained",
                f"{records.gained:,} records of {name} are new; {records.old_count:,} were there "
                f"({share:+.1%}, limit {limit:.1%})",
                table=name,
                count=records.gained,
                measured=share,
            )


def _records_leaping(comparison: Comparison, limits: RuleLimits) -> Iterator[Finding]:
    for name, records in comparison.records.items():
        for column, number in records.leaps.items():
            if number > limits["leaping-record"]:
                yield make_finding(
                    "leaping-record",
                    f"{column} of {number:,} records of {name} grew or shrank more than fivefold; "
                    "some may be in another unit, multiplied by a join, or exchanged with another column",
                    table=name,
                    column=column,
                    count=number,
                    measured=number,
                )


def _records_changed(comparison: Comparison, limits: RuleLimits) -> Iterator[Finding]:
    limit = limits["records-changed"]
    for name, records in comparison.records.items():
        many = {column: number for column, number in records.columns.items() if number >= _FEWEST_RECORDS}
        shares = {column: number / records.common for column, number in many.items()}
        beyond = sorted((column for column in shares if shares[column] > limit), key=lambda column: -shares[column])
        if beyond:
            share = f"{shares[beyond[0]]:.0%} of {records.common:,}, limit {limit:.0%}"
            yield make_finding(
                "records-changed",
                f"many records of {name} have another {', '.join(beyond)} ({share}); "
                "columns may be exchanged, shuffled, emptied or in another unit",
                table=name,
                column=beyond[0] if len(beyond) == 1 else None,
                count=many[beyond[0]],
                measured=shares[beyond[0]],
                samples=tuple(f"{column}: {many[column]:,} of {records.common:,}" for column in beyond[:5]),
            )


def _summary(comparison: Comparison) -> Finding:
    places = comparison.places
    gained, lost = sum(places.gained.values()), sum(places.lost.values())
    records = (
        f"; {name}: {one.gained:,} new, {one.lost:,} gone, {one.changed:,} with other values"
        for name, one in comparison.records.items()
        if one.gained or one.lost or one.changed
    )
    return make_finding(
        "changed-figures",
        f"compared with the current release: {gained:,} ZIP codes new, {lost:,} gone, "
        f"{places.changed:,} moved or renamed, "
        f"{comparison.changed_zip_codes:,} with other figures{''.join(records)}",
        count=comparison.changed_zip_codes,
    )
