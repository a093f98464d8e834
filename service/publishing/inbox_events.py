"""What a watcher of an inbox has to tell: a line in the log, a line of JSON."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from warehouse.publishing.publish import PublishOutcome

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
    "command_failed",
    "busy",
    "failed",
    "gone",
    "stopped",
]
_LEVELS: dict[EventKind, int] = {
    "foreign": logging.WARNING,
    "refused": logging.WARNING,
    "command_failed": logging.ERROR,
    "failed": logging.ERROR,
    "gone": logging.WARNING,
}


def _now() -> datetime:
    return datetime.now(UTC)


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`message` says it all to a person; the rest is for programs. `place` is where the drop is now."""

    event: EventKind
    message: str
    drop: str | None = None
    release: str | None = None
    place: str | None = None
    report: str | None = None
    time: datetime = msgspec.field(default_factory=_now)


def log_event(event: Event) -> None:
    members = {"event": event.event, "drop": event.drop, "release": event.release, "report": event.report}
    extra = {name: value for name, value in members.items() if value is not None}
    log.log(_LEVELS.get(event.event, logging.INFO), "%s", event.message, extra=extra)


def outcome_event(name: str, folder: Path, outcome: PublishOutcome) -> Event:
    """What became of the drop `name`, which is in `folder` now, with its reports."""
    summary, release = outcome.report.summary(), outcome.manifest.id if outcome.manifest else None
    path = str(folder / "report.txt")
    kind: EventKind = "published"
    message = f"{name} is published: {release} is current; {summary}"
    if outcome.result == "refused":
        kind, message = "refused", f"{name} is refused: {summary}; see {path}"
    elif outcome.result == "already_current":
        kind, message = "already_current", f"{name} brings nothing new: {release} is current; {summary}"
    return Event(event=kind, message=message, drop=name, release=release, place=str(folder / name), report=path)
