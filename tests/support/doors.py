"""A worker that is asked through both of its doors."""

import asyncio
import contextlib
import functools
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import redis.asyncio

from config.settings import Settings
from service.base.terms import Quota, Rate, Terms
from service.cache.entry import CacheEntry
from service.cache.key import CacheKey
from service.keys.store import KeyStore
from service.worker import serving
from tests.support.asgi import exchange
from tests.support.connection import Connection, start_clock
from tests.support.key_store import any_key
from tests.support.served import FORECAST, Served, served, with_keys

SPRINGFIELD = f"{FORECAST}?city_name=springfield&state_code=IL"  # large enough for gzip
TARGETS = (f"{FORECAST}?zip_code=36436", f"{FORECAST}?zip_code=09001", SPRINGFIELD, f"{FORECAST}?zip_code=36436&x=%FF")
VARYING = (
    (re.compile(rb"\r\nx-request-id: [^\r]*"), b"\r\nx-request-id: I"),
    (re.compile(rb'"request_id":"[^"]*"'), b'"request_id":"I"'),
    (re.compile(rb"(\r\nratelimit: [^\r]*)"), b"\r\nratelimit: R"),
    (re.compile(rb"\r\ncache-status: [^\r]*"), b"\r\ncache-status: C"),
    (re.compile(rb"\r\nretry-after: [^\r]*"), b"\r\nretry-after: A"),
)


class Doors:
    """A worker that is asked through both doors: its connections, and as any ASGI server asks it."""

    def __init__(self, running: Served, keys: dict[str, str], tier: str) -> None:
        self.running = running
        self.tier = tier
        self.keys = keys
        app = running.app
        settings = app._settings
        self.door = serving.make_door(app, settings)
        start_clock(self.door)

    def issue(self, terms: Terms) -> str:
        """A new key, which the worker has never seen."""
        settings = self.running.app._settings

        async def one(store: KeyStore) -> str:
            return (await store.issue("acme", "", None, terms))[0]

        return self.running.run(lambda: with_keys(settings.keys_url, Path(settings.data_dir), one))

    async def look_at_keys(self) -> None:
        """However long ago a key was used: it is good again, without waiting."""
        for key in self.keys.values():
            await self.running.app.verifier.check(key)

    def connect(self) -> Connection:
        """A new connection, in the worker's loop."""
        return Connection(self.door)

    def send(self, chunks: list[bytes], paused: tuple[int, ...] = ()) -> bytes:
        """What a connection answers to these chunks. At those numbered in `paused`, its reader takes nothing."""

        async def send() -> bytes:
            await self.look_at_keys()
            connection = self.connect()
            for number, chunk in enumerate(chunks):
                if number in paused:
                    connection.block()
                await connection.feed(chunk)
                if number in paused:
                    await asyncio.sleep(0)
                    connection.unblock()
                await connection.settle()
            return connection.end()

        return bytes(self.running.run(send))

    def call(self, scope: dict[str, Any]) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Status, headers and body that the ASGI application answers to a scope."""

        async def call() -> tuple[Any, bytes]:
            await self.look_at_keys()
            return await exchange(self.running.app.entry, **scope)

        start, body = self.running.run(call)
        return start["status"], start["headers"], body


def in_worker(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs the test, whose first fixture is `doors`, in the worker's loop, once its keys were looked at."""

    @functools.wraps(test)
    def run(doors: Doors, **fixtures: Any) -> None:
        async def work() -> None:
            await doors.look_at_keys()
            await test(doors, **fixtures)

        doors.running.run(work)

    return run


def facts_of(doors: Doors, families: Collection[str]) -> dict[tuple[str, tuple[str, ...]], float]:
    """What the worker has counted in these metrics."""
    counted: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for name, labels, value in doors.running.app.figures().counters:
        if name in families:
            counted[name, labels] += value
    return dict(counted)


def normalised(answers: bytes) -> bytes:
    for pattern, constant in VARYING:
        answers = pattern.sub(constant, answers)
    return answers


def request(target: str, key: str, *lines: str, method: str = "GET", version: str = "1.1") -> bytes:
    head = [f"{method} {target} HTTP/{version}", "Host: forecast.test", f"x-api-key: {key}", *lines]
    return "\r\n".join([*head, "", ""]).encode("latin-1")


async def _never_kept(running: Served, cache_url: str) -> None:
    """From now on nothing is stored, and no fill answers when it is over."""

    def put(key: CacheKey, entry: CacheEntry) -> "asyncio.Future[bool]":
        return asyncio.get_running_loop().create_future()

    running.app.shared_cache.put = put  # type: ignore[method-assign]
    running.app._cache._flights._linger = 0.0
    async with redis.asyncio.from_url(cache_url) as client:
        for name in [name async for name in client.scan_iter("c:*")]:
            await client.delete(name)


@contextlib.contextmanager
def asked_through_doors(settings: Settings, tier: str) -> Iterator[Doors]:
    """`tier` is `near`, `shared` or `warehouse`: where answers come from."""
    near_cache_bytes = settings.near_cache_bytes if tier == "near" else 0
    with served(msgspec.structs.replace(settings, near_cache_bytes=near_cache_bytes)) as running:
        if tier == "warehouse":
            running.run(lambda: _never_kept(running, settings.cache_url))

        async def issue(store: KeyStore) -> dict[str, str]:
            terms = {
                "free": Terms(),
                "limited": Terms(rate=Rate(100_000, 1, 100_000)),
                "other": Terms(areas=("projects",)),
                "slow": Terms(rate=Rate(1, 3600, 1)),
                "used up": Terms(quota=Quota(1, "month")),
                "metered": Terms(rate=Rate(100_000, 1, 100_000), quota=Quota(10_000_000, "month")),
                "revoked": Terms(),
            }
            issued = {name: await store.issue("acme", "", None, one) for name, one in terms.items()}
            issued["test"] = await store.issue("acme", "", None, test=True)
            ended, _ = await store.issue("acme", "", datetime.now(UTC) + timedelta(seconds=1), Terms())
            await store.revoke(issued["revoked"][1].key_id)
            others = {"expired": ended, "unknown": any_key()[0], "malformed": "phf_live_x", "missing": ""}
            return {name: key for name, (key, _) in issued.items()} | others

        async def run() -> dict[str, str]:
            return await with_keys(settings.keys_url, Path(settings.data_dir), issue)

        made = Doors(running, running.run(run), tier)
        while running.ask(TARGETS[0], key=made.keys["expired"]).status != 401:
            time.sleep(0.05)
        for key in made.keys.values():
            for target in (*TARGETS, *TARGETS):
                running.ask(target, key=key)
        yield made
