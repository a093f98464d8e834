"""The look at how the two Redis are configured, while one of them is unreachable."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis import Redis

from service.base.ipc import Endpoints
from service.instance import store_checks
from service.instance.store_checks import StoreChecks
from tests.service.operators.test_state import WELL, but
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_checks, "_LOOK_SECONDS", 0.01)


@contextlib.asynccontextmanager
async def checked(
    short: Path, away: str = "", *, appendonly: bool = True
) -> AsyncIterator[tuple[ValkeyProcess, StoreChecks]]:
    """A server that is both stores, but for the one that is `away`."""
    server = ValkeyProcess(short / "there", appendonly=appendonly).start()
    keys, cache = (f"unix://{short / 'nobody'}" if store == away else server.url for store in ("keys", "cache"))
    checks = StoreChecks(Endpoints(keys, cache, b"pepper of the tests"), short)
    await checks.start()
    try:
        yield server, checks
    finally:
        await checks.stop()
        server.kill()


@pytest.mark.parametrize("away", ["cache", "keys"])
async def test_an_unreachable_store_does_not_hide_the_other(short: Path, away: str) -> None:
    async with checked(short, away, appendonly=False) as (server, checks):
        if away == "cache":
            await eventually(lambda: any("appendonly is no" in problem for problem in checks.problems))
            server.kill()
            await eventually(lambda: checks._keys.is_unreachable)
            assert checks.problems
        else:
            with Redis.from_url(server.url) as client:
                client.config_set("maxmemory", "100mb")
            await eventually(lambda: any("noeviction" in problem for problem in checks.problems))


async def test_stores_are_up_as_the_workers_say(short: Path) -> None:
    async with checked(short) as (_, checks):
        await eventually(lambda: all(store.up and store.memory and store.latency for store in checks.stores([])))
        keys, cache = checks.stores([WELL, but(cache_up=False, push_connected=False)])
        assert (keys.up, keys.pushed, cache.up, cache.latency) == (True, 1, False, None)
        await eventually(lambda: checks.keys.expire_within_7_days == 0)


async def test_a_store_that_comes_back_is_looked_at_again(short: Path) -> None:
    async with checked(short) as (server, checks):
        server.kill()
        await eventually(lambda: checks._keys.is_unreachable)
        server.start()
        await eventually(lambda: all(store.up and store.latency for store in checks.stores([])))
