"""The near cache: what it lets in, what leaves and why, and what it costs."""

import asyncio
import os
import tracemalloc

import pytest

from service.base.tasks import keep_running
from service.cache import near as module
from service.cache.entry import CacheEntry, Found
from service.cache.key import CacheKey, cache_key
from service.cache.near import NearCache, cost_of
from service.cache.sieve import STEP
from tests.support.key_store import Clock
from tests.support.waiting import eventually

ENTRY = CacheEntry.of(b'{"total_results":1}')
ROOM = 64 << 20


def near_of(release: str = "r1", room: int = ROOM, clock: Clock | None = None) -> NearCache:
    near = NearCache(room, 300, clock=clock or Clock())
    near.switch(release)
    return near


def key_of(number: int, release: str = "r1") -> CacheKey:
    return cache_key(release, "forecast", f"zip:{number:05}")


def fill(near: NearCache, numbers: range, release: str = "r1") -> None:
    for number in numbers:
        near.put(key_of(number, release), ENTRY, near.generation)


def there(near: NearCache, numbers: range, release: str = "r1") -> int:
    return sum(near.get(key_of(number, release).digest) is not None for number in numbers)


def test_what_was_put_is_found_with_its_release_and_time() -> None:
    near = near_of()
    fill(near, range(1))
    assert near.get(key_of(0).digest) == Found(ENTRY, "near", "r1", (), 1_000.0)
    assert near.get(key_of(0, "r2").digest) is None
    assert (near.hits, near.entries, near.used_bytes) == (1, 1, cost_of(ENTRY))


def test_heads_are_made_once_and_paid_for() -> None:
    made: list[str] = []

    def prepare(release: str, entry: CacheEntry) -> tuple[bytes, ...]:
        made.append(release)
        return (b"etag: " + entry.etag_digest,)

    near = NearCache(ROOM, 300, prepare)
    near.switch("r1")
    fill(near, range(1))
    found = [near.get(key_of(0).digest) for _ in range(3)]
    assert [one.heads for one in found if one] == [(b"etag: " + ENTRY.etag_digest,)] * 3
    assert (made, near.used_bytes > cost_of(ENTRY)) == (["r1"], True)


@pytest.mark.parametrize("release", ["r0", "r2", ""])
def test_only_the_current_release_is_let_in(release: str) -> None:
    """A reply that comes after a switch is right to serve; keeping it would only take room."""
    near = near_of("r1")
    fill(near, range(1), release)
    assert near.entries == 0


def test_before_the_first_release_nothing_is_let_in() -> None:
    near = NearCache(ROOM, 300)
    fill(near, range(1))
    assert near.entries == 0


def test_what_was_asked_for_before_a_purge_is_not_let_in() -> None:
    near = near_of()
    generation = near.generation
    list(near.purge())
    near.put(key_of(0), ENTRY, generation)
    assert near.entries == 0
    near.put(key_of(0), ENTRY, near.generation)
    assert near.entries == 1


def test_off_is_off() -> None:
    near = NearCache(0, 300, lambda _release, _entry: pytest.fail("prepared for nobody"))
    near.switch("r1")
    fill(near, range(1))
    assert (near.max_bytes, near.entries, near.get(key_of(0).digest)) == (0, 0, None)


def test_it_never_holds_more_than_it_may() -> None:
    near = near_of(room=20 * cost_of(ENTRY))
    fill(near, range(100))
    assert (near.entries, near.used_bytes, near.left["size"]) == (20, 20 * cost_of(ENTRY), 80)


def test_a_purge_takes_what_its_condition_says() -> None:
    near = near_of()
    fill(near, range(10))
    large = CacheEntry.of(b"x" * 2_000)
    near.put(key_of(10), large, near.generation)
    assert sum(near.purge(lambda found: found.entry == large)) == 1
    assert there(near, range(10)) == near.entries == 10
    assert sum(near.purge()) == 10
    assert (near.entries, near.used_bytes, near.left["purged"]) == (0, 0, 11)


def test_entries_expire_by_their_age_and_not_by_their_use() -> None:
    clock = Clock()
    near = near_of(clock=clock)
    fill(near, range(1_200))
    clock.now += 200
    fill(near, range(1_200, 1_300))
    clock.now += 99
    assert sum(near.tidy()) == 0
    there(near, range(1_200))
    clock.now += 1
    steps = list(near.tidy())
    assert (sum(steps), max(steps)) == (1_200, STEP)
    assert (there(near, range(1_300)), near.left["expired"]) == (100, 1_200)


def test_a_retired_release_goes_in_steps() -> None:
    near = near_of("r1")
    fill(near, range(1_200))
    near.switch("r2")
    fill(near, range(10), "r2")
    assert (sum(near.tidy()), there(near, range(1_200))) == (0, 1_200)
    near.retire("r1")
    steps = list(near.tidy())
    assert (sum(steps), max(steps)) == (1_200, STEP)
    assert (there(near, range(10), "r2"), near.entries, near.left["retired"]) == (10, 10, 1_200)


def test_a_release_that_came_back_is_not_retired() -> None:
    near = near_of("r1")
    fill(near, range(10))
    near.switch("r2")
    near.switch("r1")
    near.retire("r1")
    near.switch("r2")
    near.retire("r1")
    near.switch("r1")
    assert (sum(near.tidy()), near.entries) == (0, 10)


async def test_it_keeps_itself_tidy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIDY_SECONDS", 0.001)
    clock = Clock()
    near = near_of(clock=clock)
    turns = [0]

    async def others() -> None:
        while True:
            turns.append(near.entries)
            await asyncio.sleep(0)

    fill(near, range(5 * STEP))
    clock.now += 301
    tasks = [asyncio.create_task(others()), keep_running("tidy", near.tidy_in_steps)]
    await eventually(lambda: near.entries == 0)
    assert {4 * STEP, 3 * STEP, 2 * STEP, STEP} <= set(turns)
    fill(near, range(5))
    clock.now += 301
    await eventually(lambda: near.entries == 0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@pytest.mark.parametrize(("body", "gzipped"), [(300, 0), (3_000, 900)])
def test_an_entry_costs_what_is_reckoned_for_it(body: int, gzipped: int) -> None:
    """All that is kept for it, within a tenth or so: the bound is one of memory and not of bodies."""
    near = near_of(room=1 << 30)
    count = 2_000
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(count):
            packed = os.urandom(gzipped) if gzipped else b""
            near.put(key_of(number), CacheEntry(os.urandom(body), packed, os.urandom(16)), 0)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert near.entries == count
    assert 0.8 < (after - before) / near.used_bytes < 1.05
