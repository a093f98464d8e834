"""An instance that is restarted goes on with the history, events and rankings of the one before it."""

import logging
from pathlib import Path

import msgspec
import pytest

from service.base.ipc import Sample
from service.base.telemetry import REQUESTS, Telemetry
from service.operators.history import Mark
from service.operators.kept import Kept, kept_file, read_kept, write_kept
from service.operators.observer import Observer
from tests.service.operators.test_observer import Watching
from tests.service.operators.test_state import WELL, instance


def before_restart() -> Watching:
    watching = Watching()
    for _ in range(200):
        watching.answer("near", 9)
        watching.answer("warehouse", 1)
        watching.seconds(instance(WELL))
    watching.observer.board.add([Sample("query", "forecast zip:90210", "", 70)])
    watching.observer.events.add("worker", "worker 7 was replaced: signal 11, SIGSEGV")
    return watching


def restarted(kept: Kept, downtime: float) -> Watching:
    """On a machine that was booted in between: its monotonic clock begins again."""
    again = Watching()
    again.now, again.set_by = 50.0, kept.offset + kept.marks["10m"][-1].tick + downtime - 50.0
    again.observer = Observer("4a0", "/data", lambda: again.now + again.set_by, lambda: again.now)
    again.telemetry = Telemetry()
    again.observer.restore(kept)
    return again


def test_figures_events_and_rankings_go_on(tmp_path: Path) -> None:
    old = before_restart()
    path = kept_file(tmp_path, 8001)
    write_kept(path, old.observer.keep())
    kept = read_kept(path)
    assert kept is not None
    again = restarted(kept, downtime=30)
    again.answer("near", 10)
    seen = again.seconds(instance(WELL))
    assert (seen.hit_rate_hour.near, seen.hit_rate_hour.warehouse) == (1810, 200)
    assert [one.text for one in seen.events][:3] == [
        "release r1 is live",
        "the instance started",
        "worker 7 was replaced: signal 11, SIGSEGV",
    ]
    assert [(one.name, one.count) for one in seen.rankings.queries] == [("forecast zip_code=90210", 70)]
    points = again.observer.history("10m").points
    assert len(points) == 200 + 1, "there is no point for the time between the instances"
    assert [point.near for point in points[-3:]] == [9, 9, 10]
    assert points[-1].at - points[-2].at == 31
    assert again.observer.events.counted["worker"] == 0, "metrics begin with the process"


def test_an_instance_that_ends_before_its_first_look_loses_nothing() -> None:
    again = restarted(before_restart().observer.keep(), downtime=5)
    kept = again.observer.keep()
    assert kept.offset == again.set_by, "the time is right although nothing was looked at"
    third = restarted(kept, downtime=5)
    assert third.seconds(instance(WELL)).hit_rate_hour.near == 1800


def test_an_instance_remembers_at_most_500_events() -> None:
    old = before_restart()
    for number in range(2000):
        for kind in ("key", "worker", "store", "inbox", "release", "purge"):
            old.observer.events.add(kind, f"{kind} {number}")
    assert len(old.observer.keep().events) == 500


@pytest.mark.parametrize(
    "damage", [b"", b"\x93\x01", b"{}", b"\x00" * ((16 << 20) + 1)], ids=["empty", "cut", "other", "large"]
)
def test_a_damaged_file_is_named_once_and_ignored(
    damage: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = kept_file(tmp_path, 8001)
    assert read_kept(path) is None, "the first start"
    assert caplog.records == []
    path.write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        assert read_kept(path) is None
    (record,) = caplog.records
    assert "the history starts empty" in record.getMessage()
    assert str(path) in record.getMessage()


def test_a_file_of_a_version_with_other_buckets_is_refused() -> None:
    kept = before_restart().observer.keep()
    mark = kept.marks["2h"][-1]
    other = Mark(mark.tick, msgspec.structs.replace(mark.figures, requests=[1, 2]))
    with pytest.raises(ValueError, match="another version"):
        restarted(msgspec.structs.replace(kept, marks=kept.marks | {"2h": [other]}), downtime=1)


def test_a_day_of_history_takes_little_room(tmp_path: Path) -> None:
    watching = Watching()
    watching.telemetry.count(REQUESTS, "forecast", "200", "answered", amount=1)
    for _ in range(2 * 86_400 // 60):
        watching.now += 60
        watching.answer("near", 100_000)
        watching.observer.look(instance(WELL), watching.telemetry.snapshot())
    path = kept_file(tmp_path, 8001)
    write_kept(path, watching.observer.keep())
    assert path.stat().st_size < 2_000_000
