"""Whatever becomes of flushes, stops, take-overs and the store, in whatever order: totals are what was counted."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.quota.batch import BILLABLE, OUTCOMES, UsageBatch, UsageOutcome
from service.quota.names import DAY_SECONDS, date_of, sequences_name
from service.quota.report import UsageRow
from tests.support.usage import Fate, UsageWorker, double, noon

FATES: tuple[Fate, ...] = ("ok", "reply lost", "not run")
KEYS = ("a", "b")

fates = st.lists(st.sampled_from(FATES), max_size=3)
workers = st.integers(0, 1)
count = st.tuples(st.just("count"), workers, st.sampled_from(KEYS), st.sampled_from(OUTCOMES))
flush = st.tuples(st.just("flush"), workers, fates)
stop = st.tuples(st.just("stop"), workers, st.booleans())
prime = st.tuples(st.just("prime"), workers, st.sampled_from(KEYS), fates)
spool = st.tuples(st.just("spool"), workers, st.booleans())
kill = st.tuples(st.just("kill"), workers)
take_over = st.tuples(st.just("take over"), workers, fates)
midnight = st.tuples(st.just("midnight"))
ends = st.one_of(kill, stop)
failover = st.tuples(st.sampled_from(["replicate", "replicate", "promote"]))

Step = (
    tuple[Literal["count"], int, str, UsageOutcome]
    | tuple[Literal["flush", "take over"], int, list[Fate]]
    | tuple[Literal["prime"], int, str, list[Fate]]
    | tuple[Literal["stop", "spool"], int, bool]
    | tuple[Literal["kill"], int]
    | tuple[Literal["midnight", "replicate", "promote"]]
)
Totals = Counter[tuple[str, str, UsageOutcome]]


class History:
    """Two workers on one server and data folder; whoever ends is followed by another. A replica, which got everything
    until it was last brought up to date, may take the server's place.

    `counted` is the truth. Of it, `doubtful` was neither confirmed nor spooled when its worker was killed; or it had
    been stored for a worker that has ended, and the replica did not have it.
    """

    def __init__(self, data: Path) -> None:
        self.clock = noon()
        self.data = data
        self.client = double()
        self.workers = [self.new_worker(), self.new_worker()]
        self.counted: Totals = Counter()
        self.doubtful: Totals = Counter()
        self.replica: dict[Any, dict[Any, Any]] = {}
        self.ended: list[tuple[str, str, UsageBatch]] = []  # worker id, key id, and what it had numbered

    async def begin(self) -> None:
        """What the first worker of all stored has reached the replica."""
        first = self.new_worker()
        first.counters.count("first", "forecast", "answered")
        await first.flusher.stop()
        await self.replicate()

    def new_worker(self) -> UsageWorker:
        return UsageWorker(self.client, self.data, self.clock)

    async def take(self, step: Step) -> None:
        match step:
            case ("count", at, key_id, outcome):
                self.workers[at].counters.count(key_id, "forecast", outcome)
                self.counted[key_id, self.day, outcome] += 1
            case ("flush", at, what):
                self.workers[at].redis.fates.extend(what)
                await self.workers[at].flusher.flush()
            case ("take over", at, what):
                self.workers[at].redis.fates.extend(what)
                await self.workers[at].flusher.orphaned.once()
            case ("prime", at, key_id, what):
                self.workers[at].redis.fates.extend(what)
                await self.workers[at].quotas.prime(key_id)
            case ("spool", at, True):
                await self.workers[at].flusher._write(None)
            case ("spool", at, _):
                await self.workers[at].flusher.spool()
            case (("kill" | "stop"), at, *away):
                await self.end(self.workers[at], away)
                self.workers[at] = self.new_worker()
            case (("replicate" | "promote") as what,):
                await (self.replicate() if what == "replicate" else self.promote())
            case ("midnight",):
                self.clock.now += 86_400
                self.clock.now -= self.clock.now % 86_400

    async def end(self, worker: UsageWorker, away: list[bool]) -> None:
        """Stops the worker, with the store `away` or not; kills it if that is not said."""
        self.ended += _numbered(worker)
        if not away:
            for key_id, batches in worker.counters.kept.all():
                last = await self.client.hget(sequences_name(key_id), worker.counters.worker_id) or b"0:0"
                self.doubt_after(last, key_id, batches)
            self.kill(worker)
            return
        [worker.redis.away] = away
        await worker.flusher.stop(seconds=0 if worker.redis.away else 2)

    def kill(self, worker: UsageWorker) -> None:
        """Nothing is done any more, and the kernel lets its lock go."""
        counters = worker.counters
        on_disk = {batch.number for batches in worker.flusher._spooled.values() for batch in batches}
        sent = [(key, batch) for key, batches in counters._sent.items() for batch in batches]
        batches = [*sent, *counters._spooled.items()]
        cells = [(key, cell) for key, batch in batches if batch.number not in on_disk for cell in batch.hours]
        cells += [(key, (*cell, tally.n)) for key, open_ in counters._open.items() for cell, tally in open_.items()]
        self.doubt(cells)
        worker.flusher._spool._own.close()

    async def replicate(self) -> None:
        self.replica = {name: await self.client.hgetall(name) for name in await self.client.keys("[us]:*")}

    async def promote(self) -> None:
        await self.client.flushall()
        for name, fields in self.replica.items():
            await self.client.hset(name, mapping=fields)
        for worker_id, key_id, batch in self.ended:
            last = self.replica.get(sequences_name(key_id).encode(), {}).get(worker_id.encode(), b"0:0")
            self.doubt_after(last, key_id, [batch])

    def doubt_after(self, last: Any, key_id: str, batches: Iterable[UsageBatch]) -> None:
        """What the store lacks whose last batch is that one: nobody will send it again."""
        for batch in batches:
            if batch.number > int(last.partition(b":")[0]):
                self.doubt((key_id, cell) for cell in batch.hours)

    def doubt(self, cells: Iterable[tuple[str, tuple[int, str, UsageOutcome, int]]]) -> None:
        for key_id, (hour, _, outcome, n) in cells:
            self.doubtful[key_id, str(date_of(hour // 24)), outcome] += n

    @property
    def day(self) -> str:
        return str(date_of(int(self.clock.now // DAY_SECONDS)))

    async def stored(self) -> Totals:
        return _totals([row for key_id in KEYS for row in await self.workers[0].rows(key_id)])

    async def stored_by_hour(self) -> Totals:
        return _totals([row for key_id in KEYS for row in await self.workers[0].hours(key_id)])

    async def billable(self) -> list[int]:
        today = int(self.clock.now // 86_400)
        return [(await self.workers[0].store.totals(key_id, today)).of_month for key_id in KEYS]


def _numbered(worker: UsageWorker) -> list[tuple[str, str, UsageBatch]]:
    """What a worker that is about to end has numbered, stored or not; of what it has not, its last flush would be."""
    counters = worker.counters
    counters.to_send()
    found = [*counters.kept.all(), *((key_id, list(batches)) for key_id, batches in counters._sent.items())]
    return [(counters.worker_id, key_id, batch) for key_id, batches in found for batch in batches]


def _totals(rows: Sequence[UsageRow]) -> Totals:
    found: Totals = Counter()
    for row in rows:
        found.update({(row.key_id, str(row.date), outcome): getattr(row, outcome) for outcome in OUTCOMES})
    return +found


async def play(steps: list[Step], data: Path) -> None:
    history = History(data)
    await history.begin()
    for step in steps:
        await history.take(step)
    for worker in history.workers:
        worker.redis.fates.clear()
        await worker.flusher.stop()
    last = history.new_worker()
    await last.flusher.orphaned.once()
    stored = await history.stored()
    assert history.counted - history.doubtful <= stored <= history.counted
    assert await history.stored_by_hour() == stored
    month = history.day[:7]
    assert await history.billable() == [
        sum(
            times
            for (key, day, outcome), times in stored.items()
            if key == key_id and outcome in BILLABLE and day.startswith(month)
        )
        for key_id in KEYS
    ]
    await history.client.aclose()


ONE: Step = ("count", 0, "a", "answered")
OTHER: Step = ("count", 0, "b", "answered")
AWAY: Step = ("stop", 0, True)


@example([ONE, ("flush", 0, []), ("promote",)])
@example([step for fate in ("reply lost", "not run", "reply lost") for step in (ONE, ("flush", 0, [fate]))])
@example([ONE, OTHER, ("flush", 0, ["reply lost"]), ONE, AWAY, ("take over", 1, [])])
# a take-over that ends in the middle of a file
@example([ONE, OTHER, ("flush", 0, ["not run"]), ONE, OTHER, AWAY, ("take over", 1, ["ok", "not run"])])
# what a living worker spooled is its own: its next file has the same counts under another number
@example([ONE, ("flush", 0, ["not run"]), ONE, ("spool", 0, True), ("take over", 1, []), ONE, ("spool", 0, True)])
@settings(max_examples=75, deadline=None)
@given(st.lists(st.one_of(count, count, flush, flush, prime, spool, ends, take_over, midnight, failover), max_size=40))
def test_nothing_is_lost_and_nothing_counts_twice(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as data:
        asyncio.run(play(steps, Path(data)))
