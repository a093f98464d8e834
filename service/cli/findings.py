"""Findings and releases as a data engineer reads them: summary first, details below."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.markup import escape

from service.cli.output import table
from warehouse.findings import Finding, Report
from warehouse.releases import Manifest

_COLOURS = {"error": "bold red", "warning": "yellow", "info": "dim"}


class Progress(Protocol):
    def __call__(self, step: str, /) -> None: ...


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
