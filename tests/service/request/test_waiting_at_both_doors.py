"""What a client sees, at either door, while its request waits for a key, a token or an entry."""

import asyncio
import contextlib
import math
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from config.settings import Settings
from service.base.telemetry import KEY_CHECKS, REQUEST_SECONDS, REQUESTS
from service.base.terms import Rate, Terms
from service.keys.store import FoundKey
from service.keys.verifier import WAIT_AFTER_SECONDS, Verified
from service.quota.token_lease import TokenLease
from service.redis.breaker import FAILURES_TO_OPEN
from tests.support.connection import Connection
from tests.support.doors import TARGETS, Doors, asked_through_doors, normalised, request
from tests.support.served import FORECAST
from tests.support.waiting import eventually
from warehouse.lookup.engine import Engine

_MANY = 200
GOOD, BEHIND = TARGETS[0], "/v1/"


@pytest.fixture(scope="module")
def cold(settings: Settings) -> Iterator[Doors]:
    """Nothing is kept, so that each request waits for the warehouse."""
    with asked_through_doors(settings, "warehouse") as made:
        yield made


async def ended(connections: Sequence[Connection]) -> list[bytes]:
    for connection in connections:
        await connection.settle()
    return [bytes(connection.end()) for connection in connections]


async def crowd(doors: Doors, size: int, *sent: bytes) -> list[Connection]:
    """So many connections, on which these requests are sent in one turn."""
    connections = [doors.connect() for _ in range(size)]
    for number, connection in enumerate(connections):
        await connection.feed(sent[number % len(sent)])
    return connections


# --- for a key ---------------------------------------------------------------------------------------------------


def grown_old(doors: Doors, name: str, seconds: float) -> Verified:
    known = doors.running.app.verifier.recall(doors.keys[name])
    assert isinstance(known, Verified)
    known.checked(time.monotonic() - seconds)
    return known


@pytest.mark.parametrize("name", ["free", "unknown"])
def test_the_time_in_which_a_request_waits_for_its_key_counts(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """In the metric, and so in the slow log and the trace."""
    app = doors.running.app
    store, waited = app.verifier._store, 0.05
    look_up = store.find

    async def late(key_id: str) -> FoundKey:
        await asyncio.sleep(waited)
        return await look_up(key_id)

    async def ask() -> float:
        await doors.look_at_keys()
        if name == "free":
            grown_old(doors, "free", WAIT_AFTER_SECONDS + 1)
        app.verifier._wrong.clear()
        area = app.telemetry.histogram(REQUEST_SECONDS, "forecast")
        before = area.total
        with monkeypatch.context() as patched:
            patched.setattr(store, "find", late)
            await ended(await crowd(doors, 1, request(GOOD, doors.keys[name])))
        return app.telemetry.histogram(REQUEST_SECONDS, "forecast").total - before

    assert doors.running.run(ask) > waited / 2  # a timer may be early


@pytest.mark.parametrize("waits", [False, True])
def test_who_asks_with_a_wrong_key_and_hangs_up_counts(doors: Doors, waits: bool) -> None:
    """A scan shows, although nobody reads its answers."""
    app = doors.running.app

    async def ask() -> float:
        await doors.look_at_keys()
        if waits:
            app.verifier._wrong.clear()
        before = app.telemetry.sum(REQUESTS, status="401")
        (connection,) = await crowd(doors, 1, request(GOOD, doors.keys["unknown"]))
        connection.channel.abort()
        connection.lose()
        await eventually(lambda: app.telemetry.sum(REQUESTS, status="401") > before)
        return app.telemetry.sum(REQUESTS, status="401") - before

    assert doors.running.run(ask) == 1


# --- for a token, for a quota ------------------------------------------------------------------------------------


async def without_tokens(doors: Doors, key: str, rate: Rate) -> TokenLease:
    """What the worker holds of a key of that rate, with nothing left of it. Key and quota were just looked at."""
    limiter = doors.running.app.metering.limiter
    await ended(await crowd(doors, 3, request(GOOD, key)))
    found = limiter.token_lease(key.split("_")[2])
    assert found is not None
    await eventually(lambda: not found.asks)
    found.tokens = 0
    found.denied_until = found.local_until = -math.inf
    return found


def test_who_is_refused_while_waiting_learns_when_to_come_back(doors: Doors) -> None:
    key = doors.issue(Terms(rate=Rate(100, 1, 1)))

    async def ask() -> list[bytes]:
        await without_tokens(doors, key, Rate(100, 1, 1))
        return await ended(await crowd(doors, 8, request(GOOD, key)))

    answers = doors.running.run(ask)
    refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 429 ")]
    assert len(refused) >= 5
    assert all(b"\r\nretry-after: 1\r\n" in answer for answer in refused)
    assert all(answer[:13] == b"HTTP/1.1 200 " for answer in answers if answer not in refused)


# --- for an entry ------------------------------------------------------------------------------------------------


class HeldLookUps:
    """Look-ups that have begun wait until they may `go` on; `begun` and `ended` of them."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = self.ended = 0

    def hold(self, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
        entries = engine.entries

        async def held(area: str, keys: Sequence[str]) -> list[bytes]:
            self.begun += 1
            await self.go.wait()
            found = await entries(area, keys)
            self.ended += 1
            return found

        monkeypatch.setattr(engine, "entries", held)


@pytest.fixture
def engine(cold: Doors) -> Engine:
    current = cold.running.app.follower.current
    assert current is not None
    return current.engine


@pytest.fixture
def held(cold: Doors, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldLookUps]:
    made = HeldLookUps()
    made.hold(monkeypatch, engine)
    yield made

    async def go() -> None:
        made.go.set()

    cold.running.run(go)


@contextlib.asynccontextmanager
async def waiting(doors: Doors, held: HeldLookUps, *sent: bytes) -> AsyncIterator[Connection]:
    """A connection whose first request waits for the warehouse."""
    await doors.look_at_keys()
    connection, before = doors.connect(), held.begun
    for data in sent:
        connection.receive(data)
    await eventually(lambda: held.begun > before)
    yield connection


def test_who_asks_for_the_same_meanwhile_shares_the_look_up(cold: Doors, held: HeldLookUps) -> None:
    """A client that goes away takes nothing from the others, and gets nothing."""
    data = request(f"{FORECAST}?zip_code=90028", cold.keys["free"])

    async def run() -> tuple[bytes, list[bytes]]:
        async with waiting(cold, held, data) as first:
            others = [cold.connect() for _ in range(2)]
            for connection in others:
                connection.receive(data)
            await asyncio.sleep(0.01)
            first.channel.abort()
            gone = first.end()
            held.go.set()
            return gone, await ended(others)

    gone, answers = cold.running.run(run)
    assert (gone, held.begun, held.ended) == (b"", 1, 1)
    assert all(answer.startswith(b"HTTP/1.1 200 OK\r\n") for answer in answers)
    assert normalised(answers[0]) == normalised(answers[1])


def test_what_a_client_that_goes_away_asked_for_is_looked_up_and_kept(
    cold: Doors, held: HeldLookUps, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[str] = []
    monkeypatch.setattr(cold.running.app._shared, "put", lambda key, _: stored.append(key.name))

    async def run() -> None:
        async with waiting(cold, held, request(GOOD, cold.keys["free"])) as connection:
            connection.channel.abort()
            connection.end()
            held.go.set()
            await eventually(lambda: len(stored) == 1)

    cold.running.run(run)


def test_what_arrives_meanwhile_is_answered_behind_it(cold: Doors, held: HeldLookUps) -> None:
    key = cold.keys["free"]

    async def run() -> tuple[bytes, bytes]:
        async with waiting(cold, held, request(GOOD, key), request(BEHIND, key)) as connection:
            await asyncio.sleep(0.01)
            before = connection.channel.written
            held.go.set()
            await connection.settle()
            return before, connection.end()

    before, answers = cold.running.run(run)
    assert before == b""
    assert re.findall(rb"HTTP/1.1 200 OK\r\n.*?\r\n\r\n\{\"(\w+)", answers, re.DOTALL) == [b"total_results", b"version"]


def test_a_worker_that_drains_meanwhile_says_that_the_answer_is_the_last(cold: Doors, held: HeldLookUps) -> None:
    """Checked once, looked up once, and counted once."""
    telemetry = cold.running.app.telemetry

    def counted() -> list[float]:
        return [
            telemetry.sum(KEY_CHECKS, outcome="accepted"),
            telemetry.sum(REQUESTS, status="200", outcome="answered"),
        ]

    async def run() -> tuple[bytes, list[float], list[float]]:
        await cold.look_at_keys()
        before = counted()
        async with waiting(cold, held, request(GOOD, cold.keys["free"])) as connection:
            connection.protocol.shutdown()
            cold.door.pipeline.draining = True
            try:
                held.go.set()
                await connection.settle()
            finally:
                cold.door.pipeline.draining = False
            return connection.end(), before, counted()

    answer, before, after = cold.running.run(run)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nconnection: close\r\n" in answer
    assert after == [value + 1 for value in before]
    assert held.begun == 1


def test_while_the_shared_cache_is_unreachable_the_warehouse_answers(cold: Doors) -> None:
    (store,) = cold.running.app.cache_store.servers

    async def run() -> bytes:
        await cold.look_at_keys()
        for _ in range(FAILURES_TO_OPEN):
            store.failed(OSError("gone"), answered=False)
        (answer,) = await ended(await crowd(cold, 1, request(f"{FORECAST}?zip_code=62703", cold.keys["free"])))
        store.succeeded()
        return answer

    answer = cold.running.run(run)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"\r\ncache-status: forecast; fwd=bypass; detail=warehouse\r\n" in answer
