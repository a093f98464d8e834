"""forecast extracts: the commands for drops. releases.py and rules.py have the others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from config.settings import Settings
from service.base import interruption
from service.cli.extracts.held import approve, discard, held, watch
from service.cli.extracts.outcome import (
    explain_interruption,
    outcome_as_json,
    print_outcome,
    print_place,
    print_published,
    published_as_json,
    warn_behind,
)
from service.cli.extracts.releases import diff, list_releases, retire_releases, rollback, show
from service.cli.extracts.rules import contract, rules, statuses
from service.cli.output import (
    FAILED,
    Output,
    load_settings,
    print_dimly,
    printable_message,
    stderr,
    wants_json,
    with_json,
)
from service.publishing.publisher import make_options, make_origin, publish_and_wait
from service.publishing.releases import FolderReleases, open_releases
from service.reports import terminal
from warehouse.drops.collection import is_inside
from warehouse.files.atomic import write_atomically
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.publishing.publish import dry_run
from warehouse.schema.errors import WarehouseError
from warehouse.sql import connections

_FOR_RELEASES = (list_releases, show, rollback, diff, retire_releases)
_FOR_INBOX = (watch, held, approve, discard)


@click.group(commands=[*_FOR_RELEASES, *_FOR_INBOX, rules, statuses, contract])
def extracts() -> None:
    """Check and publish drops; compare and roll back releases.

    A drop is a delivery of Parquet files. Publishing validates it and turns it into a release, which the service then
    serves.

    \b
    Examples:
      forecast extracts check drops/2026-10
      forecast extracts publish drops/2026-10
      forecast extracts list
      forecast extracts rollback
    """
    interruption.call_on_signal(connections.interrupt)


F = TypeVar("F", bound=Callable[..., Any])


def _drop_options(command: F) -> F:
    """Adds PATHS, and the options that `publish` and `check` share."""
    for option in (
        click.option(
            "--failures",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="Write all failing rows to DIR, outside the drop, one Parquet file for each rule. Replaces the files "
            "of an earlier run.",
        ),
        click.option("--strict", is_flag=True, help="Refuse the drop for warnings as well."),
        click.option(
            "--accept",
            "accepted",
            multiple=True,
            metavar="RULE[:STATE][=LIMIT]",
            help="Accept errors of RULE (in STATE only, up to LIMIT); to publish, needs --reason. Repeatable.",
        ),
        click.option(
            "--drop-table",
            "withdrawn",
            multiple=True,
            metavar="TABLE",
            help="Withdraw an optional table instead of keeping the current one. Repeatable.",
        ),
        click.argument("paths", nargs=-1, required=True),
    ):
        command = option(command)
    return command


@extracts.command(name="publish")
@_drop_options
@click.option("--reason", default="", help="The reason for --accept; stored in the release's manifest.")
@click.option(
    "--leave-behind",
    is_flag=True,
    help="Publish even if a running instance of an earlier version cannot read the release: it keeps serving its "
    "current one.",
)
@with_json
def publish_drop(
    paths: tuple[str, ...],
    withdrawn: tuple[str, ...],
    accepted: tuple[str, ...],
    reason: str,
    strict: bool,
    failures: Path | None,
    leave_behind: bool,
) -> Output:
    """Validate a drop and make it the current release.

    PATHS are folders, files or glob patterns. A table that is missing from the drop is taken from the current release.
    If there is any error, the current release stays and all findings are listed.

    Prints the release's id. Waits until every running instance on the data folder, or on the store of releases
    (FORECAST_RELEASES_URL), serves the release, and lists those that do not. Removes old releases beyond
    FORECAST_KEEP_RELEASES.

    Exit codes: 0 published or already current, 1 refused or failed, 2 wrong usage, 3 another publisher was first,
    130 interrupted.

    \b
    Examples:
      forecast extracts publish drops/2026-10
      forecast extracts publish zip_locations.parquet 'parts/housing-*.parquet'
      forecast extracts publish drops/2026-10 --accept total-drift=8% --reason "the source rebased its forecast"
    """
    if accepted and not reason.strip():
        raise click.UsageError("--accept needs --reason, which is stored in the release's manifest")
    settings = load_settings().settings
    origin = make_origin(paths, "command")
    options = _options(
        settings, paths, failures, accepted, reason.strip(), withdrawn=withdrawn, strict=strict, origin=origin
    )
    releases = open_releases(settings)
    with explain_interruption(releases), terminal.progress(stderr(), terminal.PUBLISH) as progress:
        published = publish_and_wait(settings, paths, options, progress, leave_behind=leave_behind)
    warn_behind(releases, published.behind)

    def show() -> None:
        print_published(releases, published, failures)
        print_place(releases)

    return _output(published.outcome, published_as_json(published, failures) | releases.member, show)


@extracts.command(name="check")
@_drop_options
@click.option(
    "--html",
    "html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write a page with map and charts to FILE (.html or .htm), outside the drop. Replaces FILE.",
)
@click.option(
    "--no-release",
    "alone",
    is_flag=True,
    help="Check the drop by itself, without a release or a data folder, as in the CI of an export.",
)
@click.option("--partial", is_flag=True, help="With --no-release: allow required tables to be missing.")
@with_json
def check_drop(
    paths: tuple[str, ...],
    withdrawn: tuple[str, ...],
    accepted: tuple[str, ...],
    strict: bool,
    html: Path | None,
    failures: Path | None,
    alone: bool,
    partial: bool,
) -> Output:
    """Validate a drop like `publish`, without publishing it.

    PATHS are folders, files or glob patterns. Lists all findings, and the changes from the current release.

    With --no-release, checks only the rules that need no comparison. All required tables must be present unless
    --partial is given. Needs neither a data folder nor Redis.

    Exit codes: 0 it can be published, 1 it would be refused, 2 wrong usage.

    \b
    Examples:
      forecast extracts check drops/2026-10
      forecast extracts check drops/2026-10 --html report.html --failures failures
      forecast extracts check exports --no-release
      forecast extracts check exports/housing --no-release --partial
    """
    if partial and not alone:
        raise click.UsageError("--partial needs --no-release: otherwise missing tables are taken from the release")
    if html is not None:
        if html.suffix.lower() not in (".html", ".htm"):
            raise click.UsageError("--html must end in .html or .htm")
        _check_outside(html.parent, html, "--html", paths)
    settings = load_settings().settings
    more = {"withdrawn": withdrawn, "strict": strict, "compared": not alone, "partial": partial}
    options = _options(settings, paths, failures, accepted, "for this check only", **more)
    releases = FolderReleases(settings) if alone else open_releases(settings)
    with terminal.progress(stderr(), terminal.CHECK) as progress, releases.reading(to_compare=True) as reader:
        outcome = dry_run(reader.catalog, paths, options, progress)
    if html is not None:
        from service.reports.html_page import render_page  # imports Jinja, which takes a tenth of a second

        write_atomically(html, render_page(outcome, " ".join(paths)).encode())

    def show() -> None:
        print_outcome(outcome, failures)
        if alone:
            print_dimly("not compared with a release (--no-release)")
        else:
            print_place(releases)

    return _output(outcome, outcome_as_json(outcome, failures) | ({} if alone else releases.member), show)


def _options(
    settings: Settings,
    paths: tuple[str, ...],
    failures: Path | None,
    accepted: tuple[str, ...],
    reason: str,
    **more: Any,
) -> PublishOptions:
    """Returns the options of one command. Raises UsageError."""
    if failures is not None:
        _check_outside(failures, failures, "--failures", paths)
    folder = None if failures is None else str(failures.expanduser().resolve())
    try:
        return make_options(settings, accepted, reason, failures=folder, **more)
    except WarehouseError as error:
        raise click.UsageError(str(error)) from None


def _check_outside(folder: Path, named: Path, option: str, paths: tuple[str, ...]) -> None:
    """Raises UsageError if `folder` is inside the drop, because `named` could replace an extract."""
    if is_inside(folder, paths):
        raise click.UsageError(f"{option} {printable_message(str(named))} is inside the drop: name another place")


def _output(outcome: PublishOutcome, value: dict[str, object], show: Callable[[], None]) -> Output:
    if outcome.result != "refused":
        return Output(value, show)
    # the report that people see ends with the same summary
    return Output(value, show, f"refused: {outcome.report.summary()}" if wants_json() else None, FAILED)
