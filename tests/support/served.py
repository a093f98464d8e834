"""The worker's application behind its real server and protocol, on a free port, in a thread of the test's process."""

import asyncio
import contextlib
import queue
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote_plus

import uvloop

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
_START_SECONDS = 60.0

T = TypeVar("T")


class Served:
    """`key` is sent with every request that brings no other; `app` must only be touched through `run`."""

    def __init__(self, app: WorkerApp, port: int, key: str, loop: asyncio.AbstractEventLoop) -> None:
        self.app = app
        self.port = port
        self.key = key
        self._loop = loop

    def wire(self, timeout: float = 30.0) -> Wire:
        return Wire(self.port, timeout)

    def head(self, target: str, method: str = "GET", *, key: str | None = "", **headers: str) -> str:
        """A request's head; `key` None leaves the header out, and `_` in the names of `headers` is a hyphen."""
        lines = [f"{method} {target} HTTP/1.1", "Host: forecast.test"]
        lines += [] if key is None else [f"x-api-key: {key or self.key}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""])

    def ask(self, target: str, method: str = "GET", *, key: str | None = "", **headers: str) -> Answer:
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
            await eventually(lambda: not self.app._shared._writer._bytes)

        self.run(stored)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs `work` in the worker's event loop."""

        async def run() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(_START_SECONDS)


async def with_keys(url: str, data: Path, work: Callable[[KeyStore], Awaitable[T]]) -> T:
    """Runs `work` on the key store at `url`, as an operator's command would."""
    store = RedisStore("key store", url, open_client(url, timeout=3))
    try:
        return await work(KeyStore(store, PEPPER, data))
    finally:
        await store.stop()


async def _issue(store: KeyStore) -> tuple[str, ApiKey]:
    return await store.issue("acme", "", None)


async def _serve(settings: Settings, stop: asyncio.Event, ready: Callable[[Served], None]) -> None:
    app = WorkerApp(settings, Endpoints(settings.keys_url, settings.cache_url, PEPPER), lambda _: None)
    server = make_server(app, settings)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        listening.setblocking(False)
        key, _ = await with_keys(settings.keys_url, settings.data_path, _issue)
        await app.start()
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        ready(Served(app, listening.getsockname()[1], key, asyncio.get_running_loop()))
        await stop.wait()
        server.should_exit = True
        await serving
        await app.stop()


@contextlib.contextmanager
def served(settings: Settings) -> Iterator[Served]:
    """Serves with `settings`; whose URLs must be those of running servers."""
    results: queue.Queue[Served | BaseException] = queue.Queue()
    stop = asyncio.Event()

    def run() -> None:
        try:
            uvloop.run(_serve(settings, stop, results.put))
        except BaseException as error:
            results.put(error)

    thread = threading.Thread(target=run, name="worker of the tests")
    thread.start()
    running = results.get(timeout=_START_SECONDS)
    if isinstance(running, BaseException):
        raise running
    try:
        yield running
    finally:
        running._loop.call_soon_threadsafe(stop.set)
        thread.join(_START_SECONDS)
        assert not thread.is_alive()
        assert results.empty(), results.get()
