"""How QuotaGuard reads a total: once for all who wait. The test is the store."""

import asyncio
import math
from typing import Any

import msgspec
import pytest

from service.base import timeouts
from service.base.terms import parse_quota
from service.quota import quotas
from service.quota.batch import NO_BATCH, UsageBatch
from service.quota.quotas import WAIT_SECONDS, QuotaGuard
from service.quota.usage import UsageCounters
from service.quota.usage_store import Claim, Gap, Refused, Reply, Totals
from service.redis.errors import StoreUnavailable
from tests.support.usage import NOON, UsageWorker, count, noon, stored
from tests.support.waiting import eventually, settled

QUOTA = parse_quota("1000/day")
TODAY = int(NOON // 86_400)


class Question(msgspec.Struct):
    worker_id: str
    key_id: str
    batch: UsageBatch
    claim: Claim | None
    answer: "asyncio.Future[list[Reply]]"

    async def reply(self, reply: Reply | StoreUnavailable) -> None:
        if isinstance(reply, StoreUnavailable):
            self.answer.set_exception(reply)
        else:
            if isinstance(reply, Totals) and self.claim is not None:
                reply = msgspec.structs.replace(reply, granted=self.claim.wanted, claim=self.claim)
            self.answer.set_result([reply])
        await settled()


class Store:
    """Replies when the test does, and grants all that is wanted."""

    lost_at = -math.inf

    def __init__(self) -> None:
        self.asked: list[Question] = []

    async def add(
        self, worker_id: str, batches: list[tuple[str, UsageBatch]], today: int, _: Any = None, claims: Any = None
    ) -> list[Reply]:
        [(key_id, batch)] = batches
        claim = claims(key_id, batch, today) if claims is not None else None
        self.asked.append(Question(worker_id, key_id, batch, claim, asyncio.get_running_loop().create_future()))
        return await self.asked[-1].answer


class Scene:
    """`went_on` has the names of the requests that went on, in order."""

    def __init__(self) -> None:
        self.clock = noon()
        self.store = Store()
        self.counters = UsageCounters(self.clock)
        store: Any = self.store
        self.guard = QuotaGuard(self.counters, store, clock=self.clock)
        self.went_on: list[str] = []
        self.waiting: list[asyncio.Task[None]] = []

    async def wait(self, name: str, seconds: float = WAIT_SECONDS) -> None:
        self.waiting.append(asyncio.create_task(self.prime(name, seconds)))
        await settled()

    async def prime(self, name: str, seconds: float = WAIT_SECONDS) -> None:
        await self.guard.prime("a", seconds)
        self.went_on.append(name)

    def count(self, number: int) -> None:
        self.counters.count("a", "forecast", "answered", number)

    @property
    def used(self) -> int | None:
        state = self.guard.check("a", QUOTA, self.clock.now)
        return None if state is None else state.used


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    assert scene.used is None
    return scene


async def test_all_requests_that_wait_share_one_read_and_go_on_when_it_ends(scene: Scene) -> None:
    for name in ("cancelled", "first", "second"):
        await scene.wait(name)
    scene.waiting[0].cancel()
    await settled()
    [question] = scene.store.asked
    assert scene.went_on == []
    await question.reply(Totals(TODAY, 7, 7))
    assert (scene.went_on, scene.used) == (["first", "second"], 7)
    await scene.wait("third")
    assert len(scene.store.asked) == 2
    assert scene.went_on == ["first", "second"]


async def test_a_request_that_went_on_may_wait_again_at_once(scene: Scene) -> None:
    async def twice() -> None:
        await scene.guard.prime("a")
        await scene.prime("again")

    waiting = asyncio.create_task(twice())
    await settled()
    await scene.store.asked[0].reply(Totals(TODAY, 7, 7))
    assert (len(scene.store.asked), scene.went_on) == (2, [])
    await scene.store.asked[1].reply(Totals(TODAY, 8, 8))
    assert (scene.went_on, scene.used) == (["again"], 8)
    await waiting


async def test_a_request_that_waited_too_long_goes_on_and_the_answer_is_taken_when_it_comes(scene: Scene) -> None:
    scene.count(3)
    await scene.wait("first", 0.01)
    await eventually(lambda: scene.went_on == ["first"])
    assert scene.used == 3
    await scene.store.asked[0].reply(Totals(TODAY, 9, 9))
    assert (scene.used, scene.went_on, len(scene.store.asked)) == (9, ["first"], 1)


async def test_a_read_without_waiters_sets_no_alarm(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await scene.wait("first")
    await scene.store.asked[0].reply(Totals(TODAY, 7, 7))
    monkeypatch.setattr(timeouts, "Alarm", lambda *_: pytest.fail("an alarm"))
    scene.clock.now += quotas.DUE_SECONDS
    assert scene.used == 7
    await settled()
    assert len(scene.store.asked) == 2


async def test_an_unreachable_store_leaves_the_known_totals(scene: Scene) -> None:
    await scene.wait("first")
    await scene.store.asked[0].reply(Totals(TODAY, 7, 7))
    scene.count(2)
    await scene.wait("second")
    await scene.store.asked[1].reply(StoreUnavailable("away"))
    assert (scene.went_on, scene.used) == (["first", "second"], 9)


async def test_what_waits_is_stored_with_the_question(scene: Scene) -> None:
    scene.count(2)
    await scene.wait("first")
    [question] = scene.store.asked
    assert (question.worker_id, question.batch.billable(TODAY, TODAY + 1)) == (scene.counters.worker_id, 2)
    claim = scene.guard.claim("a", question.batch, TODAY)  # that of a flush
    scene.guard.stored("a", question.batch, Totals(TODAY, 2, 2, 1, claim), scene.guard.number_call())
    await question.reply(Totals(TODAY, 2, 2))
    assert (scene.used, scene.counters.waits) == (2, 0)


async def test_a_store_that_takes_no_batch_is_asked_for_totals_alone(scene: Scene) -> None:
    scene.count(2)
    await scene.wait("first")
    await scene.store.asked[0].reply(Refused("OOM"))
    assert scene.went_on == []
    again = scene.store.asked[1]
    assert (again.worker_id, again.key_id, again.batch) == ("", "a", NO_BATCH)
    await again.reply(Totals(TODAY, 40, 40))
    assert (scene.went_on, scene.used, scene.counters.waits) == (["first"], 42, 2)


async def test_a_store_that_refuses_that_as_well_leaves_what_is_known(scene: Scene) -> None:
    await scene.wait("first")
    await scene.store.asked[0].reply(Refused("NOPERM"))
    await scene.store.asked[1].reply(Refused("NOPERM"))
    assert (scene.went_on, scene.used, len(scene.store.asked)) == (["first"], 0, 2)


async def test_what_the_store_lost_is_taken_back_with_its_total(scene: Scene) -> None:
    await scene.wait("first")
    await scene.store.asked[0].reply(Totals(TODAY, 7, 7))
    scene.count(5)
    await scene.wait("second")
    await scene.store.asked[1].reply(Totals(TODAY, 12, 12))
    scene.count(1)
    await scene.wait("third")
    await scene.store.asked[2].reply(Gap(0, Totals(TODAY, 7, 7)))
    assert (scene.went_on, scene.used, scene.counters.waits) == (["first", "second", "third"], 13, 6)


async def test_a_defect_in_handling_a_reply_leaves_no_caller_waiting(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a defect")

    await scene.wait("first")
    monkeypatch.setattr(scene.guard, "stored", fail)
    await scene.store.asked[0].reply(Totals(TODAY, 7, 7))
    assert (scene.went_on, scene.used) == (["first"], 0)
    assert "a defect" in caplog.text


async def test_an_answer_after_the_flusher_stopped_changes_nothing(usage: UsageWorker) -> None:
    """The read had sent the batch that the last flush sent again."""
    usage.redis.seconds = 0.05
    count(usage, "a")
    reading = asyncio.create_task(usage.quotas.prime("a"))
    await settled()
    await usage.flusher.stop()
    await usage.redis.stop()
    await reading
    assert await stored(usage) == 1
    assert not usage.counters.waits
