"""A worker as the supervisor sees it: a process, its control socket, its newest report."""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from service.base import ipc
from service.base.ipc import AccessLogEntry
from service.instance.children import Child, ControlledChild
from service.instance.forks import Forks
from service.instance.silence import Silence, take_sample

_FRESH_SECONDS = 0.5
# A full near cache is emptied in some 500 turns of a loop that also serves requests.
_PURGE_SECONDS = 5.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class WorkerProcess(ControlledChild):
    """One worker, from its start to its end; owned by the instance's Workers.

    `report` is the newest one, None before the first; `silence` is the time since; `given_up` is set once it hangs.
    """

    def __init__(
        self,
        process: Child,
        control_socket: socket.socket,
        orders: ipc.Orders,
        on_report: Callable[[ipc.WorkerReport], None],
    ) -> None:
        self.report: ipc.WorkerReport | None = None
        self.silence = Silence(starting=True)
        self.given_up = False
        self.started_at = time.time()
        self.leaving = False  # it got SIGTERM
        self._finding: dict[str, list[asyncio.Future[list[AccessLogEntry]]]] = {}
        self._on_report = on_report
        self._heard = False
        self._waiters: list[asyncio.Future[None]] = []
        super().__init__(process, control_socket, ipc.encode_message(orders), self._handle, ipc.LINE_LIMIT_BYTES)

    @classmethod
    async def start(
        cls, forks: Forks, orders: ipc.Orders, listening: socket.socket, on_report: Callable[[ipc.WorkerReport], None]
    ) -> "WorkerProcess":
        """Starts a worker. Call from the main thread: a worker dies with the thread that started it. Raises OSError."""
        process, control_socket = await forks.start("service.worker.main", listening.fileno())
        return cls(process, control_socket, orders, on_report)

    def signal(self, number: int) -> None:
        if number == signal.SIGTERM:
            self.leaving = True
        super().signal(number)

    def look(self) -> None:
        """Checks whether the worker has reported since the last call, then requests a report. Call every
        `LOOK_SECONDS`.
        """
        if not self._heard:
            self.silence.look(asyncio.get_running_loop().time(), take_sample(self.pid))
        self._heard = False
        self.send(ipc.REPORT)

    def give_up(self) -> None:
        """Kills the hanging worker. If it hangs in the kernel, it ends later."""
        self.given_up = True
        self.signal(signal.SIGKILL)

    async def purge(self) -> None:
        """Empties the worker's near cache; waits for that up to `_PURGE_SECONDS`."""
        before = self._purges
        self.send(ipc.PURGE)
        if self.report is None:
            return  # it does not serve yet
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PURGE_SECONDS):
                # a report may have been sent before the order arrived
                while self._purges == before and self.is_connected:
                    await self.fresh_report()

    @property
    def _purges(self) -> int:
        return self.report.purges if self.report is not None else 0

    async def fresh_report(self) -> None:
        """Waits up to `_FRESH_SECONDS` for a report that was sent after this call."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self.send(ipc.REPORT)
        await asyncio.wait([waiter], timeout=_FRESH_SECONDS)

    async def find(self, request_id: str) -> list[AccessLogEntry]:
        """Returns the worker's log entries of a request; waits up to `_FRESH_SECONDS`."""
        found: asyncio.Future[list[AccessLogEntry]] = asyncio.get_running_loop().create_future()
        self._finding.setdefault(request_id, []).append(found)
        self.send(ipc.FIND + request_id.encode() + b"\n")
        await asyncio.wait([found], timeout=_FRESH_SECONDS)
        return found.result() if found.done() else []

    @property
    def hung_seconds(self) -> float:
        """How long an access to its data folder has hung, as of its last report."""
        return self.report.hung_seconds if self.report is not None else 0.0

    def resident_bytes(self) -> int:
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE_BYTES
        except (OSError, IndexError, ValueError):
            return 0

    def _handle(self, line: bytes) -> None:
        """Handles a line from the worker. Raises ValueError if it is invalid."""
        self._heard = True
        self.silence = Silence()
        if line != ipc.STARTING:
            self._take_report(msgspec.json.decode(line, type=ipc.WorkerReport))

    def _take_report(self, report: ipc.WorkerReport) -> None:
        self.report = report
        self._on_report(report)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        if report.found is not None:
            for finding in self._finding.pop(report.found.request_id, []):
                if not finding.done():
                    finding.set_result(report.found.requests)


def describe_end(status: str, hung: Silence | None, last_line: str | None) -> str:
    """Returns why a worker ended. `status` is its exit code or signal, and the error that it reported; `hung`, its
    silence if it was killed for that; `last_line`, that of its log.
    """
    number = status.removeprefix("signal ")
    if number.isdigit() and int(number) in signal.valid_signals():
        status = f"{status}, {signal.Signals(int(number)).name}"
    if hung is not None:
        status += f", because it did not respond: {hung}"
    return status if last_line is None else f"{status}; its last log line: {last_line}"
