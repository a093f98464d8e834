"""Whoever stops everything says nothing about the drop that was being read."""

import os
import signal
from pathlib import Path

from tests.support.instance import children_of, is_alive
from tests.support.waiting import until
from warehouse.drops.pipeline import ReadRequest, ReadResult
from warehouse.drops.reader import read_in_subprocess


def read_with_a_signal(drop: Path, out: Path, number: int) -> ReadResult:
    """Reads `drop`; the reader gets the signal at its first step."""
    out.mkdir()
    sent: list[int] = []

    def progress(_: str) -> None:
        if not sent:
            sent.extend(pid for pid in children_of(os.getpid()) if b"warehouse.drops.reader" in _command(pid))
            for pid in sent:
                os.kill(pid, number)

    read = read_in_subprocess(ReadRequest(paths=(str(drop),), out=str(out), before=None), progress)
    assert len(sent) == 1
    until(lambda: not is_alive(sent[0]))
    return read


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_reader_goes_on_until_its_parent_says_otherwise(drop: Path, tmp_path: Path) -> None:
    """A service manager's SIGTERM, or Ctrl-C, reaches all processes of a group; only the publisher decides."""
    for number in (signal.SIGTERM, signal.SIGINT):
        read = read_with_a_signal(drop, tmp_path / signal.Signals(number).name, number)
        assert (read.failure, set(read.tables)) == (None, {"aliases", "housing", "locations", "population"})


def test_a_reader_that_was_stopped_is_no_fault_of_the_drop(drop: Path, tmp_path: Path) -> None:
    """A failure, to be tried again, and no finding."""
    read = read_with_a_signal(drop, tmp_path / "out", signal.SIGHUP)
    assert (read.failure, read.findings) == ("reading the drop was stopped by SIGHUP", ())
