"""Builds the inbox watcher from the settings, for `forecast extracts watch` and for the watcher process of `serve`."""

import io
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from config.settings import Settings
from service.base import interruption
from service.base.signals import stop_signals
from service.publishing.inbox import Means, Watcher
from service.publishing.inbox_drops import Stopped
from service.publishing.inbox_events import Event
from service.publishing.inbox_folders import Inbox
from service.reports import terminal
from service.reports.text_table import WIDTH, HarmlessConsole
from warehouse.publishing.outcome import PublishOutcome


def make_watcher(
    settings: Settings,
    folder: str,
    tell: Callable[[Event], None],
    on_problem: Callable[[str | None], None] = lambda _: None,
    *,
    once: bool = False,
) -> Watcher:
    quiet = math.inf if settings.inbox_quiet == "never" else settings.inbox_quiet
    inbox = Inbox(Path(folder), marker=settings.inbox_marker, quiet=quiet, by_age=once)
    return Watcher(settings, inbox, Means(tell=tell, text_of=report_text, on_problem=on_problem))


def report_text(outcome: PublishOutcome) -> str:
    """What `publish` prints about a drop, without colours."""
    written = io.StringIO()
    console = HarmlessConsole(file=written, width=WIDTH, color_system=None)
    terminal.print_outcome(console, outcome)
    return written.getvalue()


@contextmanager
def stoppable(tell: Callable[[Event], None]) -> Iterator[None]:
    """`stop_signals` abandon the drop under way. That is safe at any point: the next watcher does it."""
    numbers = stop_signals()

    def stop(number: int, _: FrameType | None) -> None:
        interruption.note(number)
        for again in numbers:
            signal.signal(again, signal.SIG_IGN)  # a second signal must not disturb the cleanup
        raise Stopped(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    except Stopped as stopped:
        tell(Event(event="stopped", message=f"stopped by {stopped}; a drop under way is published next time"))
    finally:
        interruption.forget()
        for number, handler in before.items():
            signal.signal(number, handler)
