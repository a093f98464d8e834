"""Whoever stops everything says nothing about the drop that was being read."""

import os
import re
import signal
from pathlib import Path

import msgspec
import pytest

from tests.support.instance import children_of, is_alive
from tests.support.waiting import until
from warehouse.drops.messages import ReadRequest, ReadResult
from warehouse.drops.reader import read_in_subprocess


def read_with_a_signal(drop: Path, out: Path, number: int) -> ReadResult:
    """Reads `drop`; the reader gets the signal while it waits for its request."""
    out.mkdir()
    sent: list[int] = []
    encode = msgspec.msgpack.encode

    def signal_and_encode(request: object) -> bytes:
        until(lambda: bool(_listening_readers()))
        sent.extend(_listening_readers())
        os.kill(sent[0], number)
        return encode(request)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(msgspec.msgpack, "encode", signal_and_encode)
        read = read_in_subprocess(ReadRequest(paths=(str(drop),), out=str(out), before=None), lambda _: None)
    (reader,) = sent
    until(lambda: not is_alive(reader))
    return read


def _listening_readers() -> list[int]:
    """Reader processes that have set what they do on signals."""
    return [pid for pid in children_of(os.getpid(), "warehouse.drops.reader") if _ignores(pid, signal.SIGINT)]


def _ignores(pid: int, number: int) -> bool:
    (mask,) = re.findall(r"SigIgn:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_a_reader_goes_on_until_its_parent_says_otherwise(drop: Path, tmp_path: Path) -> None:
    """A service manager's SIGTERM, or Ctrl-C, reaches all processes of a group; only the publisher decides."""
    for number in (signal.SIGTERM, signal.SIGINT):
        read = read_with_a_signal(drop, tmp_path / signal.Signals(number).name, number)
        assert (read.failure, set(read.tables)) == (None, {"aliases", "housing", "locations", "population"})


def test_a_reader_that_was_stopped_is_no_fault_of_the_drop(drop: Path, tmp_path: Path) -> None:
    """A failure, to be tried again, and no finding."""
    read = read_with_a_signal(drop, tmp_path / "out", signal.SIGHUP)
    assert (read.failure, read.findings) == ("reading the drop was stopped by SIGHUP", ())
