"""Hot requests that find no leased token wait for the next lease where they are, and are answered directly."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from config.settings import Settings
from service.base.terms import Quota, Rate, Terms
from service.connection.light import LightConnection
from service.keys.store import KeyStore
from service.quota.gcra import allowed
from service.quota.holding import Holding, LocalShare
from service.quota.lease_store import TellLease
from service.redis.errors import StoreUnavailable
from tests.support.both_ways import TARGETS, Both, request
from tests.support.connection import Connection
from tests.support.served import served, with_keys
from tests.support.waiting import eventually

RATE = Rate(100_000, 1, 100_000)
TIGHT = Rate(100, 1, 1)


@pytest.fixture(scope="module", params=["near", "shared"])
def both(settings: Settings, request: pytest.FixtureRequest) -> Iterator[Both]:
    """Answers from the near cache, or from the shared one, where there is no other."""
    near_cache_bytes = settings.near_cache_bytes if request.param == "near" else 0
    with served(msgspec.structs.replace(settings, near_cache_bytes=near_cache_bytes)) as running:
        terms = {"leased": Terms(rate=RATE, quota=Quota(10**9, "month")), "tight": Terms(rate=TIGHT)}

        async def issue(store: KeyStore) -> dict[str, str]:
            return {name: (await store.issue("acme", "", None, one))[0] for name, one in terms.items()}

        async def run() -> dict[str, str]:
            return await with_keys(settings.keys_url, Path(settings.data_dir), issue)

        made = Both(running, running.run(run), request.param)
        for _ in range(3):
            assert running.ask(TARGETS[0], key=made.keys["leased"]).status == 200
        yield made


async def held(both: Both, rate: Rate) -> Holding:
    """What the worker holds of the key of that rate, with nothing left of it. Key and quota were just looked at."""
    for key in both.keys.values():
        connection = Connection(both.ordinary, both.config(both.ordinary))
        await connection.feed(request(TARGETS[0], key))
        await ended([connection])
    holdings = both.running.app.metering.limiter._holdings.young
    (found,) = (holding for holding in holdings.values() if holding.rate == rate)
    await eventually(lambda: not found.asks)
    found.tokens = found._next_tokens = 0
    found.denied_until = found.local_until = float("-inf")
    found.alone = 0.0
    return found


async def crowd(both: Both, key: str, size: int) -> list[Connection]:
    """So many connections on which the same is asked in one turn."""
    connections = [Connection(both.direct, both.config(both.direct)) for _ in range(size)]
    for connection in connections:
        await connection.feed(request(TARGETS[0], both.keys[key]))
    return connections


async def ended(connections: list[Connection]) -> list[bytes]:
    for connection in connections:
        await connection.settle()
    return [connection.end() for connection in connections]


def test_a_crowd_without_tokens_waits_for_one_lease_and_is_answered_directly(both: Both) -> None:
    """A token for each: on the router path the wait would take so long that the next lease is worth nothing either."""
    before, calls = both.answered, []
    limiter = both.running.app.metering.limiter
    ask = limiter._leases.ask

    async def run() -> tuple[list[bytes], int]:
        holding = await held(both, RATE)
        spent = holding.spent

        def noted(key_id: str, rate: Rate, wanted: int, least: int, told: TellLease) -> None:
            calls.append(wanted)
            ask(key_id, rate, wanted, least, told)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(limiter._leases, "ask", noted)
            answers = await ended(await crowd(both, "leased", 40))
        return answers, holding.spent - spent

    answers, spent = both.running.run(run)
    assert [answer[:13] for answer in answers] == [b"HTTP/1.1 200 "] * 40
    assert all(b"\r\nratelimit: " in answer and b'"quota";r=' in answer for answer in answers)
    assert both.answered == before + 40
    assert spent == 40
    assert len(calls) <= 2


def test_whoever_is_refused_while_waiting_is_told_so_in_the_ordinary_way(both: Both) -> None:
    """With when to come back. The router is not asked, and the connection remains a light one."""
    for _ in range(20):  # until it is known as a key that is leased, with a burst that is there again
        both.running.ask(TARGETS[0], key=both.keys["tight"])

    async def run() -> list[bytes]:
        await held(both, TIGHT)
        await asyncio.sleep(0.05)
        connections = await crowd(both, "tight", 5)
        for connection in connections:
            await connection.settle()
        assert all(isinstance(connection.protocol, LightConnection) for connection in connections)
        return [connection.end() for connection in connections]

    answers = both.running.run(run)
    refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 429 ")]
    assert len(refused) >= 3
    assert all(b"\r\nretry-after: " in answer for answer in refused)
    assert all(answer[:13] == b"HTTP/1.1 200 " for answer in answers if answer not in refused)


def test_a_caller_that_goes_away_while_waiting_is_told_nothing(both: Both) -> None:
    async def run() -> bytes:
        await held(both, RATE)
        (connection,) = await crowd(both, "leased", 1)
        assert connection.protocol._asked is not None
        connection.transport.closing = True
        connection.lose()
        await connection.settle()
        return connection.transport.written

    assert both.running.run(run) == b""


def test_a_defect_while_waiting_ends_the_connection(
    both: Both, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody is left without an answer on a connection that stays open, and it is logged."""

    def broken(*_: object) -> None:
        raise ValueError("broken")

    async def run() -> tuple[bool, bytes]:
        await held(both, RATE)
        (connection,) = await crowd(both, "leased", 1)
        monkeypatch.setattr(both.running.app.hot._writer, "written", broken)
        await connection.settle()
        return connection.transport.closing, connection.end()

    assert both.running.run(run) == (True, b"")
    assert "a request that waited could not be answered" in caplog.text


def test_a_release_that_is_switched_while_waiting_takes_the_ordinary_way(both: Both) -> None:
    hot = both.running.app.hot
    before = both.answered

    async def run() -> bytes:
        await held(both, RATE)
        connections = await crowd(both, "leased", 1)
        release = hot._targets.release
        assert release is not None
        hot.switched("newer")
        (answer,) = await ended(connections)
        hot.switched(release)
        return answer

    assert both.running.run(run).startswith(b"HTTP/1.1 200 ")
    assert both.answered == before


def test_a_key_that_is_no_longer_good_after_waiting_takes_the_ordinary_way(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which finds out why."""
    before, verifier = both.answered, both.running.app.verifier

    async def run() -> bytes:
        await held(both, RATE)
        connections = await crowd(both, "leased", 1)
        good = verifier.good
        monkeypatch.setattr(verifier, "good", lambda *_: None)
        for known in verifier._verified.values():
            known.good_before = float("-inf")  # else nobody asks
        await eventually(lambda: connections[0].protocol._asked is None)
        monkeypatch.setattr(verifier, "good", good)
        (answer,) = await ended(connections)
        return answer

    assert both.running.run(run).startswith(b"HTTP/1.1 200 ")
    assert both.answered == before


def test_whoever_waits_while_the_rates_are_away_is_let_pass_by_this_workers_share(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is told what is left of that, not of the last lease."""
    limiter = both.running.app.metering.limiter

    def gone(key_id: str, rate: Rate, wanted: int, least: int, told: TellLease) -> None:
        asyncio.get_running_loop().call_soon(told, StoreUnavailable("gone"))

    async def run() -> bytes:
        holding = await held(both, RATE)
        holding.local = LocalShare()
        holding.local.heard(5_000, limiter._clock())
        holding.passed = allowed(RATE, 99_000)
        monkeypatch.setattr(limiter._leases, "ask", gone)
        (answer,) = await ended(await crowd(both, "leased", 1))
        await held(both, RATE)
        return answer

    answer = both.running.run(run)
    assert answer.startswith(b"HTTP/1.1 200 ")
    left = int(answer.partition(b"\r\nratelimit: ")[2].partition(b";r=")[2].partition(b";")[0])
    assert left < 10_000
