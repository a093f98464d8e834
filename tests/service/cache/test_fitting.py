"""A cache that cannot hold a release gets the answers that it was asked for most, and nothing is evicted for them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from service.cache.fitting import fit_to_memory
from service.cache.key import cache_key
from service.cache.warm import Answer, Plan, warm
from tests.support.valkey import ValkeyProcess

_MEGABYTE = 1 << 20
# 1,500 answers of 2 to 10 kB, hardly compressible: about 11 MB.
ANSWERS: list[Answer] = [
    ("forecast", f"zip:{at:05}", bytes(f"{at:04x}" * (500 + at % 5 * 500), "ascii")) for at in range(1500)
]
ASKED = [("forecast", f"zip:{at:05}") for at in range(1400, 1500)]


@pytest.fixture(params=["allkeys-lfu", "allkeys-lru"])
def small(short: Path, request: pytest.FixtureRequest) -> Iterator[ValkeyProcess]:
    running = ValkeyProcess(short, options=("--maxmemory", str(8 * _MEGABYTE), "--maxmemory-policy", request.param))
    yield running.start()
    running.kill()


def test_the_answers_asked_most_come_first_and_fit(small: ValkeyProcess) -> None:
    with Redis(unix_socket_path=str(small.socket)) as client:
        for area, query in ASKED:
            name = cache_key("old", area, query).name
            client.set(name, "x")
            for _ in range(20):
                client.get(name)
        fit = asyncio.run(fit_to_memory(small.url, ["old", "new"], ANSWERS))
        assert fit is not None
        assert fit.limit == 8 * _MEGABYTE
        assert fit.whole > fit.limit
        assert set(ASKED) <= fit.chosen
        assert 100 < len(fit.chosen) < 1000
        assert ("forecast", "zip:00000") in fit.chosen  # the others in their order
        chosen = [answer for answer in ANSWERS if answer[:2] in fit.chosen]
        assert asyncio.run(warm(small.url, Plan(release="new", ttl=60, seconds=30), chosen, lambda _: None))
        assert client.info()["evicted_keys"] == 0
        assert client.info()["used_memory"] < 0.9 * fit.limit


def test_all_answers_are_warmed_where_they_fit_or_the_limit_is_unknown(small: ValkeyProcess, short: Path) -> None:
    assert asyncio.run(fit_to_memory(small.url, ["old"], ANSWERS[:500])) is None
    with Redis(unix_socket_path=str(small.socket)) as client:
        client.config_set("maxmemory", 0)
    assert asyncio.run(fit_to_memory(small.url, ["old"], ANSWERS)) is None
    assert asyncio.run(fit_to_memory(f"unix://{short}/nothing", ["old"], ANSWERS)) is None
