"""Usage that was read a moment ago is told again, and no key reads the store all the time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime

import msgspec
import pytest

from service.base.terms import Terms, parse_quota
from service.http.own_usage.recent import BURST_RECORDS, RECORDS_A_SECOND, REUSE_SECONDS, RecentUsage
from service.keys.record import ApiKey
from service.redis.errors import StoreUnavailable
from service.request.errors import ApiError
from tests.support.key_store import Clock

KEY = ApiKey(key_id="a", partner="acme", digest="", created_at=datetime(2026, 1, 1, tzinfo=UTC))
LAST = date(2026, 11, 20)
OTHER = msgspec.structs.replace(KEY, key_id="b")


class Reading:
    """A store that says how often it was read, and at once by how many at most."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.recent = RecentUsage(self.clock)
        self.reads = self.now = self.most = 0
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def ask(self, first: int = 0, records: int = 1, key: ApiKey = KEY) -> bytes:
        return await self.recent.body((key, date.fromordinal(1 + first), LAST), records, self._made(first))

    def _made(self, first: int) -> Callable[[], Awaitable[bytes]]:
        async def make() -> bytes:
            self.reads += 1
            self.now += 1
            self.most = max(self.most, self.now)
            await self.goes_on.wait()
            self.now -= 1
            return b"%d of %d" % (self.reads, first)

        return make


@pytest.fixture
def reading() -> Reading:
    return Reading()


async def test_an_answer_is_told_again_for_a_moment(reading: Reading) -> None:
    """And not for longer: figures are younger than 5 s in all."""
    assert (await reading.ask(), await reading.ask()) == (b"1 of 0", b"1 of 0")
    reading.clock.now += REUSE_SECONDS
    assert await reading.ask() == b"2 of 0"


async def test_other_days_and_changed_terms_are_read_anew(reading: Reading) -> None:
    changed = msgspec.structs.replace(KEY, terms=Terms(quota=parse_quota("10/day")))
    assert await reading.ask() != await reading.ask(first=1)
    assert await reading.ask(key=changed) == b"3 of 0"


async def test_a_key_reads_once_at_a_time_and_another_does_not_wait(reading: Reading) -> None:
    """Ten who want the same wait for one read, those who want other days for their turn."""
    reading.goes_on.clear()
    asked = [asyncio.create_task(reading.ask(first)) for first in (0,) * 10 + (1, 2)]
    await asyncio.sleep(0)
    other = asyncio.create_task(reading.ask(key=OTHER))
    await asyncio.sleep(0.01)
    assert (reading.reads, reading.most) == (2, 2), "one of each key"
    reading.goes_on.set()
    assert await other == b"2 of 0"
    assert {reply.partition(b" of ")[2] for reply in await asyncio.gather(*asked)} == {b"0", b"1", b"2"}
    assert reading.reads == 4


async def test_a_caller_who_leaves_fails_nobody_else(reading: Reading) -> None:
    reading.goes_on.clear()
    first, second = (asyncio.create_task(reading.ask()) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    reading.goes_on.set()
    assert await second == b"1 of 0"


async def test_beyond_a_generous_rate_a_key_is_told_to_wait(reading: Reading) -> None:
    """By how much it reads: a year costs as much as thirteen months. Others go on."""
    years = BURST_RECORDS // 13
    for day in range(years):
        await reading.ask(day, records=13)
    with pytest.raises(ApiError) as refused:
        await reading.ask(years, records=13)
    assert refused.value.code == "rate_limited"
    assert refused.value.headers == ((b"retry-after", b"1"),)
    assert await reading.ask(0, records=13) == b"1 of 0", "told again, it costs nothing"
    assert await reading.ask(years, records=13, key=OTHER)
    reading.clock.now += 13 / RECORDS_A_SECOND
    assert await reading.ask(years, records=13)


async def test_no_crowd_of_one_key_waits_for_long(reading: Reading) -> None:
    """Every request is answered within 5 s, also while the store is slow."""
    reading.goes_on.clear()
    asked = [asyncio.create_task(reading.ask(day)) for day in range(50)]
    await asyncio.sleep(0.01)
    assert sum(task.done() and isinstance(task.exception(), ApiError) for task in asked) == 33
    reading.goes_on.set()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_a_read_that_fails_is_not_told_again(reading: Reading) -> None:
    async def fail() -> bytes:
        raise StoreUnavailable("away")

    with pytest.raises(StoreUnavailable):
        await reading.recent.body((KEY, LAST, LAST), 1, fail)
    assert await reading.ask() == b"1 of 0"


async def test_what_is_kept_is_bounded(reading: Reading) -> None:
    """In bytes and in time."""

    async def large() -> bytes:
        return bytes(1 << 20)

    for number in range(30):
        key = msgspec.structs.replace(KEY, key_id=str(number))
        await reading.recent.body((key, LAST, LAST), 1, large)
    assert reading.recent._bytes <= 8 << 20
    reading.clock.now += REUSE_SECONDS
    await reading.ask()
    assert len(reading.recent._made) == 1
