"""An inbox, its watcher, and a publisher that answers what a test says."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from config.settings import Settings
from service.inbox.drops import Stopped
from service.inbox.folders import InboxFolder
from service.inbox.report import InboxEvent
from service.inbox.watcher import Watcher
from service.publishing.publisher import Publish, Published
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.rules.all_rules import make_finding
from warehouse.schema.errors import BusyError, CatalogError
from warehouse.schema.findings import ValidationReport, make_report
from warehouse.schema.progress import ProgressCallback

GOOD = Published(outcome=PublishOutcome(result="published", report=ValidationReport(()), manifest=None))
CURRENT = Published(outcome=PublishOutcome(result="already_current", report=ValidationReport(()), manifest=None))
BAD = Published(
    outcome=PublishOutcome(
        result="refused", report=make_report([make_finding("truncated-file", "half of it")]), manifest=None
    )
)
HELD = Published(
    outcome=PublishOutcome(
        result="held",
        report=make_report([make_finding("total-drift", "6 % less", measured=0.06)]),
        manifest=None,
        tables={"population": "aa"},
    )
)
FULL = CatalogError("cannot write the data folder: No space left on device")
BUSY = BusyError("another publisher is at work")


class Site:
    """An inbox, a data folder, and a publisher that answers what the test says, else publishes."""

    def __init__(self, folder: Path) -> None:
        self.inbox, self.data = folder / "inbox", folder / "data"
        self.inbox.mkdir()
        self.answers: list[Published | BaseException] = []
        self.failing: dict[str, BaseException] = {}
        self.handed: list[str] = []
        self.handed_at: list[float] = []
        self.options: list[PublishOptions] = []
        self.events: list[InboxEvent] = []
        self.problems: list[str | None] = []
        self.slept: list[float] = []
        self.on_sleep: Callable[[int], None] = lambda _: None
        self.command: str | None = None
        self.quiet = 30.0  # seconds
        self.rules: tuple[str, ...] = ("total-drift", "zip-codes-lost")  # to hold

    def put(self, name: str, *, complete: bool = True) -> Path:
        drop = self.inbox / name
        drop.mkdir()
        (drop / "part.parquet").write_bytes(b"PAR1")
        if complete:
            (drop / "_SUCCESS").touch()
        return drop

    @property
    def settings(self) -> Settings:
        return Settings(
            data_dir=str(self.data), inbox=str(self.inbox), inbox_on_refusal=self.command, inbox_hold=self.rules
        )

    def watcher(self, publish: Publish | None = None) -> Watcher:
        return Watcher(
            self.settings,
            InboxFolder(self.inbox, marker="_SUCCESS", quiet=self.quiet),
            self.events.append,
            self.problems.append,
            publish=publish or self.publish,
            sleep=self._sleep,
        )

    def hold(self, name: str, answer: Published = HELD) -> None:
        """Puts a drop that a watcher holds."""
        self.put(name)
        self.answers.append(answer)
        assert not self.watcher().once()

    def watch(self, sleeps: int) -> None:
        """Until the watcher has slept so many times."""
        end = len(self.slept) + sleeps
        self.on_sleep = lambda number: stop() if number >= end else None
        with pytest.raises(Stopped):
            self.watcher().watch()

    def kinds(self) -> list[str]:
        return [event.event for event in self.events]

    def placed(self, place: str) -> list[str]:
        """The drops that are in a place, in the order of their coming there."""
        folders = (path for path in (self.inbox / place).iterdir() if path.is_dir())
        return sorted(path.name.rpartition("-")[0] for path in folders)

    def publish(self, _: Settings, paths: Sequence[str], options: PublishOptions, __: ProgressCallback) -> Published:
        (path,) = paths
        assert (Path(path) / "part.parquet").exists(), "whole, and where it was said to be"
        self.handed.append(Path(path).name)
        self.handed_at.append(sum(self.slept))
        self.options.append(options)
        if Path(path).name in self.failing:
            raise self.failing[Path(path).name]
        answer = self.answers.pop(0) if self.answers else GOOD
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.on_sleep(len(self.slept))


def stop() -> None:
    raise Stopped
