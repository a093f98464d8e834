"""The limiter of one worker: what it decides alone, when it asks, how long it believes, what it does without Redis."""

import asyncio

import pytest

from service.base.terms import Rate
from service.quota.gcra import Decision
from service.quota.rates import MOST_KEYS
from service.quota.token_lease import FIRST_LOCAL_SECONDS, HELD_SECONDS, LIFE_SECONDS, LOCAL_SECONDS
from tests.support.leasing import OneWorker
from tests.support.waiting import PATIENCE, settled

FAST = Rate(500, 1, 100)
SLOW = Rate(10, 1, 10)


@pytest.fixture
def worker() -> OneWorker:
    return OneWorker()


async def test_a_key_that_comes_seldom_is_asked_for_once_a_second(worker: OneWorker) -> None:
    fast = Rate(2000, 1, 100)
    await worker.drive(fast, 5, 2)
    worker.leases.calls.clear()
    assert await worker.drive(fast, 5, 10) == 50
    assert len(worker.leases.calls) <= 15


@pytest.mark.parametrize(("rate", "per_second", "seconds"), [(SLOW, 9, 5), (Rate(40, 1, 1000), 1000, 0.5)])
async def test_a_slow_key_asks_for_every_request(
    worker: OneWorker, rate: Rate, per_second: int, seconds: float
) -> None:
    assert await worker.drive(rate, per_second, seconds) == per_second * seconds
    assert worker.leases.calls == [("k", 1)] * int(per_second * seconds)


async def test_a_refusal_is_remembered_and_costs_no_call(worker: OneWorker) -> None:
    assert await worker.take(SLOW, 11) == 10
    worker.leases.calls.clear()
    worker.clock.now += 0.09
    assert worker.limiter.try_take("k", SLOW) == Decision(False, 0, 1, 1)
    assert worker.leases.calls == []
    worker.clock.now += 0.011
    assert worker.limiter.try_take("k", SLOW) is None
    assert await worker.take(SLOW) == 1


@pytest.mark.parametrize("rate", [SLOW, Rate(60, 1, 60)])
async def test_of_a_crowd_over_its_rate_one_asks_for_each_token_that_comes(worker: OneWorker, rate: Rate) -> None:
    await worker.take(rate, 2 * rate.burst)
    worker.leases.calls.clear()
    passed: list[bool] = []
    for _ in range(3000):  # three seconds
        worker.clock.now += 0.001
        assert sum(worker.asked(rate, passed) for _ in range(8)) <= 1
        await settled()
    assert len(passed) == 8 * 3000
    assert sum(passed) == pytest.approx(3 * rate.per_second, abs=1)
    assert len(worker.leases.calls) <= sum(passed) + 3


async def test_who_asks_for_a_token_in_vain_leaves_the_next_one_to_others(worker: OneWorker) -> None:
    hourly = Rate(10, 3600, 10)
    assert await worker.take(hourly, 11) == 10
    worker.clock.now += 361
    worker.leases.away = True
    await worker.take(hourly)
    worker.leases.away = False
    worker.clock.now += 1
    assert worker.limiter.try_take("k", hourly) is None


async def test_a_refusal_says_how_long(worker: OneWorker) -> None:
    hourly = Rate(10, 3600, 10)
    assert await worker.take(hourly, 10) == 10
    assert await worker.limiter.take("k", hourly) == Decision(False, 0, 360, 360)
    worker.clock.now += 100.5
    assert worker.limiter.try_take("k", hourly) == Decision(False, 0, 260, 260)


async def test_requests_of_a_moment_share_a_call(worker: OneWorker) -> None:
    decisions = await asyncio.gather(*(worker.limiter.take("k", SLOW) for _ in range(12)))
    assert worker.leases.calls == [("k", 1), ("k", 11)]
    assert [decision.allowed for decision in decisions] == [True] * 10 + [False] * 2
    assert [decision.remaining for decision in decisions] == [*range(9, -1, -1), 0, 0]


async def test_requests_during_a_call_wait_for_it(worker: OneWorker) -> None:
    worker.leases.holding = True
    first = asyncio.create_task(worker.limiter.take("k", SLOW))
    await settled()
    later = [asyncio.create_task(worker.limiter.take("k", SLOW)) for _ in range(3)]
    await settled()
    assert worker.leases.calls == [("k", 1)]
    worker.leases.let_go()
    await settled()
    assert first.done()
    assert worker.leases.calls == [("k", 1), ("k", 3)]
    worker.leases.let_go()
    assert all(decision.allowed for decision in await asyncio.gather(*later))


async def test_a_caller_that_goes_away_takes_nothing_from_the_others(worker: OneWorker) -> None:
    worker.leases.holding = True
    tasks = [asyncio.create_task(worker.limiter.take("k", SLOW)) for _ in range(3)]
    await settled()
    tasks[0].cancel()
    await settled()
    worker.leases.let_go()
    assert (await asyncio.wait_for(tasks[1], PATIENCE)).allowed
    assert worker.leases.calls == [("k", 1), ("k", 1)]
    worker.leases.let_go()
    assert (await asyncio.wait_for(tasks[2], PATIENCE)).allowed


async def test_tokens_are_renewed_early_and_never_too_many(worker: OneWorker) -> None:
    rate = Rate(20_000, 1, 20_000)
    await worker.drive(rate, 2000, 1)
    token_lease = worker.limiter.token_lease("k")
    assert token_lease is not None
    held = []
    for _ in range(2000):
        worker.clock.now += 1 / 2000
        assert worker.limiter.try_take("k", rate) is not None
        await settled()
        held.append(token_lease.tokens)
    assert max(held) == rate.requests * HELD_SECONDS / 4


async def test_a_token_not_spent_is_lost_in_time(worker: OneWorker) -> None:
    await worker.drive(FAST, 400, 1)
    worker.clock.now += LIFE_SECONDS
    assert worker.limiter.try_take("k", FAST) is None


@pytest.mark.parametrize(
    ("before", "after", "passes"),
    [(SLOW, FAST, 100), (FAST, SLOW, 10), (SLOW, Rate(10, 1, 10), 0)],
    ids=["raised", "lowered", "the same, decoded again"],
)
async def test_a_new_rate_holds_from_the_next_request(
    worker: OneWorker, before: Rate, after: Rate, passes: int
) -> None:
    await worker.take(before, 101)
    worker.leases.tats.clear()
    worker.leases.calls.clear()
    assert await worker.take(after, 101) == passes
    assert bool(worker.leases.calls) == bool(passes)


async def test_a_rate_raised_during_a_call_is_not_refused_for_the_old_one(worker: OneWorker) -> None:
    hourly = Rate(1, 3600, 1)
    assert await worker.take(hourly) == 1
    worker.limiter = worker.another()
    worker.leases.holding = True
    old = asyncio.create_task(worker.limiter.take("k", hourly))
    await settled()
    new = asyncio.create_task(worker.limiter.take("k", FAST))
    await settled()
    worker.leases.holding = False
    worker.leases.let_go()
    assert ((await old).retry_after, (await new).retry_after) == (1, 1)
    worker.clock.now += 0.011
    assert await worker.take(FAST) == 1


async def test_without_redis_each_worker_grants_its_share() -> None:
    worker = OneWorker(workers=4)
    worker.leases.away = True
    first = await asyncio.gather(*(worker.limiter.take("k", FAST) for _ in range(30)))
    assert [decision.allowed for decision in first] == [True] * 25 + [False] * 5
    assert await worker.drive(FAST, 1000, 2) == pytest.approx(250, abs=1)


async def test_without_redis_it_is_asked_rarely(worker: OneWorker) -> None:
    """Soon twice a second, whatever the requests: each try may take as long as its budget."""
    worker.leases.away = True
    await worker.drive(FAST, 1000, 1)
    worker.leases.calls.clear()
    await worker.drive(FAST, 1000, 5)
    assert 9 <= len(worker.leases.calls) <= 5 / LOCAL_SECONDS + 1


async def test_a_refusal_without_redis_says_when(worker: OneWorker) -> None:
    """By the share's rate: of 10 an hour, four workers have one each 24 minutes."""
    worker.leases.away = True
    hourly = Rate(10, 3600, 4)
    assert await worker.limiter.take("k", hourly) == Decision(True, 0, 360, 0)
    assert await worker.limiter.take("k", hourly) == Decision(False, 0, 1440, 1440)


async def test_an_outage_brings_a_key_at_its_limit_no_burst() -> None:
    worker = OneWorker(workers=1)
    await worker.drive(FAST, 2000, 1)
    worker.leases.away = True
    assert await worker.drive(FAST, 2000, 1) <= 500 * 1.05


async def test_an_unsteady_redis_brings_no_bursts() -> None:
    worker = OneWorker(workers=1)
    passed = 0
    for second in range(10):
        worker.leases.away = second % 2 == 0
        passed += await worker.drive(FAST, 2000, 1)
    assert 0.95 * 500 * 10 <= passed <= FAST.burst + 500 * 10 * 1.01


async def test_an_answer_lost_now_and_then_keeps_the_rate() -> None:
    worker = OneWorker(workers=4)
    others = worker.another()
    await worker.drive(FAST, 2000, 1)
    passed = 0
    for turn in range(4):
        calls = len(worker.leases.calls)
        for _ in range(500):
            worker.clock.now += 0.001
            worker.leases.away = len(worker.leases.calls) == calls
            passed += await worker.take(FAST)
            worker.leases.away = False
            for _ in range(2):
                passed += (await others.take("k", FAST)).allowed
        assert len(worker.leases.calls) > calls + 1, turn
    assert passed <= 500 * 2 * 1.05


async def test_a_failed_renewal_leaves_the_tokens_that_there_are(worker: OneWorker) -> None:
    await worker.drive(FAST, 400, 1)
    worker.leases.away = True
    assert await worker.take(FAST, 20) == 20


async def test_what_is_held_of_many_keys_is_bounded(worker: OneWorker) -> None:
    for number in range(MOST_KEYS * 2):
        worker.limiter.try_take(str(number), SLOW)
    assert len(worker.limiter._token_leases) <= MOST_KEYS


async def test_stopping_waits_for_the_call_under_way(worker: OneWorker) -> None:
    worker.leases.holding = True
    waiting = asyncio.create_task(worker.limiter.take("k", SLOW))
    await settled()
    stopping = asyncio.create_task(worker.limiter.stop())
    await settled()
    assert not stopping.done()
    worker.leases.let_go()
    await stopping
    assert (await waiting).allowed


async def test_requests_that_go_together_pass_as_a_whole_or_not_at_all(worker: OneWorker) -> None:
    assert (await worker.limiter.take("k", SLOW, 7)).remaining == 3
    assert await worker.limiter.take("k", SLOW, 5) == Decision(False, 3, 1, 1)
    assert await worker.take(SLOW, 4) == 3
    worker.clock.now += 1
    assert (await worker.limiter.take("k", SLOW, 10)).allowed


async def test_a_refusal_of_one_holds_for_several(worker: OneWorker) -> None:
    assert await worker.take(SLOW, 11) == 10
    calls = len(worker.leases.calls)
    assert await worker.limiter.take("k", SLOW, 9) == Decision(False, 0, 1, 1)
    assert len(worker.leases.calls) == calls


async def test_tokens_that_are_held_serve_several_at_once(worker: OneWorker) -> None:
    await worker.drive(FAST, 400, 1)
    token_lease = worker.limiter.token_lease("k")
    assert token_lease is not None
    while token_lease.tokens < 3:
        worker.clock.now += 1 / 400
        await worker.take(FAST)
    calls, before = len(worker.leases.calls), token_lease.tokens
    assert (await worker.limiter.take("k", FAST, 2)).allowed
    assert (len(worker.leases.calls), token_lease.tokens) == (calls, before - 2)


async def test_several_at_once_get_this_worker_s_share_while_redis_is_unreachable(worker: OneWorker) -> None:
    worker.leases.away = True
    assert not (await worker.limiter.take("k", FAST, 26)).allowed
    assert (await worker.limiter.take("k", FAST, 25)).allowed
    assert not (await worker.limiter.take("k", FAST, 2)).allowed
    assert len(worker.leases.calls) == 1


async def test_what_was_granted_without_redis_is_paid_with_the_next_that_go_together(worker: OneWorker) -> None:
    worker.leases.away = True
    assert (await worker.limiter.take("k", SLOW, 2)).allowed
    worker.leases.away = False
    worker.clock.now += FIRST_LOCAL_SECONDS
    await worker.limiter.take("k", SLOW, 3)
    assert worker.leases.calls[-1] == ("k", 4)  # most of one of the two is refilled
