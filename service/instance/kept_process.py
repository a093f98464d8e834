"""Keeps a process of an instance alive and holds the problem that it reports."""

import asyncio
import logging
import signal

import msgspec

from service.base.backoff import Backoff
from service.base.tasks import keep_running
from service.instance.children import ControlledChild
from service.instance.forks import Forks

log = logging.getLogger("forecast.supervisor")

MAIN = "service.instance.kept_main"
# Maximum length of a line, which holds one problem.
_LINE_BYTES = 64 << 10
# A stopping process abandons its work and only cleans up.
_STOP_SECONDS = 3.0


class KeptProcess:
    """Keeps one process of an instance alive; owned by its supervisor. `problem` is None while it works."""

    def __init__(self, name: str, forks: Forks) -> None:
        """`name` follows "the" in messages."""
        self.problem: str | None = None
        self._name = name
        self._forks = forks
        self._orders = b""
        self._process: ControlledChild | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._backoff = Backoff()
        self._stopping = asyncio.Event()

    def start(self, orders: msgspec.Struct) -> None:
        """Keeps a process alive until `stop`; `orders` is the first line that it gets.

        Call from the main thread: the process dies with the thread that started it.
        """
        self._orders = msgspec.json.encode(orders) + b"\n"
        self._keeping = keep_running(f"keep the {self._name}", self._keep, stopping=self._stopping)

    async def stop(self) -> None:
        """Ends the process. Abandoned work is repeated after the next start."""
        self._stopping.set()
        if self._keeping is None:
            return
        self.signal(signal.SIGTERM)
        _, late = await asyncio.wait([self._keeping], timeout=_STOP_SECONDS)
        if late:
            self.signal(signal.SIGKILL)
        await asyncio.gather(self._keeping, return_exceptions=True)

    async def _keep(self) -> float:
        """Runs one process, from its start to its end; returns the seconds until the next."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            status = await self._run()
        except OSError as error:
            status = str(error)
        if not self._stopping.is_set():
            self.problem = f"the {self._name} ended ({status}); starting it again"
            log.error("%s", self.problem)
        return self._backoff.after(loop.time() - began)

    def signal(self, number: int) -> None:
        if self._process is not None:
            self._process.signal(number)

    async def _run(self) -> str:
        """Runs one process, from its start to its end; returns how it ended."""
        process, control_socket = await self._forks.start(MAIN)
        self._process = ControlledChild(process, control_socket, self._orders, self._take, _LINE_BYTES)
        if self._stopping.is_set():  # since the start began
            self.signal(signal.SIGTERM)
        self.problem = None
        status = await self._process.wait_for_exit()
        self._process = None
        return status

    def _take(self, line: bytes) -> None:
        """Takes the problem that keeps the process from working; null once that is solved."""
        self.problem = msgspec.json.decode(line, type=str | None)
