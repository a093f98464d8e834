"""An operators' listener whose figures a test makes: the real application, and in it endpoints of our own."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import uvicorn

from service.base.server import ListenerServer
from service.operators.access import Right, Tokens
from service.operators.overview import History, Overview
from tests.browser.made import history, well
from tests.service.operators.test_state import WELL, instance
from tests.support.operators import operators

_SPANS = {"10m": (600.0, 1.0), "2h": (7200.0, 10.0), "24h": (86_400.0, 120.0)}


class Double:
    """Serves from `start` to `stop`, on the same port each time. `overview` is asked each time that one is sent."""

    def __init__(self, read: str | None = None) -> None:
        self.overview: Callable[[], Overview] = well
        self.history: Callable[[float, float, float], History] = history
        self.silent = False  # connected, but nothing comes
        self.read = read
        self._listening = _listener(0)
        self.port = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"

    def start(self) -> "Double":
        self._app = operators(lambda: instance(WELL), read=self.read)
        config = uvicorn.Config(self, lifespan="off", log_config=None, access_log=False, ws="none")
        self._server = ListenerServer(config)
        if self._listening.fileno() < 0:
            self._listening = _listener(self.port)
        serving = self._server.serve(sockets=[self._listening])
        self._thread = threading.Thread(target=asyncio.run, args=(serving,))
        self._thread.start()
        return self

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] not in ("/overview", "/history", "/events"):
            return await self._app(scope, receive, send)
        refused = Tokens(self.read).refusal(Right.READ, scope["headers"])
        kind = b"text/event-stream" if scope["path"] == "/events" else b"application/json"
        start = {"status": 401 if refused else 200, "headers": [(b"content-type", kind)]}
        await send({"type": "http.response.start", **start})
        if not refused and scope["path"] == "/events":
            with contextlib.suppress(asyncio.CancelledError):  # that is how the server stops
                await self._stream(send)
            return None
        body = b"{}" if refused else self._figures(scope)
        await send({"type": "http.response.body", "body": body})
        return None

    def _figures(self, scope: Any) -> bytes:
        if scope["path"] != "/history":
            return msgspec.json.encode(self.overview())
        seconds, step = _SPANS[scope["query_string"].decode().removeprefix("span=")]
        return msgspec.json.encode(self.history(time.time(), seconds, step))

    async def _stream(self, send: Any) -> None:
        while not self._server.should_exit:
            if not self.silent:
                event = b"event: overview\ndata: %b\n\n" % msgspec.json.encode(self.overview())
                await send({"type": "http.response.body", "body": event, "more_body": True})
            await asyncio.sleep(0.2)


def _listener(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    return listening
