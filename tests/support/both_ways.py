"""One worker that is asked in two ways: directly, and through the router."""

import asyncio
import contextlib
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import redis.asyncio
import uvicorn

from config.settings import Settings
from service.base.telemetry import ANSWERS
from service.base.terms import Quota, Rate, Terms
from service.cache.entry import CacheEntry
from service.cache.key import CacheKey
from service.http.query import LocationQuery, StatesWith, parse_location
from service.keys import form
from service.keys.store import KeyStore
from service.request.pipeline import Gate
from service.worker import serving
from tests.support.connection import Connection
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


class Both:
    """The same worker, asked with and without direct answers."""

    def __init__(self, running: Served, keys: dict[str, str], tier: str) -> None:
        self.running = running
        self.tier = tier
        self.keys = keys
        app = running.app
        self.direct = app.gate
        self.ordinary = app._build_gate(msgspec.structs.replace(app._settings, direct_answers=False))
        assert self.direct.hot is not None
        assert self.ordinary.hot is None

    @property
    def answered(self) -> int:
        return self.running.app.hot.answered

    def config(self, gate: Gate) -> uvicorn.Config:
        made = serving.server_config(gate, self.running.app._settings)
        made.load()
        return made

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

    async def _sent(self, gate: Gate, chunks: list[bytes], paused: tuple[int, ...]) -> tuple[bytes, bool]:
        """What is answered, and whether the connection is closed then."""
        connection = Connection(gate, self.config(gate))
        for number, chunk in enumerate(chunks):
            if number in paused:
                connection.pause_writing()
            await connection.feed(chunk)
            if number in paused:
                await asyncio.sleep(0)
                connection.protocol.resume_writing()
            await connection.settle()
        closed = connection.transport.closing
        return connection.end(), closed

    def compare(self, chunks: list[bytes], paused: tuple[int, ...] = ()) -> bytes:
        """What both say; fails where they differ in anything that may not vary, or one alone closes the connection."""

        async def ask() -> tuple[tuple[bytes, bool], tuple[bytes, bool]]:
            await self.look_at_keys()
            return await self._sent(self.direct, chunks, paused), await self._sent(self.ordinary, chunks, paused)

        (direct, direct_closed), (ordinary, ordinary_closed) = self.running.run(ask)
        assert normalised(direct) == normalised(ordinary), chunks
        assert direct_closed is ordinary_closed, chunks
        return bytes(direct)


def facts_of(both: Both, families: Collection[str]) -> dict[tuple[str, tuple[str, ...]], float]:
    """What the worker has counted in these metrics; ANSWERS without the way."""
    counted: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for name, labels, value in both.running.app.figures().counters:
        if name in families:
            counted[name, labels[:-1] if name == ANSWERS.name else labels] += value
    return dict(counted)


def read_from_now_on(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The query strings of forecasts that are read."""
    read: list[bytes] = []

    def noted(query: bytes, states_with: StatesWith) -> LocationQuery:
        read.append(query)
        return parse_location(query, states_with)

    monkeypatch.setattr("service.http.forecast.parse_location", noted)
    return read


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

    running.app._shared.put = put  # type: ignore[method-assign]
    running.app._cache._flights._linger = 0.0
    async with redis.asyncio.from_url(cache_url) as client:
        for name in [name async for name in client.scan_iter("c:*")]:
            await client.delete(name)


@contextlib.contextmanager
def asked_both_ways(settings: Settings, tier: str) -> Iterator[Both]:
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
            others = {"expired": ended, "unknown": form.generate()[0], "malformed": "phf_live_x", "missing": ""}
            return {name: key for name, (key, _) in issued.items()} | others

        async def run() -> dict[str, str]:
            return await with_keys(settings.keys_url, Path(settings.data_dir), issue)

        made = Both(running, running.run(run), tier)
        while running.ask(TARGETS[0], key=made.keys["expired"]).status != 401:
            time.sleep(0.05)
        for key in made.keys.values():
            for target in (*TARGETS, *TARGETS):
                running.ask(target, key=key)
        yield made
