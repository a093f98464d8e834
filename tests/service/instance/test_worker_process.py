"""A worker as the supervisor sees it; the test is the process."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from service.base import ipc
from service.instance.silence import Silence
from service.instance.worker_process import WorkerProcess, describe_end
from tests.service.operators.test_state import WELL
from tests.support.waiting import PATIENCE


async def test_a_purge_has_ended_when_the_worker_says_so() -> None:
    """Not with a report from before it: one that was asked for earlier, or that tells of a switch."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    orders: Any = {}
    process: Any = SimpleNamespace(pid=1, send_signal=lambda _: None)
    heard: asyncio.Queue[None] = asyncio.Queue()
    worker = WorkerProcess(process, ours, orders, lambda _: heard.put_nowait(None))
    reader, writer = await asyncio.open_connection(sock=theirs)
    await reader.readline()

    async def report(purges: int) -> None:
        writer.write(ipc.encode_message(msgspec.structs.replace(WELL, purges=purges)))
        await heard.get()

    await report(3)
    purging = asyncio.create_task(worker.purge())
    assert await reader.readline() == ipc.PURGE
    assert await reader.readline() == ipc.REPORT
    await report(3)
    assert await asyncio.wait_for(reader.readline(), PATIENCE) == ipc.REPORT  # it asks again
    assert not purging.done()
    await report(4)
    await asyncio.wait_for(purging, PATIENCE)
    writer.close()
    await worker._listening


@pytest.mark.parametrize(
    ("status", "hung", "last_line", "said"),
    [
        ("exit code 1, MemoryError", None, None, "exit code 1, MemoryError"),
        ("signal 11", None, "serving release r1", "signal 11, SIGSEGV; its last log line: serving release r1"),
        ("signal 9", Silence(), None, "signal 9, SIGKILL, because it did not respond: silent for 0.0 s"),
        ("signal 15", None, None, "signal 15, SIGTERM"),
        ("killed, but has not exited yet", None, None, "killed, but has not exited yet"),
    ],
)
def test_the_end_of_a_worker_is_explained(status: str, hung: Silence | None, last_line: str | None, said: str) -> None:
    assert describe_end(status, hung, last_line) == said
