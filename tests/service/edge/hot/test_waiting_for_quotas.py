"""A hot request whose quota must be read again waits for that where it is, and is answered directly."""

import asyncio
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from service.base.terms import Quota, Rate, Terms
from service.keys.store import KeyStore, TellFound
from service.keys.verifier import WAIT_AFTER_SECONDS, Verified
from service.quota.quotas import QuotaGuard
from service.redis.errors import StoreUnavailable
from tests.support.both_ways import TARGETS, Both, request
from tests.support.connection import Connection
from tests.support.served import served, with_keys
from tests.support.waiting import eventually

_MANY = 200
_TERMS = {
    "large": Terms(rate=Rate(100_000, 1, 100_000), quota=Quota(10**9, "month")),
    "without-rate": Terms(quota=Quota(10**9, "day")),
    "small": Terms(quota=Quota(100, "month", warn_at=1.0)),
}


@pytest.fixture(scope="module")
def both(settings: Settings) -> Iterator[Both]:
    with served(settings) as running:

        async def issue(store: KeyStore) -> dict[str, str]:
            return {name: (await store.issue("acme", "", None, one))[0] for name, one in _TERMS.items()}

        async def run() -> dict[str, str]:
            return await with_keys(settings.keys_url, Path(settings.data_dir), issue)

        made = Both(running, running.run(run), "near")
        for key in made.keys.values():
            for _ in range(3):
                assert running.ask(TARGETS[0], key=key).status == 200
        yield made


@pytest.fixture
def reads(both: Both, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys whose totals were asked for."""
    made: list[str] = []
    store = both.running.app.metering.quotas._store
    ask = store.ask

    def noted(worker_id: str, key_id: str, *others: Any) -> None:
        made.append(key_id)
        ask(worker_id, key_id, *others)

    monkeypatch.setattr(store, "ask", noted)
    return made


def guard(both: Both) -> QuotaGuard:
    return both.running.app.metering.quotas


async def crowd(both: Both, name: str, size: int, *, look: bool = True) -> list[bytes]:
    """The answers to so many requests of one turn, when the total of the key's quota is too old."""
    if look:
        await both.look_at_keys()
    known = guard(both).known(both.keys[name].split("_")[2])
    known.at, known.until, known.quick = -math.inf, -math.inf, 0
    connections = [Connection(both.direct, both.config(both.direct)) for _ in range(size)]
    for one in connections:
        await one.feed(request(TARGETS[0], both.keys[name]))
    for one in connections:
        await one.settle()
    return [one.end() for one in connections]


@pytest.mark.parametrize("name", ["large", "without-rate"])
def test_any_number_wait_for_one_read_and_are_answered_directly(both: Both, reads: list[str], name: str) -> None:
    before = both.answered
    answers = both.running.run(lambda: crowd(both, name, _MANY))
    assert {answer[:13] for answer in answers} == {b"HTTP/1.1 200 "}
    assert all(b'"quota";r=' in answer for answer in answers)
    assert both.answered == before + _MANY
    assert len(reads) == 1


@pytest.mark.parametrize("name", ["large", "without-rate"])
def test_who_waits_for_a_key_does_not_wait_again_for_its_quota(
    both: Both, reads: list[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The total is read while the key is looked up, once for all of them."""
    verifier, quotas = both.running.app.verifier, guard(both)
    look_up = verifier._store.ask

    def later(key_id: str, told: TellFound) -> None:
        async def found() -> None:
            await eventually(lambda: bool(reads) and not quotas._reads)
            look_up(key_id, told)

        asking.append(asyncio.create_task(found()))

    asking: list[asyncio.Task[None]] = []

    async def ask() -> list[bytes]:
        await both.look_at_keys()
        key = verifier.recall(both.keys[name])
        assert isinstance(key, Verified)
        key.checked(time.monotonic() - WAIT_AFTER_SECONDS - 1)
        monkeypatch.setattr(verifier._store, "ask", later)
        monkeypatch.setattr(quotas, "when_primed", lambda *_: pytest.fail("it waited"))
        return await crowd(both, name, _MANY, look=False)

    before = both.answered
    answers = both.running.run(ask)
    assert {answer[:13] for answer in answers} == {b"HTTP/1.1 200 "}
    assert both.answered == before + _MANY
    assert reads == [both.keys[name].split("_")[2]]


def test_who_waited_for_a_quota_that_is_used_up_gets_the_429(both: Both) -> None:
    """As many pass as are left, however many waited."""
    answers = both.running.run(lambda: crowd(both, "small", _MANY))
    passed = [answer for answer in answers if answer.startswith(b"HTTP/1.1 200 ")]
    refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 429 ")]
    assert len(passed) + len(refused) == _MANY
    assert 0 < len(passed) <= 100
    assert refused
    assert all(b'"quota_exhausted"' in answer for answer in refused)


def test_who_waits_for_a_store_that_is_away_is_answered_by_what_is_known(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*asked: Any) -> None:
        asyncio.get_running_loop().call_soon(asked[-1], StoreUnavailable("away"))

    monkeypatch.setattr(guard(both)._store, "ask", away)
    before = both.answered
    answers = both.running.run(lambda: crowd(both, "large", 20))
    assert {answer[:13] for answer in answers} == {b"HTTP/1.1 200 "}
    assert both.answered == before + 20
