"""Publishes the drops of an inbox: oldest first, one at a time, each to the end before the next is taken.

A drop that was claimed is never given back: it is tried again until it is published or refused, also by the next
watcher. One that goes on failing lets newer ones overtake it, and is set aside then: no older drop comes after a newer
one, and none is lost.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import NoReturn

import msgspec

from config.settings import Settings
from service.base import interruption
from service.publishing.inbox_events import Event, EventKind, outcome_event
from service.publishing.inbox_folders import Claim, Inbox, Look
from service.publishing.inbox_report import TextOf, reports
from service.publishing.inbox_retries import Retries, refusal, set_aside
from service.publishing.inbox_status import StatusFile, watched
from service.publishing.publisher import Published, options_of, origin_of, publish_and_wait
from service.publishing.refusal_hook import run_command
from warehouse.files.atomic import exclusive
from warehouse.publishing.publish import PublishOptions
from warehouse.schema.errors import BusyError, CatalogError, DropError, InboxError, WarehouseError
from warehouse.schema.progress import ProgressCallback

log = logging.getLogger("forecast.inbox")

_LOOK_SECONDS = 0.5
_BUSY_SECONDS = 1.0
_FIRST_BACKOFF = 1.0
_LONGEST_BACKOFF = 60.0

Publish = Callable[[Settings, Sequence[str], PublishOptions, ProgressCallback], Published]


class Stopped(BaseException):
    """No error: a signal raises it, at any point, and nothing may swallow it."""


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What a watcher is given. `on_problem` is told what keeps it from working, and None when nothing does any more."""

    tell: Callable[[Event], None]
    text_of: TextOf
    on_problem: Callable[[str | None], None] = lambda _: None
    publish: Publish = publish_and_wait
    sleep: Callable[[float], None] = time.sleep


class Watcher:
    """Watches one inbox for one data folder."""

    def __init__(self, settings: Settings, inbox: Inbox, means: Means) -> None:
        self._settings = settings
        self._inbox = inbox
        self._means = means
        self._look = Look((), (), {})
        self._retries = Retries()
        self._stuck: dict[str, str] = {}
        self._trouble: Exception | None = None
        self._claim: Claim | None = None
        self._said: tuple[EventKind, str] | None = None
        self._problem: str | None = None
        self._backoff = 0.0
        self._refused = 0

    def once(self) -> bool:
        """Handles what is complete now; returns whether all of it was good.

        Raises:
            BusyError: if another watcher or publisher is at work.
            WarehouseError: if the inbox or the data folder cannot be used; a claimed drop stays claimed.
        """
        self.prepare()
        with self._alone() as status:
            if status is None:
                raise BusyError(f"another watcher is at work on {self._inbox.folder} or {self._settings.data_dir}")
            self._begin(status)
            self._round(status)
            if self._trouble is not None:
                raise self._trouble
        return not self._refused

    def watch(self) -> None:
        """Goes on until `Stopped` is raised; whatever is wrong is told and tried again, later and later."""
        while True:
            try:
                self.prepare()
                with self._alone() as status:
                    if status is not None:
                        self._say("watching", f"watching {self._inbox.folder}")
                        self._attend(status)
                self._say("standby", "another watcher is at work here; taking over when it ends")
                self._report_problem(None)
                self._means.sleep(_LOOK_SECONDS)
            except (WarehouseError, OSError) as error:
                _raise_if_stopped()
                self._failed(str(error))
            except Exception as error:
                _raise_if_stopped()
                log.exception("watching the inbox failed")
                self._failed(f"{type(error).__name__}: {error}")

    def prepare(self) -> None:
        """Raises WarehouseError if the inbox, or a limit that is set, cannot be worked with."""
        options_of(self._settings).check()
        data, inbox = self._settings.data_path.resolve(), self._inbox.folder.resolve()
        if data.is_relative_to(inbox):
            raise InboxError(f"the data folder {data} lies in the inbox {inbox}: take another folder for drops")
        self._inbox.prepare()

    def _attend(self, status: StatusFile) -> NoReturn:
        self._begin(status)
        while True:
            self.prepare()
            try:
                handled = self._round(status)
            except BusyError:
                self._means.sleep(_BUSY_SECONDS)
                continue
            if self._trouble is not None:
                self._failed("; ".join([*self._retries.problems(), *self._stuck.values()]), self._has_new)
                continue
            self._backoff = 0.0
            self._report_problem(None)
            if not handled:
                self._means.sleep(_LOOK_SECONDS)

    def _begin(self, status: StatusFile) -> None:
        self._retries = Retries(status.now.failing)
        self._catch_up(status)

    @contextmanager
    def _alone(self) -> Iterator[StatusFile | None]:
        """None if another watches this inbox, or for this data folder."""
        data = self._settings.data_path
        with ExitStack() as stack:
            try:
                data.mkdir(parents=True, exist_ok=True)
                alone = stack.enter_context(exclusive(data / "inbox.lock"))
                alone = alone and stack.enter_context(self._inbox.lock())
                if alone:
                    stack.enter_context(watched(data))
                status = StatusFile(data) if alone else None
            except OSError as error:
                raise CatalogError(f"cannot write {error.filename}: {error.strerror}") from None
            yield status

    # --- drops, one after the other ------------------------------------------------------------------------------

    def _round(self, status: StatusFile) -> bool:
        """Tries what was claimed, oldest first, and then what is complete; returns whether there was anything.

        It ends at a drop that fails, as long as that one may not be overtaken: what comes next is newer.
        """
        self._trouble = None
        self._stuck.clear()
        claims = self._inbox.claims()
        self._retries.keep(claims)
        status.failing(self._retries.all())
        handled = False
        for claim in chain(claims, self._new(status)):
            handled = True
            if not self._try(status, claim) and not self._retries.may_be_overtaken(claim):
                break
        if not self._retries.all() and not self._stuck:
            self._trouble = None  # what failed was overtaken
        return handled

    def _new(self, status: StatusFile) -> Iterator[Claim]:
        while (claim := self._next(status)) is not None:
            yield claim

    def _next(self, status: StatusFile) -> Claim | None:
        look, before = self._inbox.look(), self._look
        for name in look.arriving:
            if name not in before.arriving:
                self._tell("arriving", f"{name} is arriving", drop=name)
        for name, why in look.foreign.items():
            if name not in before.foreign:
                self._tell("foreign", f"{name!r} in the inbox is passed over: {why}")
        self._look = look
        status.waiting(len(look.complete) + len(look.arriving) + len(self._inbox.claims()))
        for name in look.complete:
            try:
                claim = self._inbox.claim(name)
            except InboxError as error:  # that it may not be moved is no reason to leave others waiting
                self._trouble = self._trouble or error
                self._stuck[name] = str(error)
                continue
            if claim is not None:
                return claim
        return None

    def _has_new(self) -> bool:
        """Whether there is a drop that may overtake all that fail."""
        return self._retries.all_may_be_overtaken() and not set(self._inbox.look().complete) <= set(self._stuck)

    def _try(self, status: StatusFile, claim: Claim) -> bool:
        """Whether the drop was settled, or has gone; all else is noted, to be tried again."""
        if claim != self._claim and self._retries.of(claim) is None:
            self._claim = claim
            self._tell("publishing", f"publishing {claim.name}", drop=claim.name)
        try:
            published = self._publish(claim)
            if published is not None:
                self._settle(status, claim, published)
        except BusyError:
            raise
        except Exception as error:
            _raise_if_stopped()
            expected = isinstance(error, WarehouseError | OSError)
            if not expected:
                log.exception("publishing %s failed", claim.name)
            self._trouble = self._trouble or error
            self._retries.failed(claim, str(error) if expected else f"{type(error).__name__}: {error}")
            status.failing(self._retries.all())
            return False
        self._retries.forget(claim)
        if published is not None and published.outcome.result == "published":
            self._set_aside_older(status, claim)
        status.failing(self._retries.all())
        return True

    def _set_aside_older(self, status: StatusFile, newer: Claim) -> None:
        """Drops that were tried before `newer`, failed, and must not replace it."""
        for claim in self._inbox.claims():
            failing = self._retries.of(claim)
            if failing is None or claim.stamp >= newer.stamp:
                continue
            try:
                outcome = set_aside(self._settings.data_path, failing, newer.name)
                self._settle(status, claim, Published(outcome=outcome))
            except (WarehouseError, OSError) as error:
                log.error("%s cannot be set aside: %s", claim.name, error)
            else:
                self._retries.forget(claim)

    def _publish(self, claim: Claim) -> Published | None:
        """None if somebody took the drop away."""

        def progress(step: str) -> None:
            log.debug("%s: %s", claim.name, step)

        try:
            options = options_of(self._settings, origin=origin_of([str(self._inbox.folder / claim.name)], "inbox"))
            return self._means.publish(self._settings, [str(claim.path)], options, progress)
        except DropError as error:
            if claim.path.exists():
                why = str(error).replace(str(claim.path), claim.name)
                remedy = "put the Parquet files of a drop into it"
                return Published(outcome=refusal(self._settings.data_path, "missing-table", why, remedy=remedy))
            self._tell("gone", f"{claim.name} was taken away while it was published", drop=claim.name)
            return None
        except BusyError:
            self._say("busy", f"{claim.name} waits: another publisher is at work")
            raise

    def _settle(self, status: StatusFile, claim: Claim, published: Published) -> None:
        outcome = published.outcome
        refused = outcome.result == "refused"
        folder = self._inbox.destination(claim, "quarantine" if refused else "published")
        # counted first, so that a crash between the two does not lose it
        if refused:
            status.count_refused(claim.stamp, time.time(), (claim.name, str(folder)))
        else:
            status.count_published(claim.stamp)
        self._inbox.settle(claim, folder, reports(claim.name, outcome, self._means.text_of))
        status.waiting(max(0, status.now.waiting - 1))
        self._means.tell(outcome_event(claim.name, folder, outcome))
        for record in published.behind:
            log.warning("instance %d on %s does not serve the release yet", record.pid, record.host)
        if refused:
            self._refused += 1
            self._run_command(status)

    # --- the command on refusal ----------------------------------------------------------------------------------

    def _catch_up(self, status: StatusFile) -> None:
        """A watcher ended between refusing a drop and the end of the command: it is run again."""
        if status.now.untold is not None and Path(status.now.untold[1]).exists():
            self._run_command(status)

    def _run_command(self, status: StatusFile) -> None:
        command, untold = self._settings.inbox_on_refusal, status.now.untold
        if command is not None and untold is not None:
            trouble = run_command(command, *untold)
            if trouble is not None:
                message = f"the command on the refusal of {untold[0]} failed: {trouble}"
                self._tell("command_failed", message, drop=untold[0])
        status.told()

    # --- telling -------------------------------------------------------------------------------------------------

    def _failed(self, problem: str, wake: Callable[[], bool] | None = None) -> None:
        """A full disk, a folder that is not there: nothing that a drop could help. `wake` ends the wait early."""
        self._backoff = min(_LONGEST_BACKOFF, max(_FIRST_BACKOFF, self._backoff * 2))
        self._report_problem(problem)
        self._said = None
        self._tell("failed", f"{problem}; trying again in {self._backoff:g} s")
        left = self._backoff
        while left > 0 and not (wake and wake()):
            self._means.sleep(min(left, _LOOK_SECONDS))
            left -= _LOOK_SECONDS

    def _report_problem(self, problem: str | None) -> None:
        if problem != self._problem:
            self._problem = problem
            self._means.on_problem(problem)

    def _tell(self, kind: EventKind, message: str, drop: str | None = None) -> None:
        self._means.tell(Event(event=kind, message=message, drop=drop))

    def _say(self, kind: EventKind, message: str) -> None:
        """Tells what may be so for long, once."""
        if self._said != (kind, message):
            self._said = (kind, message)
            self._tell(kind, message)


def _raise_if_stopped() -> None:
    """`Stopped`, raised within a query, comes out of it as an error of DuckDB's."""
    if interruption.asked():
        raise Stopped(interruption.asked())
