"""The worker's application in Litestar's test client, and behind its real server and protocol, on a free port."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote_plus

from litestar.testing import TestClient

from config.settings import Settings
from service.base.ipc import Endpoints
from service.keys.record import ApiKey
from service.keys.store import KeyStore
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.worker.assembly import WorkerApp
from service.worker.serving import make_server
from tests.support.waiting import eventually
from tests.support.wire import Answer, Wire

FORECAST = "/v1/population-housing-forecast"
PEPPER = b"pepper of the tests"

T = TypeVar("T")


class Served:
    """`key` is sent with every request that brings no other; `app` must only be touched through `run`."""

    def __init__(self, app: WorkerApp, port: int, key: str, client: "TestClient[Any]") -> None:
        self.app = app
        self.port = port
        self.key = key
        self._client = client

    def wire(self, timeout: float = 30.0) -> Wire:
        return Wire(self.port, timeout)

    def head(self, target: str, method: str = "GET", *, key: str | None = "", **headers: str) -> str:
        """A request's head; `key` None leaves the header out, and `_` in the names of `headers` is a hyphen."""
        lines = [f"{method} {target} HTTP/1.1", "Host: forecast.test"]
        lines += [] if key is None else [f"x-api-key: {key or self.key}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""])

    def ask(self, target: str, method: str = "GET", *, key: str | None = "", **headers: str) -> Answer:
        """The answer of the ASGI application, by Litestar's test client. Headers as in `head`."""
        sent = {} if key is None else {"x-api-key": key or self.key}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        encoded = [(name.encode(), value.encode()) for name, value in sent.items()]
        with self._client.stream(method, target, headers=encoded) as response:
            fields = ((name.decode().lower(), value.decode()) for name, value in response.headers.raw)
            return Answer(response.status_code, tuple(fields), b"".join(response.iter_raw()))

    def ask_by_wire(self, target: str, method: str = "GET", *, key: str | None = "", **headers: str) -> Answer:
        """The same on a connection of our own server."""
        with self.wire() as wire:
            return wire.send(self.head(target, method, key=key, **headers)).answer(head_only=method == "HEAD")

    def forecast(self, **parameters: str) -> Answer:
        query = "&".join(f"{name}={quote_plus(value)}" for name, value in parameters.items())
        return self.ask(f"{FORECAST}?{query}")

    def wait_for(self, release: str) -> None:
        """Until the worker serves `release`."""

        def there() -> bool:
            current = self.app.follower.current
            return current is not None and current.id == release

        async def serves() -> None:
            await eventually(there)

        self.run(serves)

    def wait_until_stored(self) -> None:
        """Until the shared cache has been given what was answered."""

        async def stored() -> None:
            await eventually(lambda: not self.app.shared_cache._writer._bytes)

        self.run(stored)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs `work` in the worker's event loop."""
        return self._client.blocking_portal.call(work)


async def with_keys(url: str, data: Path, work: Callable[[KeyStore], Awaitable[T]]) -> T:
    """Runs `work` on the key store at `url`, as an operator's command would."""
    store = RedisStore("key store", url, open_client(url, timeout=3))
    try:
        return await work(KeyStore(store, PEPPER, data))
    finally:
        await store.stop()


async def _issue(store: KeyStore) -> tuple[str, ApiKey]:
    return await store.issue("acme", "", None)


class _Application:
    """A worker's application, with its listener beside it; both live as long as the test client that starts them."""

    app: WorkerApp

    def __init__(self, settings: Settings) -> None:
        self.port, self.key = 0, ""
        self._settings = settings

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self.app.entry(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        settings = self._settings
        self.app = WorkerApp(settings, Endpoints(settings.keys_url, settings.cache_url, PEPPER), lambda _: None)
        server = make_server(self.app, settings)
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen(128)
            listening.setblocking(False)
            self.port = listening.getsockname()[1]
            self.key, _ = await with_keys(settings.keys_url, settings.data_path, _issue)
            await self.app.start()
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            await send({"type": "lifespan.startup.complete"})
            await receive()
            server.should_exit = True
            await serving
            await self.app.stop()
        await send({"type": "lifespan.shutdown.complete"})


@contextlib.contextmanager
def served(settings: Settings) -> Iterator[Served]:
    """Serves with `settings`; whose URLs must be those of running servers."""
    application = _Application(settings)
    with TestClient(application, "http://forecast.test", backend_options={"use_uvloop": True}) as client:
        client.headers.clear()  # those of a library: each request says what it sends
        yield Served(application.app, application.port, application.key, client)
