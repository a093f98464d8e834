"""The words and numbers of a report, the same in the terminal and on the page."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from config.text import printable
from warehouse.publishing.outcome import PublishOutcome
from warehouse.releases.catalog import Manifest
from warehouse.schema.comparison import Comparison, FigureChange, Mover, StateChange
from warehouse.schema.findings import Finding, ValidationReport
from warehouse.schema.tables import LOCATIONS, TABLES

_STATES = 12  # most states listed in a line
_LOSSES = 8  # most lines about figures that some ZIP codes lose
_SHORT_SAMPLE = 16  # characters; longer samples get a line each

Tone = Literal["good", "doubtful", "bad"]


class DropVerdict(msgspec.Struct, frozen=True):
    """The outcome of a drop, as the first line of a report."""

    tone: Tone
    word: str
    rest: str  # the rest of the sentence


def drop_verdict(outcome: PublishOutcome) -> DropVerdict:
    summary, manifest = outcome.report.summary(), outcome.manifest
    if outcome.result in ("refused", "held"):
        kept = f"{manifest.id} stays current" if manifest else "nothing is published"
        return DropVerdict("bad", "Held for approval" if outcome.result == "held" else "Refused", f"{summary}; {kept}.")
    doubt = _doubt(outcome.report)
    tone: Tone = "doubtful" if doubt else "good"
    if outcome.result == "already_current":
        return DropVerdict(tone, f"Already current{doubt}", f"{summary}.")
    if outcome.result == "passed":
        return DropVerdict(tone, f"Passed{doubt}" if doubt else "Good", f"it can be published; {summary}.")
    size = f"{contents(manifest)}; " if manifest else ""
    return DropVerdict(tone, f"Published{doubt}", f"{size}{summary}.")


def _doubt(report: ValidationReport) -> str:
    """Returns the gravest reason to look at a drop that is not refused; empty if there is none."""
    gone = len(vanished_figures(report.comparison)) if report.comparison else 0
    if gone:
        return f", but {gone} figure{'s vanish' if gone > 1 else ' vanishes'}"
    if any(finding.accepted is not None for finding in report.findings):
        return ", with accepted errors"
    return ", with warnings" if report.count("warning") else ""


class FindingGroup(msgspec.Struct, frozen=True):
    """Findings that are likely to have one cause."""

    name: str | None  # None unless several findings share it
    findings: tuple[Finding, ...]  # each followed by its consequences


def by_cause(findings: Sequence[Finding]) -> list[FindingGroup]:
    """Groups the findings by cause. Groups are in the order of their first findings."""
    groups: dict[object, list[Finding]] = {}
    key: object = None
    for number, finding in enumerate(findings):
        if finding.follows is None:
            key = number if finding.cause is None else (finding.severity, finding.cause)
        groups.setdefault(key, []).append(finding)
    return [
        FindingGroup(found[0].cause if sum(one.follows is None for one in found) > 1 else None, tuple(found))
        for found in groups.values()
    ]


def contents(manifest: Manifest) -> str:
    """Returns the contents of a release, in numbers."""
    records = (
        f", {manifest.tables[table.name].rows:,} {table.name.replace('_', ' ')}"
        for table in TABLES
        if table.has_ids and table.name in manifest.tables
    )
    return f"{manifest.zip_codes:,} ZIP codes, {manifest.cities:,} cities{''.join(records)}"


def number(value: str | float | None) -> str:
    """Returns a number with separators; a text stays as it is."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,}"


def share(value: float) -> str:
    """Returns a share as a percentage; a tiny one is `<0.1%`, never 0%."""
    return "0%" if not value else f"{value:.1%}" if value >= 0.0005 else "<0.1%"


def relative_change(old: int | None, new: int | None) -> str:
    """Returns the relative change; a tiny one is `<0.01%`, never 0%."""
    if not old or new is None:
        return ""
    share = (new - old) / old
    return "0%" if not share else f"{share:+.2%}" if abs(share) >= 0.00005 else f"{'+' if share > 0 else '-'}<0.01%"


def changed_figures(comparison: Comparison) -> list[FigureChange]:
    return [figure for figure in comparison.figures if figure.changed or figure.gained or figure.lost]


def vanished_figures(comparison: Comparison) -> list[str]:
    """Returns the figures that no ZIP code has any more."""
    return [figure.figure for figure in comparison.figures if figure.old_count and not figure.new_count]


def new_figures(comparison: Comparison) -> list[str]:
    """Returns the figures that no ZIP code had before."""
    return [figure.figure for figure in comparison.figures if figure.new_count and not figure.old_count]


def listed_figures(figures: Sequence[str]) -> str:
    """Returns the names of figures, with consecutive years as one: population 2024 to 2035."""
    runs: list[list[str]] = []
    for name in figures:
        stem, year = name[:-4], int(name[-4:])
        if runs and runs[-1][-1] == f"{stem}{year - 1}":
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1][-4:]}" for run in runs)


def unchanged_line(comparison: Comparison) -> str:
    """Returns how many figures did not change; empty if all did."""
    same = len(comparison.figures) - len(changed_figures(comparison))
    if not same:
        return ""
    return f"{same} figure{'s' if same > 1 else ''} did not change in any ZIP code."


def places_line(comparison: Comparison) -> str:
    places = comparison.places
    gained, lost = sum(places.gained.values()), sum(places.lost.values())
    numbers = f"{places.old_count:,} → {places.new_count:,}"
    return f"{numbers}: {gained:,} new, {lost:,} gone, {places.changed:,} moved or renamed"


def figures_line(comparison: Comparison) -> str:
    many = comparison.changed_zip_codes
    return f"changed in {many:,} ZIP code{'' if many == 1 else 's'}"


def by_state(numbers: Mapping[str, int]) -> str:
    """Returns the states with the largest numbers: "NY 41, TX 7 and 3 more states"."""
    ranked = sorted(((state, number) for state, number in numbers.items() if number), key=lambda one: (-one[1], one[0]))
    more = len(ranked) - _STATES
    listed = ", ".join(f"{state or '(none)'} {number:,}" for state, number in ranked[:_STATES])
    return f"{listed} and {more} more state{'s' if more > 1 else ''}" if more > 0 else listed


def losses_lines(comparison: Comparison) -> list[tuple[str, str]]:
    """Returns the losses of partners as (name, line): figures, ZIP codes, cities, then rows of tables with ids."""
    places, answers = comparison.places, comparison.answers
    lines: list[tuple[str, str | int]] = [
        ("Figures gone from every ZIP code", listed_figures(vanished_figures(comparison))),
        ("ZIP codes gone", places_of(places.lost, places.lost_samples)),
    ]
    if answers is not None:
        where = by_state({one.state: one.without for one in comparison.states})
        lines.append(
            ("ZIP codes that lose a figure", answers.without and f"{answers.without:,}{where and f': {where}'}")
        )
    lines += _lost_figures(comparison)
    if answers is not None:
        lines.append(("Cities gone", answers.cities_lost and f"{answers.cities_lost:,}"))
    for name, one in comparison.records.items():
        lines.append((f"{name} gone", one.lost and f"{one.lost:,} of {one.old_count:,}{_such_as(one.lost_samples)}"))
    return [(name, str(line)) for name, line in lines if line]


def _lost_figures(comparison: Comparison) -> list[tuple[str, str]]:
    """Returns the figures that some ZIP codes lose. Those with equal numbers share a line, and 8 lines are shown."""
    groups: dict[tuple[int, int], list[str]] = {}
    for one in comparison.figures:
        if one.lost and one.new_count:
            groups.setdefault((one.lost, one.old_count), []).append(one.figure)
    ranked = sorted(groups.items(), reverse=True)
    lines = [
        (f"Figures lost in {lost:,} of {old:,} ZIP codes", listed_figures(names))
        for (lost, old), names in ranked[:_LOSSES]
    ]
    more = sum(len(names) for _, names in ranked[_LOSSES:])
    return [*lines, ("Figures lost in fewer ZIP codes", f"{more:,} more")] if more else lines


def places_of(numbers: Mapping[str, int], samples: Sequence[str]) -> str:
    """Returns the number of ZIP codes, by state, with samples; empty if there are none."""
    total = sum(numbers.values())
    return f"{total:,}: {by_state(numbers)}{_such_as(samples)}" if total else ""


def _such_as(samples: Sequence[str]) -> str:
    return f"; such as {', '.join(samples)}" if samples else ""


def answers_lines(comparison: Comparison) -> list[tuple[str, str]]:
    """Returns the changes for partners as (name, line). Empty if an earlier version made the comparison."""
    answers = comparison.answers
    if answers is None:
        return []
    lost = f"; {answers.without:,} lose figures" if answers.without else ""
    return [
        ("answers", _changes(answers.changed, "ZIP codes", answers.gained, answers.lost) + lost),
        ("", _changes(answers.cities_changed, "cities", answers.cities_gained, answers.cities_lost)),
        ("", f"{answers.old_figures:,} → {answers.new_figures:,} figures in all answers of ZIP codes"),
    ]


def _changes(changed: int, nouns: str, gained: int, lost: int) -> str:
    return f"{changed:,} {nouns} change, {gained:,} appear, {lost:,} vanish"


def extent(state: StateChange) -> float:
    """Returns the share of a state that changed: of the total of its figure that moved most, or of its ZIP codes."""
    most = state.most_moved
    old = state.rows.get(LOCATIONS.name, (0, 0))[0]
    gained = state.gained / old if old else 1.0
    return max(most.moved_share if most else 0.0, state.lost_share, gained)


def is_changed(state: StateChange) -> bool:
    return bool(extent(state) or state.changed or any(old != new for old, new in state.rows.values()))


def worst_first(states: Iterable[StateChange]) -> list[StateChange]:
    return sorted(states, key=lambda state: (-extent(state), state.state))


def state_label(state: StateChange) -> str:
    """Returns the share of a state that changed, or whether the whole state is new or gone."""
    old, new = state.rows.get(LOCATIONS.name, (0, 0))
    if old and not new:
        return "gone"
    return "new" if new and not old else share(extent(state))


def before_now(old: int | None, new: int | None) -> str:
    """Returns both numbers, or one if they are equal."""
    return number(new) if old == new else f"{number(old)} → {number(new)}"


def place_of(mover: Mover) -> str:
    return ", ".join(part for part in (mover.city_name, mover.state) if part)


def state_name(state: StateChange) -> str:
    return state.state or "(none)"


def records_lines(comparison: Comparison) -> list[tuple[str, str]]:
    """Returns the name and the changes of every table whose rows have ids."""
    return [
        (name, f"{records.gained:,} new, {records.lost:,} gone, {records.changed:,} changed")
        for name, records in comparison.records.items()
    ]


def remedy_of(finding: Finding) -> str | None:
    """Returns what to do about a finding. For a consequence: correct its cause, which corrects it too."""
    return f"follows from {finding.follows}: correct that first" if finding.follows else finding.remedy


def samples_of(finding: Finding) -> list[str]:
    """Returns the samples that the message does not contain."""
    return [printable(sample) for sample in finding.samples if sample not in finding.message]


def in_a_row(samples: Iterable[str]) -> bool:
    """Whether samples are short enough for one line."""
    return all(len(sample) <= _SHORT_SAMPLE for sample in samples)
