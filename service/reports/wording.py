"""The words and numbers of a report, the same in the terminal and on the page."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from warehouse.publishing.publish import PublishOutcome
from warehouse.releases.catalog import Manifest
from warehouse.schema.comparison import Comparison, FigureChange
from warehouse.schema.findings import Finding
from warehouse.schema.tables import TABLES

SAMPLES_IN_A_ROW = 16  # characters; longer samples get a line each
NOT_COMPARED = "Not compared: there is no comparable release, or a required table is missing."

Tone = Literal["good", "bad"]


class Verdict(msgspec.Struct, frozen=True):
    """What became of a drop, as the first line of a report."""

    tone: Tone
    word: str
    rest: str  # of the sentence


def verdict(outcome: PublishOutcome) -> Verdict:
    summary, manifest = outcome.report.summary(), outcome.manifest
    if outcome.result in ("refused", "held"):
        kept = f"{manifest.id} stays current" if manifest else "nothing is published"
        if outcome.result == "held":
            return Verdict("bad", "Held for approval", f"{summary}; {kept}.")
        return Verdict("bad", "Refused", f"{summary}; {kept}.")
    if outcome.result == "already_current":
        return Verdict("good", "Already current", f"{summary}.")
    if outcome.result == "passed":
        return Verdict("good", "Good", f"it can be published; {summary}.")
    size = f"{contents(manifest)}; " if manifest else ""
    return Verdict("good", "Published", f"{size}{summary}.")


def contents(manifest: Manifest) -> str:
    """What a release holds, in numbers."""
    things = (
        f", {manifest.tables[table.name].rows:,} {table.name.replace('_', ' ')}"
        for table in TABLES
        if table.has_ids and table.name in manifest.tables
    )
    return f"{manifest.zip_codes:,} ZIP codes, {manifest.cities:,} cities{''.join(things)}"


def visible(text: str) -> str:
    """`text` with unprintable characters escaped: names come from files, and could control a terminal."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def relative_change(old: int | None, new: int | None) -> str:
    """The relative change; a tiny one is `<0.01%`, never 0%."""
    if not old or new is None:
        return ""
    share = (new - old) / old
    return "0%" if not share else f"{share:+.2%}" if abs(share) >= 0.00005 else f"{'+' if share > 0 else '-'}<0.01%"


def changed_figures(comparison: Comparison) -> list[FigureChange]:
    return [figure for figure in comparison.figures if figure.changed or figure.gained or figure.lost]


def unchanged_line(comparison: Comparison) -> str:
    """How many figures did not change; empty if all did."""
    same = len(comparison.figures) - len(changed_figures(comparison))
    if not same:
        return ""
    return f"{same} figure{'s are' if same > 1 else ' is'} the same in every ZIP code."


def places_line(comparison: Comparison) -> str:
    places = comparison.places
    gained, lost = sum(places.gained.values()), sum(places.lost.values())
    numbers = f"{places.old_count:,} → {places.new_count:,}"
    return f"{numbers}: {gained:,} new, {lost:,} gone, {places.changed:,} moved or renamed"


def figures_line(comparison: Comparison) -> str:
    many = comparison.changed_zip_codes
    return f"{many:,} ZIP code{'' if many == 1 else 's'} with other figures"


def records_lines(comparison: Comparison) -> list[tuple[str, str]]:
    """For every table whose rows have ids: its name and what changed."""
    return [
        (name, f"{records.gained:,} new, {records.lost:,} gone, {records.changed:,} with other values")
        for name, records in comparison.records.items()
    ]


def remedy_of(finding: Finding) -> str | None:
    """What to do about a finding. Nothing about a follow-on: correcting its cause corrects it too."""
    return f"follows from {finding.follows}: correct that first" if finding.follows else finding.remedy


def samples_of(finding: Finding) -> list[str]:
    """The samples that the message does not contain already."""
    return [visible(sample) for sample in finding.samples if sample not in finding.message]


def in_a_row(samples: Iterable[str]) -> bool:
    """Whether samples are short enough for one line."""
    return all(len(sample) <= SAMPLES_IN_A_ROW for sample in samples)
