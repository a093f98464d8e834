"""Processes of an instance: when one is started again, and that none outlives its supervisor."""

import asyncio
import os
import socket
import subprocess

import pytest

from config.processes import interpreter
from service.base.backoff import LONGEST_BACKOFF_SECONDS, Backoff
from service.base.ipc import read_line
from service.instance.children import ControlledChild, start_child


def test_a_process_that_dies_of_its_start_is_started_later_and_later() -> None:
    backoff = Backoff()
    pauses = [backoff.after(0.1) for _ in range(8)]
    assert pauses[:3] == [0.2, 0.4, 0.8]
    assert pauses[-1] == LONGEST_BACKOFF_SECONDS
    assert [backoff.after(lived) for lived in (60, 0.1)] == [0, 0.2]


@pytest.mark.parametrize("module", ["service.worker.main", "service.instance.kept_main"])
def test_a_child_whose_supervisor_was_killed_before_it_began_ends_at_once(module: str) -> None:
    """The kernel reports no past end: the child already belongs to another process."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        files = (str(theirs.fileno()),) * 2
        gone = str(os.getppid())  # not the one that starts it
        child = subprocess.run(interpreter(module, gone, *files), pass_fds=[theirs.fileno()], timeout=60)
    assert child.returncode == 1


async def test_a_process_reports_why_its_module_cannot_be_imported() -> None:
    process, control = start_child("service.no_such_module")
    child = ControlledChild(process, control, b"", lambda _: None, 1000)
    assert await child.wait_for_exit() == ("exit code 1, ModuleNotFoundError: No module named 'service.no_such_module'")


async def test_a_supervisor_that_went_without_reading_a_report_is_gone() -> None:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=theirs)
    writer.write(b"report\n")
    ours.close()
    assert await asyncio.wait_for(read_line(reader), 30) == b""
    writer.close()
