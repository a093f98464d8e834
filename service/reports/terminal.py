"""Prints findings, comparisons and releases for a data engineer: summary first, details below."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from config.text import printable
from service.reports import wording
from service.reports.terminal_comparison import print_comparison
from service.reports.text_table import NARROW, TextTable, facts_table, plain, text_table
from warehouse.publishing.outcome import PublishOutcome
from warehouse.releases.catalog import Manifest, Origin
from warehouse.releases.pointer import Pointer
from warehouse.rules.failures import FailureFile
from warehouse.schema.findings import Acceptance, Finding, Severity, ValidationReport
from warehouse.schema.progress import ProgressCallback

_FILES = 3  # most file names shown for a table
_SAMPLES = 5  # most samples shown for a finding; the page and --json have all
# The share of a publish that is done when a step begins; measured with a drop of the whole country.
_BEGINS = {
    "reading": 0.08,
    "validating": 0.18,
    "writing": 0.22,
    "comparing": 0.32,
    "encoding": 0.55,
    "uploading": 0.9,
    "switching": 0.97,
    "waiting": 0.98,
}
PUBLISH, CHECK = 1.0, 0.55  # arguments of `progress`
_COLOURS = {"error": "bold red", "warning": "yellow", "info": "dim"}
_TONES = {"good": "bold green", "doubtful": "bold yellow", "bad": "bold red"}


def severity_text(severity: Severity) -> Text:
    return Text(severity, _COLOURS[severity])


@contextmanager
def progress(console: Console, whole: float | None = None) -> Iterator[ProgressCallback]:
    """Shows the step under way, in a terminal only. `whole`: for a publish, or a part of it, what share it is."""
    if not console.is_terminal:
        yield lambda _step, /: None
        return
    shown = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *((BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn()) if whole else ()),
        console=console,
        transient=True,
    )
    with shown:
        task = shown.add_task("starting", total=whole)
        yield lambda step, /: shown.update(task, description=plain(step), completed=_BEGINS.get(step.split()[0]))


def print_report(console: Console, report: ValidationReport) -> None:
    """Prints every finding, worst first: severity and rule on the left, the message beside them (narrow: below).

    Consequences of a finding are indented below it.
    """
    if not report.findings:
        return
    narrow = console.width < NARROW
    rows = TextTable.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True)
    rows.add_column(no_wrap=True)
    rows.add_column(overflow="fold")
    for group in wording.by_cause(report.findings):
        if group.name is not None:
            cause = Text(f"{group.name}:", "dim")
            console.print(cause) if narrow else rows.add_row("", "", cause)
        for finding in group.findings:
            if narrow:
                indent = 2 if finding.follows else 0
                console.print(Padding(severity_text(finding.severity) + Text(" ") + _rule(finding), (0, 0, 0, indent)))
                console.print(Padding(_body(finding), (0, 0, 0, indent + 2)))
            else:
                below = Text("└ ", "dim") if finding.follows else Text()
                rows.add_row(severity_text(finding.severity), below + _rule(finding), _body(finding))
    if not narrow:
        console.print(rows)
    console.print()


def print_drop_outcome(console: Console, outcome: PublishOutcome) -> None:
    """Prints the outcome of a drop, its findings, and how it compares with the current release."""
    verdict = wording.drop_verdict(outcome)
    console.print(f"[{_TONES[verdict.tone]}]{verdict.word}[/]: {verdict.rest}\n")
    print_report(console, outcome.report)
    if outcome.report.comparison is not None:
        before = None if outcome.result == "published" else outcome.manifest
        title = f"Against {before.id if before else 'the previous release'}"
        print_comparison(console, outcome.report.comparison, title)


def print_failures(console: Console, files: Sequence[FailureFile]) -> None:
    """Prints the files of failing rows."""
    console.print("all failing rows, by rule:" if files else "no failing rows")
    for file in files:
        rows = f"the first {file.rows:,} rows" if file.cut else f"{file.rows:,} row{'s' if file.rows > 1 else ''}"
        console.print(f"  {plain(file.path)}: {rows}", soft_wrap=True)
    console.print()


def print_releases(
    console: Console, place: tuple[str, str], releases: Sequence[Manifest], pointer: Pointer | None
) -> None:
    """Prints the current release, then one line for each, newest first, then who published them."""
    current, previous = (pointer.release, pointer.previous) if pointer else (None, None)
    many = f"{len(releases)} release{'s' if len(releases) > 1 else ''}"
    console.print(f"{many}; " + (f"current is [bold]{plain(current)}[/bold]" if current else "none is current"))
    console.print(f"[dim]{place[0]} {plain(place[1])}[/dim]\n", soft_wrap=True)
    wide = console.width >= NARROW
    sizes = ("ZIP codes", "cities") if wide else ("ZIP codes",)
    moment = ("published (UTC)",) if wide else ()  # the id contains it too
    shown = text_table("release", *moment, *sizes, "warnings", "", numeric=("ZIP codes", "cities", "warnings"))
    shown.columns[0].no_wrap = True
    shown.collapse_padding = not wide
    for manifest in releases:
        published = (f"{manifest.published_at:%Y-%m-%d %H:%M:%S}",) if wide else ()
        counts = (f"{manifest.zip_codes:,}", f"{manifest.cities:,}")[: len(sizes)]
        warnings = str(manifest.findings.get("warning", 0))
        shown.add_row(manifest.id, *published, *counts, warnings, _marks(manifest, current, previous))
    console.print(shown)
    origins = text_table("release", "published by")
    for manifest in releases:
        if manifest.origin is not None:
            origins.add_row(manifest.id, _origin(manifest.origin))
    if origins.row_count:
        console.print()
        console.print(origins)


def print_manifest(console: Console, place: tuple[str, str], manifest: Manifest, pointer: Pointer | None) -> None:
    """Prints a release. `place` is its location; `pointer` is given if it is the current release."""
    state = "  [green]current[/green]" if pointer else ""
    made_up = "  [yellow]illustrative figures[/yellow]" if manifest.illustrative else ""
    console.print(f"[bold]{plain(manifest.id)}[/bold]{state}{made_up}")
    facts: list[tuple[str, RenderableType]] = [("published", f"{manifest.published_at:%Y-%m-%d %H:%M:%S} UTC")]
    if manifest.origin is not None:
        facts.append(("", _origin(manifest.origin)))
    if pointer is not None and pointer.by is not None:
        facts.append(("current since", f"{pointer.switched_at:%Y-%m-%d %H:%M:%S} UTC by {pointer.by}"))
    facts += [place, ("holds", wording.contents(manifest)), ("areas", ", ".join(manifest.areas))]
    if manifest.acceptance is not None:
        facts.append(("accepted", _acceptance(manifest.acceptance)))
    facts.append(("sources", Group(*(Text(printable(line), overflow="fold") for line in manifest.attribution))))
    console.print(facts_table(facts))
    console.print()
    wide = console.width >= NARROW
    tables = text_table("table", "rows", *(("checksum",) if wide else ()), "from", numeric=("rows",))
    tables.collapse_padding = not wide
    for name, info in sorted(manifest.tables.items()):
        origin = f"kept from {info.carried_from}" if info.carried_from else _files(info.files)
        tables.add_row(name, f"{info.rows:,}", *((info.checksum[:12],) if wide else ()), origin)
    console.print(tables)
    console.print()


def _rule(finding: Finding) -> Text:
    return Text(finding.rule, "dim" if finding.severity == "info" else "bold")


def _body(finding: Finding) -> RenderableType:
    """Returns the message, then on separate lines: file, samples, the reason given for accepting it, and the remedy."""
    lines: list[RenderableType] = [Text(printable(finding.message), overflow="fold")]
    if finding.file and finding.file not in finding.message:
        lines.append(Text(printable(finding.file), "dim", overflow="fold"))
    samples = wording.samples_of(finding)
    if samples:
        shown = samples[:_SAMPLES]
        together = [f"such as {', '.join(shown)}"] if wording.in_a_row(shown) else shown
        lines += [Text(sample, "dim", overflow="fold") for sample in together]
        if len(samples) > _SAMPLES:
            lines.append(Text(f"and {max(finding.count, len(samples)) - _SAMPLES:,} more", "dim"))
    if finding.accepted is not None:
        lines.append(_hanging("accepted, reason given:", Text(printable(finding.accepted), overflow="fold")))
    elif (remedy := wording.remedy_of(finding)) and finding.severity != "info":
        lines.append(_hanging("→", Text(printable(remedy), overflow="fold")))
    return Group(*lines)


def _hanging(sign: str, text: Text) -> Table:
    grid = TextTable.grid(padding=(0, 1, 0, 0))
    grid.add_row(sign, text)
    return grid


def _marks(manifest: Manifest, current: str | None, previous: str | None) -> Text:
    marks = (
        (Text("current", "green"), manifest.id == current),
        (Text("rolled back" if manifest.id > (current or "") else "previous", "dim"), manifest.id == previous),
        (Text("illustrative", "yellow"), manifest.illustrative),
    )
    return Text(" ").join(mark for mark, holds in marks if holds)


def _acceptance(acceptance: Acceptance) -> str:
    who = f"{', '.join(acceptance.rules)}, by {acceptance.by} at {acceptance.at:%Y-%m-%d %H:%M:%S} UTC"
    return f"{who}: {acceptance.reason}"


def _origin(origin: Origin) -> str:
    how = {"command": "by hand", "inbox": "through the inbox", "demo": "by the demo"}[origin.via]
    return f"{origin.by}, from {', '.join(origin.paths)}, {how}"


def _files(files: Sequence[str]) -> str:
    """Returns the first few names: a table can have hundreds of parts."""
    more = len(files) - _FILES
    return ", ".join(files[:_FILES]) + (f" and {more:,} more" if more > 0 else "")
