"""The events of an inbox's watcher: each is a line in the log, or a line of JSON."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from warehouse.publishing.outcome import PublishOutcome

log = logging.getLogger("forecast.inbox")

EventKind = Literal[
    "watching",
    "standby",
    "arriving",
    "foreign",
    "publishing",
    "published",
    "already_current",
    "refused",
    "held",
    "approved",
    "discarded",
    "command_failed",
    "busy",
    "failed",
    "gone",
    "stopped",
]
_LEVELS: dict[EventKind, int] = {
    "foreign": logging.WARNING,
    "refused": logging.WARNING,
    "held": logging.WARNING,
    "command_failed": logging.ERROR,
    "failed": logging.ERROR,
    "gone": logging.WARNING,
}


def _now() -> datetime:
    return datetime.now(UTC)


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened in the inbox. `message` has everything for a person; the rest is for programs."""

    event: EventKind
    message: str
    drop: str | None = None
    release: str | None = None
    place: str | None = None  # path of the drop now
    report: str | None = None  # path of its report.txt
    time: datetime = msgspec.field(default_factory=_now)


class Telling:
    """Passes on the events of one watcher, for its lifetime."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self.tell_event = tell
        self._told: tuple[EventKind, str] | None = None

    def tell(self, kind: EventKind, message: str, drop: str | None = None) -> None:
        self.tell_event(Event(event=kind, message=message, drop=drop))

    def tell_once(self, kind: EventKind, message: str) -> None:
        """For a state that may last: the same message is not repeated until another one comes, or `forget`."""
        if self._told != (kind, message):
            self._told = (kind, message)
            self.tell(kind, message)

    def forget(self) -> None:
        """The next state is told even if it was told before."""
        self._told = None


def log_event(event: Event) -> None:
    members = {"event": event.event, "drop": event.drop, "release": event.release, "report": event.report}
    extra = {name: value for name, value in members.items() if value is not None}
    log.log(_LEVELS.get(event.event, logging.INFO), "%s", event.message, extra=extra)


def outcome_event(name: str, folder: Path, outcome: PublishOutcome) -> Event:
    """What became of the drop `name`, which now lies in `folder` with its reports."""
    summary, release = outcome.report.summary(), outcome.manifest.id if outcome.manifest else None
    path = str(folder / "report.txt")
    kind: EventKind = "published"
    message = f"{name} was published: {release} is current; {summary}"
    if outcome.result == "refused":
        kind, message = "refused", f"{name} was refused: {summary}; see {path}"
    elif outcome.result == "held":
        kind, message = "held", f"{name} is held for approval: {summary}; see {path} and `forecast extracts held`"
    elif outcome.result == "already_current":
        kind, message = "already_current", f"{name} brings nothing new: {release} is current; {summary}"
    return Event(event=kind, message=message, drop=name, release=release, place=str(folder / name), report=path)
