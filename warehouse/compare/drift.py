"""Checks the comparison with the current release against the limits of the drift rules."""

import math
from collections.abc import Iterator

from warehouse.rules.all_rules import RuleLimits, make_finding
from warehouse.schema.comparison import Comparison, RecordChanges
from warehouse.schema.findings import Finding

# A column is not checked if fewer records changed: in a small table, a large share may change in a month.
_FEWEST_RECORDS = 20


def drift_findings(comparison: Comparison, limits: RuleLimits) -> list[Finding]:
    """Returns findings on columns that vanish and on records, and a one-line summary of all changes."""
    found = [*_vanished(comparison, limits), *_lost_figures(comparison)]
    for name, records in comparison.records.items():
        found += [*_records_lost_and_gained(name, records, limits), *_records_changed(name, records, limits)]
    return [*found, _summary(comparison)]


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


def _records_lost_and_gained(name: str, records: RecordChanges, limits: RuleLimits) -> Iterator[Finding]:
    lost, gained = (number / (records.old_count or math.inf) for number in (records.lost, records.gained))
    if lost > (limit := limits["records-lost"]):
        others = "; about as many are new, so ids may have changed" if abs(gained / lost - 1) < 0.1 else ""
        yield make_finding(
            "records-lost",
            f"{records.lost:,} of {records.old_count:,} records of {name} would be lost "
            f"({lost:.1%}, limit {limit:.1%}){others}",
            table=name,
            count=records.lost,
            measured=lost,
            samples=records.lost_samples,
        )
    else:
        for state, number in records.emptied.items():
            yield make_finding(
                "records-lost",
                f"all {number:,} records of {name} in {state} would be lost",
                table=name,
                count=number,
                measured=1.0,
                measured_in={state: 1.0},
            )
    if gained > (limit := limits["records-gained"]):
        yield make_finding(
            "records-gained",
            f"{records.gained:,} records of {name} are new; {records.old_count:,} were there "
            f"({gained:+.1%}, limit {limit:.1%})",
            table=name,
            count=records.gained,
            measured=gained,
        )


def _records_changed(name: str, records: RecordChanges, limits: RuleLimits) -> Iterator[Finding]:
    for column, suspicion in records.suspicions.items():
        if (number := records.suspects[column]) > limits["suspect-records"]:
            yield make_finding(
                "suspect-records",
                f"{column} of {number:,} records of {name} changed: {suspicion}",
                table=name,
                column=column,
                count=number,
                measured=number,
                samples=records.moves.get(column, ()),
            )
    limit = limits["records-changed"]
    many = {column: number for column, number in records.columns.items() if number >= _FEWEST_RECORDS}
    shares = {column: number / records.common for column, number in many.items()}
    beyond = sorted((column for column in shares if shares[column] > limit), key=lambda column: -shares[column])
    if beyond:
        share = f"{shares[beyond[0]]:.0%} of {records.common:,}, limit {limit:.0%}"
        yield make_finding(
            "records-changed",
            f"many records of {name} have another {', '.join(beyond)} ({share}); "
            "columns may be exchanged, shuffled, coded, emptied or in another unit",
            table=name,
            column=beyond[0] if len(beyond) == 1 else None,
            count=many[beyond[0]],
            measured=shares[beyond[0]],
            samples=tuple(f"{column}: {', '.join(records.moves.get(column, ())[:3])}" for column in beyond[:5]),
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
