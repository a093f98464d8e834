"""The service as an ASGI application, for any server: ``uvicorn service.asgi:app``.

It is one worker in the server's own process, with the settings of `forecast serve`. Both Redis must already run. There
is no operators' listener, no inbox and no mirror: `forecast serve` has these, and is many times as fast.
"""

import logging
from typing import Any

from config.loading import load
from config.settings import SettingsError
from config.urls import EMBEDDED
from service.base.ipc import Endpoints
from service.keys import pepper
from service.request.response import Send
from service.worker.assembly import WorkerApp

log = logging.getLogger("forecast.serve")


class Application:
    """Starts a worker when the server starts, and stops it when the server stops."""

    def __init__(self) -> None:
        self._worker: WorkerApp | None = None

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif self._worker is None:
            raise RuntimeError("The server does not support ASGI's lifespan, which starts the service.")
        else:
            await self._worker.entry(scope, receive, send)

    async def _run_lifespan(self, receive: Any, send: Send) -> None:
        await receive()
        try:
            self._worker = worker = open_worker()
            await worker.start()
        except Exception as error:
            log.exception("the service cannot start")
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._worker = None
        await worker.stop()
        await send({"type": "lifespan.shutdown.complete"})


def open_worker() -> WorkerApp:
    """Returns a worker with the settings in force. Raises SettingsError."""
    settings = load().settings
    for name, url in (("KEYS", settings.keys_url), ("CACHE", settings.cache_url)):
        if url == EMBEDDED:
            raise SettingsError(f"FORECAST_{name}_URL: name a running Redis. Only forecast serve starts its own.")
    secret = pepper.obtain(settings.keys_pepper, settings.data_path)
    return WorkerApp(settings, Endpoints(settings.keys_url, settings.cache_url, secret), lambda _: None)


app = Application()
