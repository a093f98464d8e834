"""Notices what people decide on held drops: commands decide, the watcher logs it where operators look."""

from datetime import datetime
from pathlib import Path

from service.publishing.inbox_events import Event, Telling
from service.publishing.inbox_held import held_since, read_report
from service.publishing.inbox_status import StatusFile


class HeldWatch:
    """The held drops of one inbox from look to look. `InboxDrops` owns it."""

    def __init__(self, inbox: Path, telling: Telling) -> None:
        self._inbox = inbox
        self._telling = telling
        self._held: dict[str, datetime] = {}  # since when, by id

    def look(self, status: StatusFile) -> None:
        """Tells of drops that are held no more, and keeps the figures in `status` right. Raises InboxError."""
        before, self._held = self._held, held_since(self._inbox)
        for drop in before:
            if drop not in self._held:
                self._telling.tell_event(self._decided(drop))
        status.held(list(self._held.values()))

    def _decided(self, drop: str) -> Event:
        for place in ("published", "quarantine"):
            folder = self._inbox / place / drop
            report = read_report(folder)
            if report is not None and report.decision is not None:
                said = report.decision
                return Event(
                    event=said.what,
                    message=f"{report.drop} was {said.what} by {said.by}: {said.reason}",
                    drop=report.drop,
                    release=report.release,
                    place=str(folder / report.drop),
                    report=str(folder / "report.txt"),
                )
        return Event(event="gone", message=f"{drop} was taken out of held/", drop=drop)
