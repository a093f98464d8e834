"""When a drop of the inbox is complete: by its marker, or because nothing in it changes any more."""

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from service.inbox.arrivals import Arrivals

QUIET = 30.0
SETTLE = 5.0


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def arrivals(clock: Clock) -> Arrivals:
    return Arrivals(marker="_SUCCESS", settle=SETTLE, quiet=QUIET, clock=clock)


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    folder = tmp_path / "drop"
    (folder / "state=AL").mkdir(parents=True)
    (folder / "state=AL" / "part-0.parquet").write_bytes(b"PAR1")
    (folder / "old.parquet").write_bytes(b"PAR1")
    return folder


def is_complete(arrivals: Arrivals, drop: Path) -> bool:
    complete, arriving = arrivals.look([drop])
    assert [*complete, *arriving] == [drop.name]
    return bool(complete)


@pytest.mark.parametrize("file_clock", [None, time.time_ns])
def test_with_an_infinite_quiet_time_only_the_marker_completes_a_drop(
    clock: Clock, drop: Path, file_clock: Callable[[], int] | None
) -> None:
    arrivals = Arrivals(marker="_SUCCESS", settle=SETTLE, quiet=math.inf, clock=clock, file_clock=file_clock)
    assert not is_complete(arrivals, drop)
    clock.now += 1e9
    assert not is_complete(arrivals, drop)
    (drop / "_SUCCESS").touch()
    assert not is_complete(arrivals, drop)
    clock.now += SETTLE
    assert is_complete(arrivals, drop)


def test_a_marked_drop_is_complete_once_it_has_settled(arrivals: Arrivals, clock: Clock, drop: Path) -> None:
    assert not is_complete(arrivals, drop)
    assert not arrivals.is_settling
    (drop / "_SUCCESS").touch()
    clock.now += 1
    assert not is_complete(arrivals, drop)
    assert arrivals.is_settling
    clock.now += SETTLE - 0.1
    assert not is_complete(arrivals, drop)
    clock.now += 0.1
    assert is_complete(arrivals, drop)
    assert not arrivals.is_settling


@pytest.mark.parametrize("quiet", [QUIET, math.inf])
def test_files_that_arrive_after_the_marker_join_the_drop(clock: Clock, tmp_path: Path, quiet: float) -> None:
    """Copies in the order of names bring `_SUCCESS` first, and the next file may take long."""
    arrivals = Arrivals(marker="_SUCCESS", settle=SETTLE, quiet=quiet, clock=clock)
    drop = tmp_path / "drop"
    drop.mkdir()
    for name in ("_SUCCESS", "part-0.parquet", "part-1.parquet"):
        (drop / name).write_bytes(b"PAR1")
        _let_time_pass(tmp_path)
        assert not is_complete(arrivals, drop)
        assert not arrivals.is_settling
        clock.now += QUIET - 0.1
        assert not is_complete(arrivals, drop)
    clock.now += 0.1
    assert is_complete(arrivals, drop)


def test_a_marker_that_is_written_again_is_the_newest_file(arrivals: Arrivals, clock: Clock, drop: Path) -> None:
    (drop / "_SUCCESS").touch()
    _let_time_pass(drop.parent)
    add(drop)
    assert not is_complete(arrivals, drop)
    clock.now += SETTLE
    assert not is_complete(arrivals, drop)
    _let_time_pass(drop.parent)
    (drop / "_SUCCESS").touch()
    assert not is_complete(arrivals, drop)
    clock.now += SETTLE
    assert is_complete(arrivals, drop)


def test_a_drop_settles_no_longer_than_it_would_be_quiet(clock: Clock, drop: Path) -> None:
    arrivals = Arrivals(marker="_SUCCESS", settle=SETTLE, quiet=1, clock=clock)
    (drop / "_SUCCESS").touch()
    assert not is_complete(arrivals, drop)
    clock.now += 1
    assert is_complete(arrivals, drop)


def test_a_drop_that_does_not_change_is_complete_after_the_quiet_time(
    arrivals: Arrivals, clock: Clock, drop: Path
) -> None:
    """Not a moment before, however old its files say they are."""
    os.utime(drop / "old.parquet", (0, 0))
    assert not is_complete(arrivals, drop)
    clock.now += QUIET - 0.1
    assert not is_complete(arrivals, drop)
    clock.now += 0.1
    assert is_complete(arrivals, drop)


def grow(drop: Path) -> None:
    with (drop / "state=AL" / "part-0.parquet").open("ab") as stream:
        stream.write(b"x")


def add(drop: Path) -> None:
    (drop / "state=AL" / "part-1.parquet").write_bytes(b"PAR1")


def add_hidden(drop: Path) -> None:
    (drop / "_temporary").mkdir()


def rename(drop: Path) -> None:
    (drop / "old.parquet").rename(drop / "new.parquet")


def remove(drop: Path) -> None:
    (drop / "old.parquet").unlink()


def rewrite_in_place(drop: Path) -> None:
    """The same size, another time."""
    os.utime(drop / "old.parquet", ns=(1, 1))


@pytest.mark.parametrize("change", [grow, add, add_hidden, rename, remove, rewrite_in_place])
def test_any_change_of_a_drop_restarts_the_quiet_time(
    arrivals: Arrivals, clock: Clock, drop: Path, change: Callable[[Path], None]
) -> None:
    """Names, sizes, times; in folders within it, and in files that publishing ignores."""
    is_complete(arrivals, drop)
    clock.now += QUIET - 1
    change(drop)
    assert not is_complete(arrivals, drop)
    clock.now += QUIET - 1
    assert not is_complete(arrivals, drop)
    clock.now += 1
    assert is_complete(arrivals, drop)


def test_a_marker_of_one_table_is_not_that_of_the_drop(arrivals: Arrivals, clock: Clock, drop: Path) -> None:
    """Writers leave one in every folder that they wrote; the others may still be on their way."""
    (drop / "state=AL" / "_SUCCESS").touch()
    assert not is_complete(arrivals, drop)
    clock.now += SETTLE
    assert not is_complete(arrivals, drop)


def test_the_marker_can_have_another_name(clock: Clock, drop: Path) -> None:
    arrivals = Arrivals(marker="manifest.json", settle=0, quiet=QUIET, clock=clock)
    (drop / "_SUCCESS").touch()
    assert not is_complete(arrivals, drop)
    (drop / "manifest.json").touch()
    assert is_complete(arrivals, drop)


def test_a_folder_without_any_file_is_no_drop_yet(arrivals: Arrivals, clock: Clock, tmp_path: Path) -> None:
    """A person will fill it. A marker alone may have been copied first."""
    empty = tmp_path / "empty"
    (empty / "within").mkdir(parents=True)
    assert not is_complete(arrivals, empty)
    clock.now += 10 * QUIET
    assert not is_complete(arrivals, empty)
    (empty / "_SUCCESS").touch()
    assert not is_complete(arrivals, empty)
    clock.now += SETTLE
    assert not is_complete(arrivals, empty)
    clock.now += QUIET - SETTLE
    assert is_complete(arrivals, empty)


def test_a_single_file_is_complete_after_the_quiet_time(arrivals: Arrivals, clock: Clock, drop: Path) -> None:
    file = drop / "old.parquet"
    assert not is_complete(arrivals, file)
    clock.now += QUIET
    assert is_complete(arrivals, file)


def test_a_drop_of_the_same_name_and_look_is_another_one(arrivals: Arrivals, clock: Clock, drop: Path) -> None:
    """Once the first was taken, the second has to be quiet for itself."""
    is_complete(arrivals, drop)
    clock.now += QUIET
    assert is_complete(arrivals, drop)
    arrivals.forget("drop")
    assert not is_complete(arrivals, drop)


def test_a_single_look_uses_the_clock_of_the_file_system(clock: Clock, drop: Path) -> None:
    """Times that were copied say nothing; when the file system saw the last change does."""
    os.utime(drop / "old.parquet", (0, 0))
    changed = max(path.stat().st_ctime_ns for path in (drop, *drop.rglob("*")))

    def looking(seconds_later: float) -> Arrivals:
        at = changed + int(seconds_later * 1e9)
        return Arrivals(marker="_SUCCESS", settle=SETTLE, quiet=QUIET, clock=clock, file_clock=lambda: at)

    assert not is_complete(looking(0), drop)
    assert not is_complete(looking(QUIET - 1), drop)
    assert not is_complete(looking(-100), drop)
    assert is_complete(looking(QUIET), drop)


def test_names_come_oldest_first(arrivals: Arrivals, clock: Clock, tmp_path: Path) -> None:
    """By when they last changed here, not by their names or by the times that their files were given."""
    drops = [tmp_path / name for name in ("z", "a", "m")]
    for drop in drops:
        drop.mkdir()
        (drop / "part.parquet").touch()
        (drop / "_SUCCESS").touch()
        _let_time_pass(tmp_path)
    os.utime(tmp_path / "m" / "_SUCCESS", (0, 0))
    assert arrivals.look(reversed(drops)) == ([], ["z", "a", "m"])
    clock.now += SETTLE
    assert arrivals.look(reversed(drops)) == (["z", "a", "m"], [])
    _let_time_pass(tmp_path)
    (tmp_path / "z" / "more.parquet").touch()
    assert arrivals.look(drops) == (["a", "m"], ["z"])
    clock.now += QUIET
    assert arrivals.look(drops) == (["a", "m", "z"], [])


def _let_time_pass(folder: Path) -> None:
    """Until the file system's clock, which ticks slowly, has moved on."""
    probe = folder / "probe"
    probe.touch()
    began = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == began:
        probe.touch()
