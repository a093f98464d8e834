"""Whatever becomes of flushes, stops and take-overs, in whatever order: totals are what was counted."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from service.quota.names import DAY_SECONDS, date_of
from service.quota.report import UsageRow
from service.quota.usage import BILLABLE, OUTCOMES, UsageOutcome
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

Step = (
    tuple[Literal["count"], int, str, UsageOutcome]
    | tuple[Literal["flush", "take over"], int, list[Fate]]
    | tuple[Literal["prime"], int, str, list[Fate]]
    | tuple[Literal["stop", "spool"], int, bool]
    | tuple[Literal["kill"], int]
    | tuple[Literal["midnight"]]
)
Totals = Counter[tuple[str, str, UsageOutcome]]


class History:
    """Two workers on one server and data folder; whoever ends is followed by another.

    `counted` is the truth. Of it, `doubtful` was neither confirmed nor spooled when its worker was killed.
    """

    def __init__(self, data: Path) -> None:
        self.clock = noon()
        self.data = data
        self.client = double()
        self.workers = [self.new_worker(), self.new_worker()]
        self.counted: Totals = Counter()
        self.doubtful: Totals = Counter()

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
                await self.workers[at].flusher.take_over.once()
            case ("prime", at, key_id, what):
                self.workers[at].redis.fates.extend(what)
                await self.workers[at].quotas.prime(key_id)
            case ("spool", at, True):
                await self.workers[at].flusher._write(None)
            case ("spool", at, _):
                await self.workers[at].flusher.spool()
            case ("kill", at):
                self.kill(self.workers[at])
                self.workers[at] = self.new_worker()
            case ("stop", at, away):
                self.workers[at].redis.away = away
                await self.workers[at].flusher.stop(seconds=0 if away else 2)
                self.workers[at] = self.new_worker()
            case ("midnight",):
                self.clock.now += 86_400
                self.clock.now -= self.clock.now % 86_400

    def kill(self, worker: UsageWorker) -> None:
        """Nothing is done any more, and the kernel lets its lock go."""
        counters = worker.counters
        on_disk = {batch.number for batches in worker.flusher._spooled.values() for batch in batches}
        batches = [*counters._sent.items(), *counters._spooled.items()]
        cells = [(key, cell) for key, batch in batches if batch.number not in on_disk for cell in batch.hours]
        cells += [(key, (*cell, tally.n)) for key, open_ in counters._open.items() for cell, tally in open_.items()]
        for key_id, (hour, _, outcome, n) in cells:
            self.doubtful[key_id, str(date_of(hour // 24)), outcome] += n
        worker.flusher._spool._own.close()

    @property
    def day(self) -> str:
        return str(date_of(int(self.clock.now // DAY_SECONDS)))

    async def stored(self) -> Totals:
        return _totals([row for key_id in KEYS for row in await self.workers[0].rows(key_id)])

    async def stored_by_hour(self) -> Totals:
        return _totals([row for key_id in KEYS for row in await self.workers[0].hours(key_id)])

    async def billable(self) -> list[int]:
        """The month's totals, as quotas see them."""
        today = int(self.clock.now // 86_400)
        return [(await self.workers[0].store.totals(key_id, today)).of_month for key_id in KEYS]


def _totals(rows: Sequence[UsageRow]) -> Totals:
    found: Totals = Counter()
    for row in rows:
        found.update({(row.key_id, str(row.date), outcome): getattr(row, outcome) for outcome in OUTCOMES})
    return +found


async def play(steps: list[Step], data: Path) -> None:
    history = History(data)
    for step in steps:
        await history.take(step)
    for worker in history.workers:
        worker.redis.fates.clear()
        await worker.flusher.stop()
    last = history.new_worker()
    await last.flusher.take_over.once()
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


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(count, count, flush, flush, prime, spool, kill, stop, take_over, midnight), max_size=40))
def test_nothing_is_lost_and_nothing_counts_twice(steps: list[Step]) -> None:
    """Over two workers, lost replies, flushes that never ran, kills, stops with the store away, and days that end."""
    with tempfile.TemporaryDirectory() as data:
        asyncio.run(play(steps, Path(data)))
