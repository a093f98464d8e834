"""The look at how the two Redis are configured, while one of them is away."""

from pathlib import Path

import pytest
from redis import Redis

from service.base.ipc import Endpoints
from service.instance import store_checks
from service.instance.store_checks import StoreChecks
from tests.service.operators.test_state import WELL, but
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import eventually


@pytest.mark.parametrize("away", ["cache", "keys"])
async def test_a_store_that_is_away_does_not_hide_the_other(
    short: Path, away: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong with the one that answers is told; what was known of the other is not forgotten."""
    monkeypatch.setattr(store_checks, "_LOOK_SECONDS", 0.01)
    server = ValkeyProcess(short / "there").start()  # appendonly no
    nobody = f"unix://{short / 'nobody'}"
    urls = (server.url, nobody) if away == "cache" else (nobody, server.url)
    checks = StoreChecks(Endpoints(*urls, b"pepper of the tests"), short)
    await checks.start()
    try:
        if away == "cache":
            await eventually(lambda: any("appendonly is no" in problem for problem in checks.problems))
            server.kill()
            await eventually(lambda: checks._keys.is_away)
            assert checks.problems
        else:
            with Redis.from_url(server.url) as client:
                client.config_set("maxmemory", "100mb")
            await eventually(lambda: any("noeviction" in problem for problem in checks.problems))
    finally:
        await checks.stop()
        server.kill()


async def test_stores_are_up_as_the_workers_say(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They notice first; before there is a worker, the last look says it. Of one that is away, no latency is told."""
    monkeypatch.setattr(store_checks, "_LOOK_SECONDS", 0.01)
    server = ValkeyProcess(short / "there", appendonly=True).start()
    checks = StoreChecks(Endpoints(server.url, server.url, b"pepper of the tests"), short)
    await checks.start()
    try:
        await eventually(lambda: all(store.up and store.memory and store.latency for store in checks.stores([])))
        keys, cache = checks.stores([WELL, but(cache_up=False, push_connected=False)])
        assert (keys.up, keys.pushed, cache.up, cache.latency) == (True, 1, False, None)
        await eventually(lambda: checks.keys.expire_within_7_days == 0)
    finally:
        await checks.stop()
        server.kill()


async def test_a_store_that_comes_back_is_looked_at_again(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it was missed."""
    monkeypatch.setattr(store_checks, "_LOOK_SECONDS", 0.01)
    server = ValkeyProcess(short / "there", appendonly=True).start()
    checks = StoreChecks(Endpoints(server.url, server.url, b"pepper of the tests"), short)
    await checks.start()
    try:
        server.kill()
        await eventually(lambda: checks._keys.is_away)
        server.start()
        await eventually(lambda: all(store.up and store.latency for store in checks.stores([])))
    finally:
        await checks.stop()
        server.kill()
