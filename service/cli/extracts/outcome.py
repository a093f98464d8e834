"""Prints the outcome of checking a drop, and of commands that switch releases."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click
import msgspec

from service.base import interruption
from service.cli.output import print_dimly, print_warnings, printable_message, stderr
from service.publishing.publisher import Published
from service.publishing.releases import ReleaseOperations
from service.reports import terminal
from service.reports.text_table import plain
from warehouse.publishing.outcome import PublishOutcome
from warehouse.releases.instances import InstanceRecord
from warehouse.schema.errors import CatalogError, WarehouseError


def print_published(releases: ReleaseOperations, published: Published, failures: Path | None = None) -> None:
    """Prints the outcome, then the retired releases, and how to go back if the drop is live."""
    print_outcome(published.outcome, failures)
    if published.retired:
        stderr().print(f"[dim]retired {len(published.retired)}: {plain(', '.join(published.retired))}[/dim]")
    if published.is_live:
        print_switch(releases, published.behind)


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


def published_as_json(published: Published, failures: Path | None = None) -> dict[str, object]:
    behind = [msgspec.structs.asdict(record) for record in published.behind]
    return outcome_as_json(published.outcome, failures) | {"behind": behind, "retired": published.retired}


@contextmanager
def explain_interruption(releases: ReleaseOperations) -> Iterator[None]:
    """Adds the current release to the last line of an interrupted command that switches releases."""
    before = _current(releases)
    try:
        yield
    except BaseException:
        if interruption.received_signal():
            now = _current(releases)
            interruption.explain_result("nothing was changed" if now == before else f"{now} is current now")
        raise


def _current(releases: ReleaseOperations) -> str | None:
    try:
        return releases.current()
    except CatalogError:
        return None


def print_place(releases: ReleaseOperations) -> None:
    """Prints where the releases are, because a missing setting is a common mistake."""
    print_dimly(f"{releases.kind} {releases.place}")


def print_switch(releases: ReleaseOperations, behind: Sequence[InstanceRecord]) -> None:
    """Prints that the release is current, and how to go back."""
    back = None
    with suppress(WarehouseError), releases.reading() as reader:  # the release is current even so
        pointer = reader.catalog.pointer()
        back = pointer.previous if pointer else None
    where = "" if behind else ", and every running instance serves it"
    undo = f"; `forecast extracts rollback` returns to {back}" if back else ""
    print_dimly(f"The release is current{where}{undo}.")


def warn_behind(releases: ReleaseOperations, behind: Iterable[InstanceRecord]) -> None:
    waited = f"{releases.served_within:g} s"
    print_warnings(
        f"{one.name} does not serve it yet, after {waited}; see {one.operator_url}/health/ready" for one in behind
    )
