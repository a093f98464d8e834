"""Publishes the drops of an inbox: oldest first, and one at a time.

A claimed drop is never returned to the inbox. It is retried, also by the next watcher, until it is published, refused
or held. While one keeps failing, newer drops may overtake it; once a newer one is live, the failing one is refused. So
no drop is lost, and none replaces a newer one unless a person approves that.
"""

import logging
import time
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path

from config.settings import Settings
from config.text import printable
from service.base import interruption
from service.inbox.decisions import current_release, list_held, read_held_times
from service.inbox.folders import Claim, InboxFolder, Look, SettledPlace, move
from service.inbox.report import (
    EventSender,
    InboxEvent,
    make_drop_report,
    make_outcome_event,
    mark_already_current,
    read_report,
    report_files,
    report_text,
    run_command,
)
from service.inbox.status import Failing, StatusFile
from service.publishing.publisher import Publish, Published, make_inbox_options, make_origin
from warehouse.publishing.outcome import PublishOutcome
from warehouse.rules.all_rules import make_finding
from warehouse.schema.errors import BusyError, DropError, InboxError, WarehouseError
from warehouse.schema.findings import make_report

log = logging.getLogger("forecast.inbox")

# After this many failures of a drop, newer ones are tried too. They fail as well if the disk is full, but not if only
# this drop has a problem.
_PATIENCE = 3
_SHOWN = 3  # most problems in one message
_PLACES: dict[str, SettledPlace] = {"refused": "quarantine", "held": "held"}  # by result; else published


class Stopped(BaseException):
    """A signal stops the watcher. It can be raised at any point; let it propagate."""


class InboxDrops:
    """The drops of one inbox, published for one data folder.

    A `Watcher` owns it for its lifetime, so that no event is repeated after a failure.
    """

    def __init__(self, settings: Settings, inbox: InboxFolder, events: EventSender, publish: Publish) -> None:
        self.failure: Exception | None = None  # the first failure of the last round that must be retried
        self.not_published = 0  # drops that were refused or held
        self._settings = settings
        self._inbox = inbox
        self._events = events
        self._publish_drop = publish
        self._look = Look((), (), {})
        self._failing: dict[str, Failing] = {}  # claimed drops that failed, by the stamp of their claim
        self._held: dict[str, datetime] = {}  # held drops at the last look, by id, with the time since when
        self._stuck: dict[str, str] = {}  # complete drops that cannot be claimed, with the errors
        self._claim: Claim | None = None  # the last one that was reported

    def begin(self, status: StatusFile) -> None:
        """Takes over the state of the last watcher from `status`. Call once this process is the only watcher."""
        self._status = status
        self._failing = {one.stamp: one for one in status.now.failing}
        if status.now.untold is not None and Path(status.now.untold[1]).exists():
            self._run_command()  # the last watcher ended before the command did

    def round(self) -> bool:
        """Tries the claimed drops, oldest first, then the complete ones; returns whether there were any.

        A failing drop ends the round, unless the newer drops after it may overtake it.

        Raises:
            BusyError: if another publisher is at work.
            InboxError: if the inbox cannot be read.
        """
        self.failure = None
        self._stuck.clear()
        claims = self._inbox.claims()
        self._look_at_held()
        self._failing = {one.stamp: self._failing[one.stamp] for one in claims if one.stamp in self._failing}
        self._store_failing()
        handled = False
        for claim in chain(claims, iter(self._claim_next, None)):
            handled = True
            if not self._try(claim) and self._failing[claim.stamp].tries < _PATIENCE:
                break
        if not self._failing and not self._stuck:
            self.failure = None  # the failing drop was refused
        return handled

    def _look_at_held(self) -> None:
        """Reports drops that are no longer held, and updates the figures of the others. Raises InboxError."""
        before, self._held = self._held, read_held_times(self._inbox.folder)
        for drop in before:
            if drop not in self._held:
                self._events.send_event(_decided_event(self._inbox.folder, drop))
        self._status.set_held(list(self._held.values()))

    def problems(self) -> list[str]:
        """Returns why drops cannot be published, a line for each drop."""
        failing = [f"{one.name}: {one.problem}" for one in self._failing.values()]
        return [*failing[:_SHOWN], *self._stuck.values()]

    def has_new(self) -> bool:
        """Returns whether there is a drop that may overtake all failing ones."""
        if any(one.tries < _PATIENCE for one in self._failing.values()):
            return False
        return not set(self._inbox.look().complete) <= set(self._stuck)

    def _claim_next(self) -> Claim | None:
        """Claims the oldest complete drop; returns None if there is none."""
        look, before = self._inbox.look(), self._look
        for name in look.arriving:
            if name not in before.arriving:
                self._events.send("arriving", f"{name} is arriving{self._inbox.marker_hint(name)}", drop=name)
        for name, why in look.foreign.items():
            if name not in before.foreign:
                self._events.send("foreign", f"{name!r} in the inbox is ignored: {why}")
        self._look = look
        waiting = len(look.complete) + len(look.arriving) + len(self._inbox.claims())
        self._status.set_waiting(waiting=waiting, ignored=len(look.foreign))
        for name in look.complete:
            try:
                claim = self._inbox.claim(name)
            except InboxError as error:  # one that cannot be moved must not block the others
                self.failure = self.failure or error
                self._stuck[name] = str(error)
                continue
            if claim is not None:
                return claim
        return None

    def _try(self, claim: Claim) -> bool:
        """Publishes a drop; returns whether it was settled or is gone. Records a failure, to be retried."""
        if claim != self._claim and claim.stamp not in self._failing:
            self._claim = claim
            self._events.send("publishing", f"publishing {claim.name}", drop=claim.name)
        try:
            published = self._publish(claim)
            if published is not None:
                self._settle(claim, published)
        except BusyError:
            raise
        except Exception as error:
            raise_if_stopped()
            expected = isinstance(error, WarehouseError | OSError)
            if not expected:
                log.exception("publishing %s failed", claim.name)
            self.failure = self.failure or error
            tries = self._failing[claim.stamp].tries if claim.stamp in self._failing else 0
            problem = printable(str(error) if expected else f"{type(error).__name__}: {error}")
            self._failing[claim.stamp] = Failing(claim.stamp, printable(claim.name), tries + 1, problem)
            self._store_failing()
            return False
        self._failing.pop(claim.stamp, None)
        if published is not None and published.outcome.result == "published":
            self._refuse_older(claim)
        self._store_failing()
        return True

    def _store_failing(self) -> None:
        self._status.set_failing(tuple(self._failing.values()))

    def _refuse_older(self, newer: Claim) -> None:
        """Refuses failing drops that are older than `newer`, so that they cannot replace it."""
        for claim in self._inbox.claims():
            failing = self._failing.get(claim.stamp)
            if failing is None or claim.stamp >= newer.stamp:
                continue
            why = f"failed {failing.tries} times ({failing.problem}); meanwhile {newer.name}, which is newer, went live"
            try:
                outcome = refuse(self._settings.data_path, "overtaken", why)
                self._settle(claim, Published(outcome=outcome))
            except (WarehouseError, OSError) as error:
                log.error("%s was overtaken and cannot be moved to quarantine: %s", claim.name, error)
            else:
                del self._failing[claim.stamp]

    def _publish(self, claim: Claim) -> Published | None:
        """Publishes a drop; returns None if it was removed meanwhile."""
        try:
            origin = make_origin([str(self._inbox.folder / claim.name)], "inbox", claim.delivered)
            options = make_inbox_options(self._settings, origin)
            return self._publish_drop(
                self._settings, [str(claim.path)], options, partial(log.debug, "%s: %s", claim.name)
            )
        except DropError as error:
            if claim.path.exists():
                why = str(error).replace(str(claim.path), claim.name)
                remedy = "put the Parquet files of a drop into it"
                return Published(outcome=refuse(self._settings.data_path, "missing-table", why, remedy=remedy))
            self._events.send("gone", f"{claim.name} was removed while it was being published", drop=claim.name)
            return None
        except BusyError:
            self._events.send_once("busy", f"{claim.name} waits: another publisher is at work")
            raise

    def _settle(self, claim: Claim, published: Published) -> None:
        outcome = self._unless_held_already(published.outcome)
        if outcome.result == "already_current":
            outcome = mark_already_current(outcome)
        place: SettledPlace = _PLACES.get(outcome.result, "published")
        folder = self._inbox.destination(claim, place)
        # counted first, so that a crash between the two does not lose it
        if place == "quarantine":
            self._status.count_refused(claim.stamp, time.time(), (claim.name, str(folder)))
        elif place == "held":
            self._status.note_command((claim.name, str(folder)))
        else:
            self._status.count_published(claim.stamp)
        hold = self._settings.inbox_hold
        report = make_drop_report(claim.name, outcome, self._settings.data_path, claim.delivered, hold)
        move(claim.path, folder, report_files(report, report_text(outcome)))
        self._events.send_event(make_outcome_event(claim.name, folder, outcome))
        for record in published.behind:
            log.warning("%s does not serve the release yet", record.name)
        if place != "published":
            self.not_published += 1
            self._look_at_held()
            self._run_command()

    def _unless_held_already(self, outcome: PublishOutcome) -> PublishOutcome:
        """Refuses a drop that would be held if a held drop has the same contents, so that nothing is decided twice."""
        if outcome.result != "held":
            return outcome
        same = next((held for held in list_held(self._inbox.folder) if held.has(outcome.tables)), None)
        if same is None:
            return outcome
        message = f"it has the same contents as {same.name}, which has been held since {same.since:%Y-%m-%d %H:%M} UTC"
        return refuse(self._settings.data_path, "already-held", message)

    def _run_command(self) -> None:
        """Runs the operator's command for the drop that was refused or held last, if one is set."""
        command, untold = self._settings.inbox_on_refusal, self._status.now.untold
        if command is not None and untold is not None:
            failure = run_command(command, *untold)
            if failure is not None:
                message = f"the command for {untold[0]} failed: {failure}"
                self._events.send("command_failed", message, drop=untold[0])
        self._status.note_command(None)


def _decided_event(inbox: Path, drop: str) -> InboxEvent:
    """Returns the event of a drop that is no longer held, by its id."""
    for place in ("published", "quarantine"):
        folder = inbox / place / drop
        report = read_report(folder)
        if report is not None and report.decision is not None:
            decision = report.decision
            return InboxEvent(
                event=decision.what,
                message=f"{report.drop} was {decision.what} by {decision.by}: {decision.reason}",
                drop=report.drop,
                release=report.release,
                place=str(folder / report.drop),
                report=str(folder / "report.txt"),
            )
    return InboxEvent(event="gone", message=f"{drop} was removed from held/", drop=drop)


def raise_if_stopped() -> None:
    """Raises `Stopped` if a signal has arrived. During a query, DuckDB turns `Stopped` into an error of its own."""
    if interruption.received_signal():
        raise Stopped(interruption.received_signal())


def refuse(data: Path, rule: str, message: str, **members: str) -> PublishOutcome:
    """Returns a refusal for a reason that is not in the drop's rows."""
    report = make_report([make_finding(rule, message, **members)])
    return PublishOutcome(result="refused", report=report, manifest=current_release(data))
