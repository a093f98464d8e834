"""Watches an inbox as its only watcher, round after round, with back-off after failures."""

import logging
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from config.settings import Settings
from service.base import interruption
from service.base.signals import on_stop, stop_signals
from service.inbox.drops import InboxDrops, Stopped, raise_if_stopped
from service.inbox.folders import InboxFolder
from service.inbox.report import EventSender, InboxEvent
from service.inbox.status import StatusFile, watched
from service.publishing.publisher import Publish, make_inbox_options, publish_and_wait
from warehouse.files.atomic import exclusive
from warehouse.schema.errors import BusyError, CatalogError, InboxError, WarehouseError

log = logging.getLogger("forecast.inbox")

_LOOK_SECONDS = 0.5
_BUSY_SECONDS = 1.0
_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 60.0


class Watcher:
    """Watches one inbox for one data folder. One per process; it lives until the process stops.

    `on_problem` gets the current problem, and None once it is solved.
    """

    def __init__(
        self,
        settings: Settings,
        inbox: InboxFolder,
        on_event: Callable[[InboxEvent], None],
        on_problem: Callable[[str | None], None] = lambda _: None,
        *,
        publish: Publish = publish_and_wait,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._inbox = inbox
        self._on_problem = on_problem
        self._sleep = sleep
        self._events = EventSender(on_event)
        self._drops = InboxDrops(settings, inbox, self._events, publish)
        self._problem: str | None = None
        self._backoff = 0.0  # seconds

    def once(self) -> bool:
        """Handles the drops that are complete or will be soon by their marker; returns if none was refused or held.

        Raises:
            BusyError: if another watcher or publisher is at work.
            WarehouseError: if the inbox or the data folder cannot be used; a claimed drop stays claimed.
        """
        self.prepare()
        with self._alone() as status:
            if status is None:
                raise BusyError(f"another watcher is at work on {self._inbox.folder} or {self._settings.data_dir}")
            self._drops.begin(status)
            self._drops.round()
            while self._drops.failure is None and self._inbox.is_settling:
                self._sleep(_LOOK_SECONDS)
                self._drops.round()
            if self._drops.failure is not None:
                raise self._drops.failure
        return not self._drops.not_published

    def watch(self) -> None:
        """Watches until `Stopped` is raised. Reports any failure and retries with back-off."""
        while True:
            try:
                self.prepare()
                with self._alone() as status:
                    if status is not None:
                        self._events.send_once("watching", f"watching {self._inbox.folder}")
                        self._attend(status)
                self._events.send_once("standby", "another watcher is at work here; taking over when it ends")
                self._report_problem(None)
                self._sleep(_LOOK_SECONDS)
            except (WarehouseError, OSError) as error:
                raise_if_stopped()
                self._failed(str(error))
            except Exception as error:
                raise_if_stopped()
                log.exception("watching the inbox failed")
                self._failed(f"{type(error).__name__}: {error}")

    def prepare(self) -> None:
        """Creates the folders. Raises WarehouseError if the inbox cannot be used, or a rule setting is wrong."""
        make_inbox_options(self._settings).check()
        data, inbox = self._settings.data_path.resolve(), self._inbox.folder.resolve()
        if data.is_relative_to(inbox):
            raise InboxError(f"the data folder {data} is in the inbox {inbox}: use another folder for drops")
        self._inbox.prepare()

    def _attend(self, status: StatusFile) -> NoReturn:
        self._drops.begin(status)
        while True:
            self.prepare()
            try:
                handled = self._drops.round()
            except BusyError:
                self._sleep(_BUSY_SECONDS)
                continue
            if self._drops.failure is not None:
                self._failed("; ".join(self._drops.problems()), self._drops.has_new)
                continue
            self._backoff = 0.0
            self._report_problem(None)
            if not handled:
                self._sleep(_LOOK_SECONDS)

    @contextmanager
    def _alone(self) -> Iterator[StatusFile | None]:
        """Yields the status file; None if another process watches this inbox, or watches for this data folder."""
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

    def _failed(self, problem: str, wake: Callable[[], bool] | None = None) -> None:
        """Waits with back-off after a failure that must be retried. Returns early once `wake()` is true."""
        self._backoff = min(_LONGEST_BACKOFF_SECONDS, max(_FIRST_BACKOFF_SECONDS, self._backoff * 2))
        self._report_problem(problem)
        self._events.forget()
        self._events.send("failed", f"{problem}; trying again in {self._backoff:g} s")
        left = self._backoff
        while left > 0 and not (wake and wake()):
            self._sleep(min(left, _LOOK_SECONDS))
            left -= _LOOK_SECONDS

    def _report_problem(self, problem: str | None) -> None:
        if problem != self._problem:
            self._problem = problem
            self._on_problem(problem)


def make_watcher(
    settings: Settings,
    on_event: Callable[[InboxEvent], None],
    on_problem: Callable[[str | None], None] = lambda _: None,
    *,
    once: bool = False,
) -> Watcher:
    quiet = math.inf if settings.inbox_quiet == "never" else settings.inbox_quiet
    inbox = InboxFolder(
        Path(settings.inbox or ""), marker=settings.inbox_marker, quiet=quiet, settle=settings.inbox_settle, by_age=once
    )
    return Watcher(settings, inbox, on_event, on_problem)


@contextmanager
def stoppable(on_event: Callable[[InboxEvent], None]) -> Iterator[None]:
    """Lets `stop_signals` abandon an unfinished drop. That is safe at any point: the next watcher publishes it."""

    def stop(number: int, _: FrameType | None) -> None:
        interruption.note_signal(number)
        for again in stop_signals():
            signal.signal(again, signal.SIG_IGN)  # a second signal must not disturb the cleanup
        raise Stopped(signal.Signals(number).name)

    try:
        with on_stop(stop):
            yield
    except Stopped as stopped:
        message = f"stopped by {stopped}; the next watcher publishes an unfinished drop"
        on_event(InboxEvent(event="stopped", message=message))
    finally:
        interruption.clear()
