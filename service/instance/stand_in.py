"""Answers partners while no worker serves: every request gets a 503 within 5 s, and none waits for a worker."""

import asyncio
import logging
import socket
from typing import Any

from service.base.tasks import end_task, keep_running
from service.base.telemetry import REJECTED, REQUESTS
from service.connection.door import Door
from service.connection.server import ListenerServer
from service.instance.workers import Workers
from service.request.errors import problem
from service.request.request import NO_AREA
from service.request.response import Response

log = logging.getLogger("forecast.supervisor")

_LOOK_SECONDS = 0.1
# Workers usually start sooner, and then answer the waiting requests. A silent worker counts as hanging after a second,
# so no request waits longer than 5 s.
_PATIENCE_SECONDS = 3.5
_STOP_SECONDS = 1.0


class StandIn:
    """The supervisor's own server on the partners' listener, from `start` to `stop`; the supervisor owns it."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._served_at = 0.0  # when a worker last served, in seconds of the loop's clock
        self._server: ListenerServer | None = None
        self._serving: asyncio.Task[None] | None = None

    def start(self, listening: socket.socket) -> None:
        self._listening = listening
        self._served_at = asyncio.get_running_loop().time()
        self._looking = keep_running("stand in for workers", self._look)

    async def stop(self) -> None:
        await end_task(self._looking)
        await self._leave()

    async def _look(self) -> float:
        """Starts or stops answering; returns the seconds until the next look."""
        workers, now = self._workers, asyncio.get_running_loop().time()
        if workers.serving:
            self._served_at = now
            await self._leave()
        elif self._server is None and (workers.start_problem or now - self._served_at > _PATIENCE_SECONDS):
            log.warning(
                "no worker serves, so requests get a 503: %s", workers.start_problem or "workers take long to start"
            )
            self._server = ListenerServer(_Door(self._workers))
            # a copy, because the server closes its sockets
            self._serving = asyncio.create_task(self._server.serve(sockets=[self._listening.dup()]), name="stand-in")
        return _LOOK_SECONDS

    async def _leave(self) -> None:
        """Leaves the listener to the workers, after a second for the last replies."""
        server, serving, self._server = self._server, self._serving, None
        if server is not None and serving is not None:
            server.should_exit = True
            await asyncio.wait([serving], timeout=_STOP_SECONDS)
            server.force_exit = True


class _Door(Door):
    """Allows no connection, so that the first request of each is refused with `unavailable`."""

    def __init__(self, workers: Workers) -> None:
        super().__init__(_no_application, 0, keep_alive=0.0)
        self._retired = workers.retired

    def rejected(self, code: str) -> None:
        self._retired.count(REJECTED, code)

    def refusal(self, code: str, request_id: bytes, address: str, detail: str | None = None) -> Response:  # noqa: ARG002
        response = problem(code, detail)
        self._retired.count(REQUESTS, NO_AREA, str(response.status), code)
        return response


async def _no_application(scope: Any, receive: Any, send: Any) -> None:
    """Never called: no request passes the door."""
