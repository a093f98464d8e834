"""Findings and releases as a data engineer reads them: summary first, details below."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.markup import escape

from service.cli import report_html
from service.cli.output import table
from warehouse.comparison import Comparison
from warehouse.errors import CatalogError
from warehouse.findings import Finding, Report, Severity
from warehouse.publish import Outcome
from warehouse.releases import Manifest

_NUMERIC = ("before", "now", "change", "changed", "new", "gone")
_COLOURS = {"error": "bold red", "warning": "yellow", "info": "dim"}


class Progress(Protocol):
    def __call__(self, step: str, /) -> None: ...


def headline(outcome: Outcome) -> str:
    """What became of a drop, in one line."""
    summary, manifest = outcome.report.summary(), outcome.manifest
    if outcome.result == "refused":
        kept = f"{manifest.id} stays current" if manifest else "nothing is published"
        return f"[bold red]Refused[/]: {summary}; {kept}.\n"
    if outcome.result == "already_current":
        return f"[green]Already current[/]: {summary}.\n"
    if outcome.result == "passed":
        return f"[bold green]Good[/]: it could be published; {summary}.\n"
    size = f"{manifest.zip_codes:,} ZIP codes, {manifest.cities:,} cities; " if manifest else ""
    return f"[bold green]Published[/]: {size}{summary}.\n"


def severity_markup(severity: Severity) -> str:
    return f"[{_COLOURS[severity]}]{severity}[/]"


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Places, then national totals, then the largest movers."""
    places = comparison.places
    gained, lost = sum(places.gained.values()), sum(places.lost.values())
    console.print(
        f"ZIP codes {places.old_count:,} → {places.new_count:,}: {gained:,} new, {lost:,} gone, "
        f"{places.changed:,} moved or renamed; {comparison.changed_zip_codes:,} with other figures\n"
    )
    totals = table("figure", "before", "now", "change", "changed", "new", "gone", numeric=_NUMERIC)
    for change in comparison.figures:
        drift = "" if change.drift is None else f"{change.drift:+.2%}"
        row = (_number(change.old_total), _number(change.new_total), drift)
        totals.add_row(change.figure, *row, *(f"{number:,}" for number in (change.changed, change.gained, change.lost)))
    console.print(totals)
    if comparison.movers:
        movers = table("largest movers", "figure", "before", "now", numeric=_NUMERIC)
        for mover in comparison.movers:
            movers.add_row(mover.zip_code, mover.figure, f"{mover.old:,}", f"{mover.new:,}")
        console.print()
        console.print(movers)
    console.print()


def write_html(path: Path, outcome: Outcome, drop: str) -> None:
    """The same as a page. Raises CatalogError if it cannot be written."""
    try:
        path.write_text(report_html.render(outcome, drop), encoding="utf-8")
    except OSError as error:
        raise CatalogError(f"cannot write {path}: {error.strerror}") from None


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def print_report(console: Console, report: Report) -> None:
    if not report.findings:
        return
    for finding in report.findings:
        _print_finding(console, finding)


def print_manifest(console: Console, manifest: Manifest, *, current: bool) -> None:
    state = "  [green]current[/green]" if current else ""
    made_up = "  [yellow]illustrative figures[/yellow]" if manifest.illustrative else ""
    console.print(f"[bold]{manifest.id}[/bold]{state}{made_up}")
    console.print(f"published {manifest.published_at:%Y-%m-%d %H:%M:%S} UTC")
    console.print(f"{manifest.zip_codes:,} ZIP codes, {manifest.cities:,} cities, areas: {', '.join(manifest.areas)}\n")
    tables = table("table", "rows", "checksum", "from", numeric=("rows",))
    for name, info in sorted(manifest.tables.items()):
        origin = f"kept from {info.carried_from}" if info.carried_from else ", ".join(info.files)
        tables.add_row(name, f"{info.rows:,}", info.checksum[:12], escape(origin))
    console.print(tables)
    console.print("\n" + "\n".join(f"[dim]{escape(line)}[/dim]" for line in manifest.attribution) + "\n")


@contextmanager
def progress(console: Console) -> Iterator[Progress]:
    """Tells each step, in a terminal only."""
    if not console.is_terminal:
        yield lambda _step, /: None
        return
    with console.status("starting") as status:
        yield lambda step, /: status.update(escape(step))


def _print_finding(console: Console, finding: Finding) -> None:
    colour = _COLOURS[finding.severity]
    where = f" [dim]({escape(finding.file)})[/dim]" if finding.file and finding.file not in finding.message else ""
    console.print(f"[{colour}]{finding.severity:7}[/] [bold]{finding.rule}[/bold]  {escape(finding.message)}{where}")
    for sample in finding.samples:
        console.print(f"          [dim]{escape(sample)}[/dim]")
    if finding.remedy and finding.severity != "info":
        console.print(f"          → {escape(finding.remedy)}")
