"""Usage in backups: whatever is counted, lost, exported and imported, in whatever order, counts once."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from fakeredis import FakeRedis, FakeServer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.quota.backup import UsageDump, UsageRecord
from service.quota.batch import BILLABLE, OUTCOMES, UsageOutcome
from service.quota.names import DAY_SECONDS, counts_name, date_of
from service.quota.restore import RestoredUsage, restore_usage
from service.redis.errors import StoreUnavailable
from tests.support.usage import NOON, UsageWorker, count, double, noon, stored

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = ("a", "b")

Event = tuple[int, str, UsageOutcome, int]  # number, key, outcome, day
Backup = list[UsageRecord]


async def export(worker: UsageWorker, begun: datetime | None = BEGUN) -> Backup:
    dump = UsageDump(worker.redis, begun)
    records = [msgspec.json.decode(msgspec.json.encode(record), type=UsageRecord) async for record in dump]
    assert dump.damaged == []
    return records


async def bring(worker: UsageWorker, records: Backup, begun: datetime | None = None) -> RestoredUsage:
    return await restore_usage(worker.redis, begun, records, dry_run=False)


async def flushed(worker: UsageWorker, *key_ids: str) -> None:
    count(worker, *key_ids)
    assert await worker.flusher.flush()


async def test_a_store_that_came_back_from_an_older_copy_gets_what_it_lacks(usage: UsageWorker) -> None:
    await flushed(usage, *["a"] * 5)
    older = await usage.client.dump(counts_name("a", "2026-11"))
    assert older is not None
    await flushed(usage, *["a"] * 2)
    records = await export(usage)
    await usage.client.flushall()
    await usage.client.restore(counts_name("a", "2026-11"), 0, older)
    assert (await bring(usage, records, BEGUN)).added == 2
    assert await stored(usage) == 7


async def test_a_batch_that_is_sent_again_after_an_import_counts_once(usage: UsageWorker) -> None:
    """It was stored, its reply lost, and it is in the backup: so is its number."""
    count(usage, "a")
    usage.redis.fates.append("reply lost")
    assert not await usage.flusher.flush()
    records = await export(usage)
    await usage.client.flushall()
    await bring(usage, records)
    assert await usage.flusher.flush()
    await flushed(usage, "a")
    assert await stored(usage) == 2


async def test_an_import_beside_flushes_counts_everything_once(usage: UsageWorker, other: UsageWorker) -> None:
    await flushed(usage, *["a"] * 10)
    records = await export(usage)
    await usage.client.flushall()

    async def work(worker: UsageWorker) -> None:
        for _ in range(20):
            count(worker, "a")
            await worker.flusher.flush()

    await asyncio.gather(work(usage), bring(other, records), work(other), bring(usage, records))
    assert await stored(usage) == 50


async def test_a_dry_run_says_what_would_be_added(usage: UsageWorker) -> None:
    await flushed(usage, *["a"] * 5)
    records = await export(usage)
    assert (await restore_usage(usage.redis, BEGUN, records, dry_run=True)).added == 0
    await usage.client.flushall()
    for begun in (None, BEGUN):
        assert (await restore_usage(usage.redis, begun, records, dry_run=True)).added == 5
    assert await usage.client.keys("*") == []


async def test_a_store_that_is_emptied_during_an_import_is_reported(tmp_path: Path) -> None:
    """Figures of its own generation would come back as another's."""
    shared = FakeServer()
    usage = UsageWorker(double(shared), tmp_path)
    await flushed(usage, "a")
    records = await export(usage)
    read = 0

    def emptying() -> Iterator[UsageRecord]:
        nonlocal read
        for read, record in enumerate(records * 100, 1):
            if read == 75:  # in the second batch
                server.flushall()
            yield record

    server = FakeRedis(server=shared)
    with pytest.raises(StoreUnavailable, match="emptied"):
        await restore_usage(usage.redis, BEGUN, emptying(), dry_run=False)
    assert read < 200
    await usage.client.aclose()


async def test_damaged_counts_are_left_out_of_a_backup_and_reported(usage: UsageWorker) -> None:
    await flushed(usage, "a", "b")
    await usage.client.hset(counts_name("a", "2026-11"), "19:forecast:answered", "x")
    await usage.client.set(counts_name("c", "2026-11"), "x")
    dump = UsageDump(usage.redis, BEGUN)
    records = [record async for record in dump]
    assert sorted({damaged.key_id for damaged in dump.damaged}) == ["a", "c"]
    await usage.client.flushall()
    assert (await bring(usage, records)).added == 2


async def test_a_damaged_record_of_the_store_stops_no_other(usage: UsageWorker) -> None:
    await flushed(usage, "a", "b")
    records = await export(usage)
    await usage.client.flushall()
    await usage.client.hset(counts_name("a", "2026-11"), "20:forecast:answered", "x")
    done = await bring(usage, records)
    assert (done.added, [damaged.key_id for damaged in done.damaged]) == (1, ["a"])


async def test_a_record_of_any_size_comes_back(usage: UsageWorker) -> None:
    figures = {f"20:area{number}:answered": number + 1 for number in range(5000)}
    await usage.client.hset(counts_name("a", "2026-11"), items=[part for pair in figures.items() for part in pair])
    records = await export(usage)
    assert max(len(msgspec.json.encode(record)) for record in records) < 1 << 18
    await usage.client.flushall()
    await bring(usage, records)
    assert sum(row.answered for row in await usage.rows("a")) == sum(range(1, 5001))


counting = st.tuples(st.just("count"), st.sampled_from(KEYS), st.sampled_from(OUTCOMES))
exporting = st.tuples(st.just("export"))
losing = st.tuples(st.just("lose"))
midnight = st.tuples(st.just("midnight"))
importing = st.tuples(st.just("import"), st.integers(0, 5), st.integers(0, 12))
Step = tuple[Literal["count"], str, UsageOutcome] | tuple[str] | tuple[Literal["import"], int, int]


class History:
    """What the store should hold is a set of events: an export copies it, a loss empties it, an import unites."""

    def __init__(self, data: Path) -> None:
        self.clock = noon()
        self.worker = UsageWorker(double(), data, self.clock)
        self.begun: datetime | None = BEGUN
        self.events: set[Event] = set()
        self.backups: list[tuple[Backup, set[Event]]] = []
        self.number = 0

    async def take(self, step: Step) -> None:
        match step:
            case ("count", key_id, outcome):
                self.number += 1
                self.worker.counters.count(str(key_id), "forecast", outcome)
                assert await self.worker.flusher.flush()
                day = int(self.clock() // DAY_SECONDS)
                self.events.add((self.number, str(key_id), outcome, day))
            case ("export",):
                self.backups.append((await export(self.worker, self.begun), set(self.events)))
            case ("lose",):
                await self.worker.client.flushall()
                self.events, self.begun = set(), None
            case ("midnight",) if self.clock.now < NOON + 20 * DAY_SECONDS:
                self.clock.now += 7 * DAY_SECONDS  # in the next month, soon
            case ("import", int(at), int(interrupted_after)) if self.backups:
                records, events = self.backups[at % len(self.backups)]
                await bring(self.worker, records[:interrupted_after], self.begun)
                await bring(self.worker, records, self.begun)
                self.events |= events

    async def check(self) -> None:
        day = int(self.clock() // DAY_SECONDS)
        for key_id in KEYS:
            found: Counter[str] = Counter()
            for row in await self.worker.rows(key_id):
                found.update({outcome: getattr(row, outcome) for outcome in OUTCOMES})
            assert +found == Counter(outcome for _, key, outcome, _ in self.events if key == key_id)
            totals = await self.worker.store.totals(key_id, day)
            billable = [each for each in self.events if each[1] == key_id and each[2] in BILLABLE]
            assert totals.of_day == sum(each[3] == day for each in billable)
            assert totals.of_month == sum(date_of(each[3]).month == date_of(day).month for each in billable)


ONE: Step = ("count", "a", "answered")
EXPORT, LOSE = ("export",), ("lose",)


def brought(at: int, interrupted_after: int = 0) -> Step:
    return "import", at, interrupted_after


@example([ONE, EXPORT, LOSE, ONE, ONE, brought(0)])  # a store that counts again has both
@example([ONE, EXPORT, ONE, brought(0)])  # one that lives on stays as it is
@example([ONE, EXPORT, ONE, EXPORT, LOSE, brought(0), brought(1), brought(1), brought(0)])
@example([ONE, EXPORT, LOSE, ONE, brought(0), EXPORT, LOSE, brought(0), brought(1)])  # a backup of a restored store
@example([ONE, EXPORT, LOSE, ONE, brought(0), EXPORT, LOSE, brought(1), brought(0)])
@example([ONE, ("count", "b", "answered"), EXPORT, LOSE, brought(0, 1)])
@given(st.lists(st.one_of(counting, exporting, losing, importing, counting, midnight), max_size=14))
@settings(max_examples=60, deadline=None)
def test_whatever_happens_every_request_counts_once(steps: list[Step]) -> None:
    async def play() -> None:
        with tempfile.TemporaryDirectory() as folder:
            history = History(Path(folder))
            for step in steps:
                await history.take(step)
            await history.check()
            await history.worker.client.aclose()

    asyncio.run(play())
