"""Answers are in the cache before anybody asks for them, or somebody is told why not."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from service.cache import entry as envelope
from service.cache.key import cache_key
from service.cache.warm import Answer, Plan, WarmError, warm
from tests.support.valkey import ValkeyProcess


def silent(_: int) -> None:
    """Progress that is not observed."""


def answers(number: int) -> list[Answer]:
    """Of two areas, two of each query; some are worth compressing."""
    return [
        (("forecast", "projects")[at % 2], f"zip:{at // 2:05}", f'{{"at":{at},"x":"{"y" * (at % 7) * 400}"}}'.encode())
        for at in range(number)
    ]


def plan(release: str = "new", seconds: float = 30) -> Plan:
    return Plan(release=release, ttl=60, seconds=seconds)


def held(server: ValkeyProcess, release: str, given: list[Answer]) -> dict[tuple[str, str], bytes]:
    found = {}
    with Redis(unix_socket_path=str(server.socket)) as client:
        for area, query, _ in given:
            key = cache_key(release, area, query)
            data = client.get(key.name)
            if data is not None:
                assert isinstance(data, bytes)
                entry = envelope.decode(data, key.digest)
                assert entry is not None
                found[area, query] = entry.body
    return found


def bodies(given: list[Answer]) -> dict[tuple[str, str], bytes]:
    return {(area, query): body for area, query, body in given}


def test_every_answer_is_there_byte_by_byte_and_for_as_long_as_asked(server: ValkeyProcess) -> None:
    given, reported = answers(450), list[int]()
    assert asyncio.run(warm(server.url, plan(), given, reported.append)) == 450
    assert reported == [200, 400, 450]
    assert held(server, "new", given) == bodies(given)
    with Redis(unix_socket_path=str(server.socket)) as client:
        assert client.dbsize() == 450
        assert 55 <= client.ttl(cache_key("new", "forecast", "zip:00000").name) <= 60


def test_an_unreachable_cache_is_reported_at_once(short: Path) -> None:
    with pytest.raises(WarmError, match="the cache stored 0 answers, then: "):
        asyncio.run(warm(f"unix://{short}/nothing", plan(), answers(10), silent))


def test_a_cache_that_dies_in_the_middle_is_reported_with_the_entries_it_stored(server: ValkeyProcess) -> None:
    def kill(seen: int) -> None:
        if seen == 400:
            server.kill()

    with pytest.raises(WarmError, match="the cache stored 400 answers, then: "):
        asyncio.run(warm(server.url, plan(), answers(1000), kill))


def test_a_cache_that_stops_answering_is_waited_for_two_seconds(server: ValkeyProcess) -> None:
    def stall(seen: int) -> None:
        if seen == 200:
            server.stall()

    began = time.monotonic()
    try:
        with pytest.raises(WarmError, match="the cache stored 200 answers, then: "):
            asyncio.run(warm(server.url, plan(), answers(1000), stall))
    finally:
        server.go_on()
    assert time.monotonic() - began > 1.5


def test_a_full_cache_that_evicts_nothing_is_reported(server: ValkeyProcess) -> None:
    with Redis(unix_socket_path=str(server.socket)) as client:
        client.config_set("maxmemory", "1")
        client.config_set("maxmemory-policy", "noeviction")
    with pytest.raises(WarmError, match="the cache stored 0 answers, then: ") as refused:
        asyncio.run(warm(server.url, plan(), answers(10), silent))
    assert "it is full" in str(refused.value)
    assert str(refused.value).isprintable(), "and not a byte of the answers"


def test_warming_ends_at_its_limit_of_time(server: ValkeyProcess) -> None:
    given = answers(2000)

    def slow() -> Iterator[Answer]:
        for at, answer in enumerate(given):
            if at and at % 200 == 0:
                time.sleep(0.1)
            yield answer

    with pytest.raises(WarmError, match=r"warming took longer than 0\.25 s; [0-9]+ answers are in the cache"):
        asyncio.run(warm(server.url, plan(seconds=0.25), slow(), silent))
    assert 0 < len(held(server, "new", given)) < 2000


def test_others_are_served_in_between(server: ValkeyProcess) -> None:
    """Redis does one thing at a time: a batch is small enough that no look-up waits for its budget of 50 ms."""
    warming = threading.Thread(target=lambda: asyncio.run(warm(server.url, plan(), answers(20_000), silent)))
    waited: list[float] = []
    with Redis(unix_socket_path=str(server.socket)) as client:
        client.ping()
        warming.start()
        while warming.is_alive():
            began = time.perf_counter()
            client.ping()
            waited.append(time.perf_counter() - began)
            time.sleep(0.001)
    warming.join()
    assert sorted(waited)[len(waited) // 2] < 0.05
