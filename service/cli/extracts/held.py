"""forecast extracts watch, held, approve, discard: the inbox, and decisions on held drops."""

import shlex
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from config.settings import Settings
from config.text import in_words, json_text
from service.base import logs
from service.base.signals import log_unused
from service.cli.extracts.outcome import explain_interruption, print_published, published_as_json, warn_behind
from service.cli.output import (
    FAILED,
    Output,
    data_folder_member,
    load_settings,
    print_data_folder,
    printable_message,
    stderr,
    stdout,
    wants_json,
    with_json,
)
from service.inbox import decisions
from service.inbox.decisions import Decided, HeldDrop, current_release, list_held
from service.inbox.report import InboxEvent, log_event
from service.inbox.watcher import make_watcher, stoppable
from service.publishing.releases import open_releases
from service.reports import terminal
from service.reports.text_table import plain
from warehouse.releases.catalog import Manifest

inbox_option = click.option(
    "--inbox", "folder", metavar="FOLDER", help="The inbox, if it is not the one in FORECAST_INBOX."
)
reason_option = click.option("--reason", required=True, metavar="TEXT", help="The reason; stored with the drop.")


@click.command()
@click.argument("folder", required=False)
@click.option("--once", is_flag=True, help="Publish the drops that are complete, then exit.")
@partial(with_json, help_text="Print each event as a line of JSON on standard output.")
def watch(folder: str | None, once: bool) -> None:
    """Publish the drops that appear in an inbox folder.

    FOLDER is the inbox. Default: FORECAST_INBOX. `forecast serve` watches FORECAST_INBOX by itself if it is set.

    A drop is a folder or one Parquet file. It is complete once it has not changed for FORECAST_INBOX_QUIET seconds, or,
    if its newest file is FORECAST_INBOX_MARKER, for FORECAST_INBOX_SETTLE seconds. It is then published, refused, or
    held for approval, and moved to published/, quarantine/ or held/ in FOLDER with its report.

    SIGTERM, SIGHUP, SIGQUIT and Ctrl-C stop the watcher; the next watcher publishes an unfinished drop.

    Exit codes: 0 stopped, 1 the folder cannot be used (with --once, also: a drop was refused or held), 2 wrong usage, 3
    another watcher or publisher is at work (--once).

    \b
    Examples:
      forecast extracts watch /drops/inbox
      forecast extracts watch /drops/inbox --once
    """
    settings, _ = _inbox(folder)
    logs.configure(settings.log_format, settings.log_level)
    log_unused()

    def report(event: InboxEvent) -> None:
        log_event(event)
        if wants_json():
            click.echo(json_text(event))

    watcher = make_watcher(settings, report, once=once)
    watcher.prepare()  # a mistyped folder is an error; if the folder vanishes later, the watcher waits for it
    with stoppable(report):
        if not once:
            watcher.watch()
        elif not watcher.once():
            sys.exit(FAILED)


@click.command()
@inbox_option
@with_json
def held(folder: str | None) -> Output:
    """List the drops of the inbox that wait for approval.

    Shows for each since when it is held, which rules hold it, and whether it or a newer drop is live. Its report is
    beside it. FORECAST_INBOX_HOLD sets the rules that hold a drop. To approve or discard one, you need write access to
    the inbox and the data folder.

    Exit codes: 0 listed, 1 the inbox cannot be read, 2 wrong usage.

    \b
    Examples:
      forecast extracts held
      forecast extracts held --inbox /drops/inbox --json
    """
    settings, inbox = _inbox(folder)
    drops, current = list_held(inbox), current_release(settings.data_path)

    def show() -> None:
        if not drops:
            click.echo(f"No drop is held in {printable_message(str(inbox))}.")
        for drop in drops:
            _print(drop, current, settings.inbox_hold, folder)

    return Output([_as_json(drop, current) | data_folder_member(settings) for drop in drops], show)


@click.command()
@click.argument("name")
@reason_option
@click.option("--over-newer", is_flag=True, help="Let it replace the release of a newer drop.")
@inbox_option
@with_json
def approve(name: str, reason: str, over_newer: bool, folder: str | None) -> Output:
    """Publish a drop that the inbox holds.

    NAME is a name or id from `forecast extracts held`. The drop is validated again and compared with the current
    release. Only the findings of its report are accepted, up to their values there; if there are more, the drop stays
    held with a new report. Only the rules that held the drop can be approved; for others, the output has the remedy.
    The manifest of the release and the drop's report record who approved it, when and why.

    Exit codes: 0 published or already current, 1 not published, 2 wrong usage, 3 another publisher or another decision
    is at work, 130 interrupted.

    \b
    Examples:
      forecast extracts approve 2026-10 --reason "the source confirmed its new base"
      forecast extracts approve 2026-10-20261005T123015Z --reason "as above" --over-newer
    """
    settings, inbox = _inbox(folder)
    releases = open_releases(settings)
    with explain_interruption(releases), terminal.progress(stderr(), terminal.PUBLISH) as progress:
        decided = decisions.approve(settings, inbox, name, _check_reason(reason), progress, over_newer=over_newer)
    published = decided.published
    assert published is not None  # noqa: S101 - an approval publishes, or tries to
    warn_behind(releases, published.behind)

    def show() -> None:
        print_published(releases, published)
        print_data_folder(settings)

    value = _decided_as_json(decided) | published_as_json(published) | data_folder_member(settings)
    if decided.to_do is None:
        return Output(value, show)
    return Output(value, show, f"{decided.drop} stays held: {published.outcome.report.summary()}; {decided.to_do}")


@click.command()
@click.argument("name")
@reason_option
@inbox_option
@with_json
def discard(name: str, reason: str, folder: str | None) -> Output:
    """Move a drop that the inbox holds to quarantine.

    NAME is a name or id from `forecast extracts held`. The drop's report records who discarded it, when and why. A live
    drop cannot be discarded: roll back first.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 another decision is at work.

    \b
    Examples:
      forecast extracts discard 2026-10 --reason "exported too early"
    """
    settings, inbox = _inbox(folder)
    decided = decisions.discard(settings, inbox, name, _check_reason(reason))
    value = _decided_as_json(decided) | data_folder_member(settings)
    return Output(value, lambda: click.echo(printable_message(str(decided.place))))


def _inbox(folder: str | None) -> tuple[Settings, Path]:
    settings = load_settings({"inbox": folder}).settings
    if settings.inbox is None:
        raise click.UsageError("name the inbox, or set FORECAST_INBOX")
    return settings, Path(settings.inbox)


def _check_reason(reason: str) -> str:
    if not reason.strip():
        raise click.UsageError("--reason is empty: give a text, which is stored with the drop")
    return reason.strip()


def _as_json(drop: HeldDrop, current: Manifest | None) -> dict[str, object]:
    release = current.id if current else None
    return {
        "id": drop.id,
        "name": drop.name,
        "path": str(drop.path),
        "delivered": drop.delivered,
        "held_since": drop.since,
        "rules": drop.rules(),
        "findings": drop.report.findings if drop.report else None,
        "decision": drop.report.decision if drop.report else None,
        "live_as": release if drop.is_live_in(current) else None,
        "newer_release": release if drop.is_overtaken_by(current) else None,
        "report": str(drop.path.parent / "report.txt"),
        "for_data_folder": drop.report.data_folder if drop.report else None,
    }


def _print(drop: HeldDrop, current: Manifest | None, hold: tuple[str, ...], folder: str | None) -> None:
    """Prints a held drop, with commands to paste. `folder` is the inbox if an option names it."""
    out = stdout()
    waited = in_words((datetime.now(UTC) - drop.since).total_seconds())
    out.print(f"[bold]{plain(drop.name)}[/], held since {drop.since:%Y-%m-%d %H:%M} UTC ({waited})")
    if drop.report is None:
        out.print("  its report is lost or damaged: move the drop back into the inbox, or discard it")
    elif drop.report.decision is not None:
        decision = drop.report.decision
        out.print(f"  {decision.what} by {plain(decision.by)}, but interrupted: run the same command again")
    for finding in drop.report.findings if drop.report else ():
        if finding.severity == "error":
            out.print(f"  [yellow]{finding.rule}[/]  {plain(finding.message)}", soft_wrap=True)
    live, remedy = drop.is_live_in(current), drop.remedy(hold)
    if current is not None and live:
        out.print(f"  [yellow]it is live as {current.id}[/]: approve it, which only moves it, or roll back first")
    elif current is not None and drop.is_overtaken_by(current):
        out.print(f"  [yellow]a newer drop went live meanwhile[/]: {current.id}; to replace it, add --over-newer")
    if remedy is not None and not live:
        out.print(f"  {plain(remedy)}", soft_wrap=True)
    inbox = f"--inbox {shlex.quote(folder)} " if folder else ""
    name = inbox + ("-- " if drop.id.startswith("-") else "") + shlex.quote(drop.id)
    for label, text, useful in (
        ("report", str(drop.path.parent / "report.txt"), True),
        ("approve", f"forecast extracts approve --reason TEXT {name}", live or remedy is None),
        ("discard", f"forecast extracts discard --reason TEXT {name}", not live),
    ):
        if useful:
            out.print(f"  [dim]{label:<8}[/]{plain(text)}", soft_wrap=True)


def _decided_as_json(decided: Decided) -> dict[str, object]:
    return {"drop": decided.drop, "place": str(decided.place / decided.drop)}
