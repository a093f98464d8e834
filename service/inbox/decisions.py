"""Decides on held drops, which were validated and wait for a person: approves them, or moves them to quarantine.

Each decision ends in one rename. If it is interrupted before, the drop is still held, perhaps already live, and the
same command completes it.
"""

import re
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from config.settings import Settings
from config.text import printable
from service.base.whoami import whoami
from service.inbox.folders import SettledPlace, drop_in, free_path, move, unusable, write_reports
from service.inbox.report import (
    DropDecision,
    DropReport,
    make_drop_report,
    mark_already_current,
    read_report,
    report_files,
    report_text,
)
from service.inbox.status import StatusFile
from service.publishing.publisher import Publish, Published, make_inbox_options, make_origin, publish_and_wait
from warehouse.files.atomic import exclusive
from warehouse.files.reading import read_regular
from warehouse.publishing.outcome import PublishOutcome, Result, SeenWhenHeld
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.rules.acceptance import accept_found
from warehouse.rules.all_rules import RULES
from warehouse.rules.folding import fold
from warehouse.schema.errors import BusyError, CatalogError, InboxError, NoReleaseError
from warehouse.schema.findings import ValidationReport, make_report
from warehouse.schema.progress import ProgressCallback

_SINCE = re.compile(r"-(\d{8}T\d{6}Z)(?:-\d+)?$")
_UNKNOWN_OUTCOME = PublishOutcome(result="held", report=ValidationReport(()), manifest=None)


class HeldDrop(msgspec.Struct, frozen=True):
    """One folder in held/."""

    path: Path  # of the drop; its reports are beside it
    since: datetime
    report: DropReport | None  # None if it is lost or damaged

    @property
    def id(self) -> str:
        """The name of its folder, which is unique among held drops."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def delivered(self) -> datetime:
        """When the inbox claimed it; this orders drops."""
        return (self.report and self.report.delivered) or self.since

    def has(self, tables: Mapping[str, str]) -> bool:
        """Returns whether it has exactly these tables; the values are checksums of their contents."""
        return self.report is not None and bool(tables) and self.report.tables == tables

    def is_live_in(self, release: Manifest | None) -> bool:
        """Returns whether `release` has its tables, as after an interrupted approval or a publish by hand."""
        if release is None or self.report is None or not self.report.tables:
            return False
        return self.report.tables.items() <= {name: info.checksum for name, info in release.tables.items()}.items()

    def is_overtaken_by(self, release: Manifest | None) -> bool:
        """Returns whether `release` has a drop that was delivered later."""
        return release is not None and release.delivered > self.delivered and not self.is_live_in(release)

    def rules(self) -> list[str]:
        """Returns the rules that hold it."""
        return self.report.rules() if self.report else []

    def remedy(self, hold: Collection[str]) -> str | None:
        """Returns the remedy if no approval accepts all its errors, else None. `hold` has the current rules."""
        beyond = [rule for rule in self.report.beyond_approval() if rule not in hold] if self.report else []
        if not beyond:
            return None
        path = shlex.quote(str(self.path.absolute()))
        way = f"publish it by hand: `forecast extracts publish {path} --accept ... --reason TEXT`"
        if any(RULES[rule].severity == "error" and not RULES[rule].override for rule in beyond if rule in RULES):
            way = "take it out, correct it and move it back into the inbox"
        return f"no approval covers {', '.join(beyond)}: discard it, or {way}"


def read_held_times(inbox: Path) -> dict[str, datetime]:
    """Returns the time since when each drop has been held, by id. Raises InboxError."""
    return {drop.parent.name: _since(drop.parent) for drop in _drops(inbox)}


def list_held(inbox: Path) -> list[HeldDrop]:
    """Returns all held drops, oldest delivery first. Raises InboxError."""
    found = [HeldDrop(drop, _since(drop.parent), read_report(drop.parent)) for drop in _drops(inbox)]
    return sorted(found, key=lambda held: (held.delivered, held.id))


def find_held(inbox: Path, name: str) -> HeldDrop:
    """Returns the held drop whose id or name is `name`.

    Raises:
        InboxError: if there is none, or several drops have this name.
    """
    every = list_held(inbox)
    found = [held for held in every if held.id == name] or [held for held in every if held.name == name]
    if not found:
        raise InboxError(f"no drop {printable(name)} is held in {inbox}: `forecast extracts held` lists the held drops")
    if len(found) > 1:
        raise InboxError(f"{len(found)} drops are called {name}: use one of {', '.join(held.id for held in found)}")
    return found[0]


@contextmanager
def deciding(inbox: Path) -> Iterator[None]:
    """Allows one decision at a time. A watcher may run meanwhile: it adds held drops, and removes none.

    Raises:
        BusyError: if another decision is under way.
        InboxError: if held/ cannot be written.
    """
    with ExitStack() as stack:
        try:
            alone = stack.enter_context(exclusive(inbox / "held" / ".lock"))
        except OSError as error:
            raise unusable(inbox, error) from None
        if not alone:
            raise BusyError(f"another command is deciding on a held drop of {inbox}; try again when it is done")
        yield


def current_release(data: Path) -> Manifest | None:
    """Returns the current release; None if there is none, or it cannot be read."""
    with suppress(NoReleaseError, CatalogError):
        return Catalog(data).current()
    return None


def _drops(inbox: Path) -> Iterator[Path]:
    try:
        folders = [path for path in (inbox / "held").iterdir() if not path.name.startswith(".")]
        for folder in folders:
            with suppress(FileNotFoundError, NotADirectoryError):  # decided meanwhile, or a foreign file
                drop = drop_in(folder)
                if drop is not None:
                    yield drop
    except OSError as error:
        if not isinstance(error, FileNotFoundError) or not inbox.is_dir():  # before the first watcher, no drop is held
            raise unusable(inbox, error) from None


def _since(folder: Path) -> datetime:
    """Returns the time in the folder's name; without one, the time of the folder's last change."""
    match = _SINCE.search(folder.name)
    with suppress(ValueError):
        if match is not None:
            return datetime.strptime(match[1], "%Y%m%dT%H%M%S%z")
    with suppress(OSError):
        return datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    return datetime.now(UTC)


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a decision."""

    drop: str
    place: Path  # its folder now; in held/ if it was not published
    published: Published | None = None  # None if it was discarded
    to_do: str | None = None  # the remedy; None unless it stays held


def approve(
    settings: Settings,
    inbox: Path,
    name: str,
    reason: str,
    progress: ProgressCallback,
    *,
    over_newer: bool = False,
    publish: Publish = publish_and_wait,
) -> Decided:
    """Publishes the held drop `name`; accepts only the findings of its report.

    The drop is validated again and compared with the current release, under the rules that held it. If that finds
    more, the drop stays held, with a new report. `over_newer` lets it replace the release of a newer drop.

    Raises:
        InboxError: if there is no such drop, or it cannot be approved here.
        BusyError: if another publisher, or another decision, is at work.
        WarehouseError: if it cannot be published for another reason.
    """
    find_held(inbox, name)  # reports a mistyped name even if held/ does not exist
    with deciding(inbox):
        held = find_held(inbox, name)
        report = _check_approvable(held, settings)
        decision = _make_decision("approved", reason)
        origin = make_origin([str(inbox / held.name)], "inbox", held.delivered)
        options = msgspec.structs.replace(
            make_inbox_options(settings, origin),
            hold=report.hold,
            acceptance=accept_found(report.for_approval(), decision.reason, decision.by, decision.at),
            seen=SeenWhenHeld(report.tables, None if over_newer else held.delivered),
        )
        published = publish(settings, [str(held.path)], options, progress)
        outcome = _adjust_outcome(held, report, published.outcome)
        published = msgspec.structs.replace(published, outcome=outcome)
        if outcome.result in ("held", "refused"):
            to_do = _hold_again(settings, held, report, outcome)
            return Decided(drop=held.name, place=held.path.parent, published=published, to_do=to_do)
        written = make_drop_report(held.name, outcome, settings.data_path, held.delivered, report.hold, decision)
        place = _settle(inbox, held, "published", report_files(written, report_text(outcome)))
        _count(settings, inbox, StatusFile.count_approved)
        return Decided(drop=held.name, place=place, published=published)


def discard(settings: Settings, inbox: Path, name: str, reason: str) -> Decided:
    """Moves the held drop `name` to quarantine. Raises InboxError (also if it is live) and BusyError like `approve`."""
    find_held(inbox, name)
    with deciding(inbox):
        held = find_held(inbox, name)
        _check_data_folder(held, settings)
        current = current_release(settings.data_path)
        if current is not None and held.is_live_in(current):
            raise InboxError(
                f"{held.id} is live as {current.id}: `forecast extracts approve` completes that; to undo it, run "
                "`forecast extracts rollback`, then discard it"
            )
        report = held.report or make_drop_report(held.name, _UNKNOWN_OUTCOME, settings.data_path, held.delivered, ())
        report = msgspec.structs.replace(report, decision=_make_decision("discarded", reason))
        place = _settle(inbox, held, "quarantine", report_files(report, _read_text(held)))
        _count(settings, inbox, lambda status: status.count_discarded(time.time()))
        return Decided(drop=held.name, place=place)


def _make_decision(what: Literal["approved", "discarded"], reason: str) -> DropDecision:
    return DropDecision(what=what, reason=printable(reason), by=whoami(), at=datetime.now(UTC).replace(microsecond=0))


def _check_approvable(held: HeldDrop, settings: Settings) -> DropReport:
    """Returns the drop's report, with the rules that hold it from then and now. Raises InboxError without a report."""
    _check_data_folder(held, settings)
    if held.report is None:
        raise InboxError(
            f"the report of {held.id} is lost or damaged, so the drop cannot be approved: move it back into the inbox, "
            "or discard it"
        )
    hold = dict.fromkeys((*held.report.hold, *settings.inbox_hold))  # the watcher may have other settings
    return msgspec.structs.replace(held.report, hold=tuple(hold))


def _check_data_folder(held: HeldDrop, settings: Settings) -> None:
    theirs = held.report.data_folder if held.report else None
    if theirs is not None and Path(theirs).resolve() != settings.data_path.resolve():
        raise InboxError(
            f"{held.id} was held for the data folder {theirs}; this is {settings.data_path.absolute()}: set "
            "FORECAST_DATA_DIR, and run the command where the watcher runs"
        )


def _adjust_outcome(held: HeldDrop, report: DropReport, outcome: PublishOutcome) -> PublishOutcome:
    """Returns the outcome. For a drop that stays held, it shows accepted findings as errors, because the next approval
    must cover them again."""
    if outcome.result not in ("held", "refused") or outcome.tables != report.tables:  # other contents are not covered
        return outcome
    if held.is_live_in(outcome.manifest):  # published by hand, with findings accepted that no approval covers
        return mark_already_current(outcome)
    findings = [
        msgspec.structs.replace(finding, severity="error", accepted=None) if finding.accepted is not None else finding
        for finding in outcome.report.findings
    ]
    found = make_report(fold(findings), outcome.report.comparison)
    result: Result = "held" if found.refused_only_by(report.hold) else "refused"
    return msgspec.structs.replace(outcome, result=result, report=found)


def _hold_again(settings: Settings, held: HeldDrop, before: DropReport, outcome: PublishOutcome) -> str:
    """Replaces the reports of a drop that stays held, unless its contents changed; returns the remedy."""
    report = make_drop_report(held.name, outcome, settings.data_path, held.delivered, before.hold)
    over = " with --over-newer" if "overtaken" in report.rules() else ""
    again = f"approve it again{over} to accept its new report"
    to_do = msgspec.structs.replace(held, report=report).remedy(before.hold) or again
    if outcome.tables != before.tables:
        return to_do
    try:
        write_reports(held.path.parent, report_files(report, report_text(outcome), to_do))
    except OSError as error:
        raise InboxError(f"the reports of {held.id} cannot be written: {error.strerror or error}") from None
    return to_do


def _settle(inbox: Path, held: HeldDrop, place: SettledPlace, reports: Mapping[str, bytes]) -> Path:
    """Moves a decided drop to `place`, under the same name, by which the watcher finds it."""
    destination = free_path(inbox / place / held.id)
    move(held.path, destination, reports)
    return destination


def _read_text(held: HeldDrop) -> str:
    """Returns the text of report.txt without its head."""
    try:
        text = read_regular(held.path.parent / "report.txt").decode(errors="replace")
    except OSError:
        return ""
    return text.partition("\n\n")[2]


def _count(settings: Settings, inbox: Path, count: Callable[[StatusFile], None]) -> None:
    with suppress(OSError, InboxError):  # the decision stands; these are only figures
        status = StatusFile(settings.data_path)
        count(status)
        status.set_held(list(read_held_times(inbox).values()))
