"""Prints the outcome of publishing or checking a drop."""

from pathlib import Path

import click
import msgspec

from service.cli.output import printable_message, stderr
from service.publishing.publisher import Published
from service.reports import terminal
from service.reports.text_table import plain
from warehouse.publishing.outcome import PublishOutcome


def print_published(published: Published, failures: Path | None = None) -> None:
    """Prints the outcome, then the retired releases."""
    print_outcome(published.outcome, failures)
    if published.retired:
        stderr().print(f"[dim]retired {len(published.retired)}: {plain(', '.join(published.retired))}[/dim]")


def print_outcome(outcome: PublishOutcome, failures: Path | None = None) -> None:
    """Prints the report on standard error, and the id of the current release on standard output if it has the drop.

    `failures` is the folder for failing rows, if any.
    """
    terminal.print_drop_outcome(stderr(), outcome)
    if failures is not None:
        terminal.print_failures(stderr(), outcome.failures)
    if outcome.result in ("published", "already_current") and outcome.manifest is not None:
        click.echo(printable_message(outcome.manifest.id))


def outcome_as_json(outcome: PublishOutcome, failures: Path | None = None) -> dict[str, object]:
    return {
        "result": outcome.result,
        "release": outcome.manifest.id if outcome.manifest else None,
        "findings": outcome.report.findings,
        "comparison": outcome.report.comparison,
    } | ({} if failures is None else {"failures": outcome.failures})


def publish_members(published: Published) -> dict[str, object]:
    """Returns the JSON members of a publish other than its outcome."""
    return {
        "behind": [msgspec.structs.asdict(record) for record in published.behind],
        "retired": published.retired,
    }
