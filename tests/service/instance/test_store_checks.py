"""The look at how the two Redis are configured, while one of them is away."""

from pathlib import Path

import pytest
from redis import Redis

from service.base.messages import Endpoints
from service.instance import store_checks
from service.instance.store_checks import StoreChecks
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
    checks.start()
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
