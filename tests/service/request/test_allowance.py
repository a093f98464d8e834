"""What a key passes with is kept, and what was told of its limits is told again while it is true."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from service.base.terms import Quota, Rate, Terms
from service.keys.record import ApiKey
from service.quota.gcra import allowed
from service.quota.known import QuotaState
from service.quota.rates import RateLimiter
from service.request.admit import Admission, Allowance
from service.request.ratelimit import limit_headers, limit_lines
from tests.support.leasing import FakeLeases
from tests.support.usage import UsageWorker, double

RATE = Rate(500, 1, 100)
QUOTA = Quota(5_000_000, "month")
AREA = "forecast"


def standing(remaining: int) -> QuotaState:
    return QuotaState(QUOTA.requests - remaining, remaining, 86_400, 30 * 86_400, exhausted=False, warn_from=4_000_000)


def of_quota(allowance: Allowance) -> tuple[int, int]:
    """What is told to be left, and for how many seconds."""
    found = re.search(rb'"quota";r=(\d+);t=(\d+)', allowance.tail)
    assert found is not None
    return int(found[1]), int(found[2])


class Scene:
    """One worker's admission, over doubles; time is the test's."""

    def __init__(self, usage: UsageWorker) -> None:
        self.usage = usage
        self.limiter = RateLimiter(FakeLeases(usage.clock), lambda: 1, usage.clock)
        self.admission = Admission(
            frozenset({AREA, "projects"}), self.limiter, usage.quotas, usage.counters, usage.clock
        )

    def admit(self, key: ApiKey, area: str = AREA) -> Allowance | None:
        return self.admission.admit(key, area, self.usage.clock())

    async def primed(self, quota: Quota) -> ApiKey:
        await self.usage.quotas.prime("a")
        return key_with(Terms(quota=quota))


def key_with(terms: Terms) -> ApiKey:
    return ApiKey(key_id="a", partner="acme", digest="0" * 64, created_at=datetime(2026, 1, 1, tzinfo=UTC), terms=terms)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    client = double()
    yield Scene(UsageWorker(client, tmp_path))
    await client.aclose()


@pytest.mark.parametrize("terms", [Terms(rate=RATE), Terms(quota=QUOTA), Terms(rate=RATE, quota=QUOTA), Terms()])
def test_lines_are_the_fields_as_they_travel(terms: Terms) -> None:
    given = (terms.rate, allowed(RATE, 7) if terms.rate else None, terms.quota, standing(900) if terms.quota else None)
    fields = limit_headers(*given)
    assert limit_lines(*given) == b"".join(b"%s: %s\r\n" % field for field in fields)


@pytest.mark.parametrize("requests", [900, 100_000])
async def test_of_a_quota_hardly_less_is_told_than_there_is(scene: Scene, requests: int) -> None:
    """At most a thousandth beside this answer, and never more; whatever is counted beside, on the router path or in
    another area."""
    key = await scene.primed(Quota(requests, "month"))
    for used in range(500):
        area = AREA if used % 7 else "projects"
        allowance = scene.admit(key, area)
        if allowance is None:  # the worker's share is spent: it asks the store
            await scene.usage.quotas.prime("a")
            allowance = scene.admit(key, area)
        assert allowance is not None
        assert 0 <= requests - used - 1 - of_quota(allowance)[0] <= requests // 1000
        if used % 50 == 49:
            scene.usage.quotas.check("a", key.terms.quota, scene.usage.clock())  # type: ignore[arg-type]
            scene.usage.counters.count("a", AREA, "answered")
        else:
            scene.admission.count_allowed(allowance, AREA, "answered")


async def test_while_nothing_changes_nothing_is_written_anew(scene: Scene) -> None:
    key = await scene.primed(QUOTA)
    first, second = scene.admit(key), scene.admit(key)
    assert first is second
    assert first is not None
    lines = first.tail
    scene.admit(key)
    assert first.tail is lines


async def test_what_was_told_does_not_outlive_its_second(scene: Scene) -> None:
    """The time to the end of the period is counted down."""
    key = await scene.primed(QUOTA)
    allowance = scene.admit(key)
    assert allowance is not None
    before = of_quota(allowance)[1]
    scene.usage.clock.now += 5
    await scene.usage.quotas.prime("a")
    assert scene.admit(key) is allowance
    assert of_quota(allowance)[1] == before - 5


@pytest.mark.parametrize(
    ("quota", "passed"),
    [
        (Quota(10, "day", warn_at=0.5), 4),
        (Quota(4, "day", warn_at=1.0), 3),
        (Quota(100_000, "day", warn_at=0.0005), 49),
    ],
    ids=["warns at half", "used up", "warns amid what needs no look"],
)
async def test_the_answer_that_reaches_the_level_of_a_warning_goes_the_ordinary_way(
    scene: Scene, quota: Quota, passed: int
) -> None:
    """It says the warning, and the refusal."""
    key = await scene.primed(quota)
    for _ in range(passed):
        allowance = None
        while allowance is None:
            allowance = scene.admit(key)
            if allowance is None:
                await scene.usage.quotas.prime("a")
        scene.admission.count_allowed(allowance, AREA, "answered")
    await scene.usage.quotas.prime("a")
    assert scene.admit(key) is None


@pytest.mark.parametrize("warn_at", [0.0002, 0.0015, 0.01])
async def test_what_is_told_as_left_without_a_warning_needs_none(scene: Scene, warn_at: float) -> None:
    """Though a thousandth less may be told than there is."""
    quota = Quota(1_000_000, "month", warn_at=warn_at)
    key = await scene.primed(quota)
    for _ in range(500):
        allowance = scene.admit(key)
        if allowance is None:
            break
        for tail in (allowance.tail, allowance.unbilled):
            (left,) = re.findall(rb'"quota";r=(\d+);', tail)
            assert quota.requests - int(left) < quota.requests * warn_at
        scene.admission.count_allowed(allowance, AREA, "answered")


async def test_terms_that_changed_hold_from_the_next_request(scene: Scene) -> None:
    assert scene.admit(key_with(Terms(areas=(AREA,)))) is not None
    assert scene.admit(key_with(Terms(areas=("projects",)))) is None
    unlimited = scene.admit(key_with(Terms()))
    assert unlimited is not None
    assert unlimited.tail == b"\r\n\r\n"


async def test_a_tally_counts_for_its_day_and_until_it_is_stored(scene: Scene) -> None:
    """Nothing is added to what was sent, and nothing to yesterday."""
    key = key_with(Terms())
    counters, clock = scene.usage.counters, scene.usage.clock
    today = int(clock.now // 86_400)

    def count() -> None:
        allowance = scene.admit(key)
        assert allowance is not None
        scene.admission.count_allowed(allowance, AREA, "answered")

    count()
    count()
    sent = counters.to_send_of("a")
    count()
    clock.now += 86_400
    count()
    count()
    assert sent.cells == ((today, AREA, "answered", 2),)
    assert counters.waits == 5
    counters.confirm("a", sent.number)
    assert counters.to_send_of("a").cells == ((today, AREA, "answered", 1), (today + 1, AREA, "answered", 2))


async def test_a_tally_counts_for_its_hour(scene: Scene) -> None:
    """Also when the hour ends within the second for which an allowance is good."""
    key, clock = key_with(Terms()), scene.usage.clock
    clock.now += 3_600 - clock.now % 3_600 - 0.3
    for _ in range(3):
        allowance = scene.admit(key)
        assert allowance is not None
        tally = allowance.tallies.get("answered")
        if tally is None:
            scene.admission.count_allowed(allowance, AREA, "answered")
        else:
            tally.add()
        clock.now += 0.2
    hour = int(clock.now // 3_600)
    sent = scene.usage.counters.to_send_of("a")
    assert sent.hours == ((hour - 1, AREA, "answered", 2), (hour, AREA, "answered", 1))


async def test_a_refusal_counts_for_its_hour(scene: Scene) -> None:
    """Also while one that is known is told again and again, and its tally is added to."""
    key, clock = key_with(Terms()), scene.usage.clock
    clock.now += 3_600 - clock.now % 3_600 - 0.3
    tally, until = scene.admission.count_denied(key, AREA, "limited", 1000.0)
    assert until == pytest.approx(1000.3)
    tally.add()
    clock.now += 0.4
    tally, until = scene.admission.count_denied(key, AREA, "limited", 1000.4)
    assert 1001 < until <= 1001.4
    hour = int(clock.now // 3_600)
    sent = scene.usage.counters.to_send_of("a")
    assert tally.closed
    assert sent.hours == ((hour - 1, AREA, "limited", 2), (hour, AREA, "limited", 1))


async def test_nobody_passes_before_a_token_was_leased(scene: Scene) -> None:
    """However often it is asked; and with a token, once for each."""
    key = key_with(Terms(rate=Rate(1000, 1, 2)))
    assert [scene.admit(key) for _ in range(3)] == [None] * 3
    assert (await scene.limiter.take("a", key.terms.rate)).allowed  # type: ignore[arg-type]
    scene.limiter.holding("a").tokens = 1  # type: ignore[union-attr]
    scene.limiter.holding("a").expires = scene.usage.clock() + 1  # type: ignore[union-attr]
    scene.limiter.holding("a").renew_at = scene.usage.clock() + 1  # type: ignore[union-attr]
    assert scene.admit(key) is not None
    assert scene.admit(key) is None


async def test_a_token_whose_life_is_over_is_nobodys(scene: Scene) -> None:
    """Nor is one taken past the moment at which it is time to renew, without saying so."""
    key = key_with(Terms(rate=Rate(1000, 1, 1000)))
    assert (await scene.limiter.take("a", key.terms.rate)).allowed  # type: ignore[arg-type]
    holding = scene.limiter.holding("a")
    assert holding is not None
    holding.tokens, holding.low = 500, 0
    holding.expires = holding.renew_at = scene.usage.clock() + 0.05
    assert scene.admit(key) is not None
    assert scene.admit(key) is not None
    scene.usage.clock.now += 0.05
    assert scene.admit(key) is None


async def test_allowances_of_many_keys_are_bounded(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.request.admit._MOST_ALLOWANCES", 3)
    for number in range(10):
        assert scene.admit(msgspec.structs.replace(key_with(Terms()), key_id=f"k{number}")) is not None
    assert len(scene.admission._allowances[AREA]) <= 3


async def test_what_would_not_be_admitted_is_known_beforehand(scene: Scene) -> None:
    """And nothing is taken by asking. A key that is leased ahead may wait for the next lease, if it is not refused."""
    now = scene.usage.clock()
    assert scene.admission.may_admit(key_with(Terms()), AREA, now)
    assert not scene.admission.may_admit(key_with(Terms(areas=("projects",))), AREA, now)
    limited = key_with(Terms(rate=RATE))
    assert not scene.admission.may_admit(limited, AREA, now)
    assert (await scene.limiter.take("a", RATE)).allowed
    holding = scene.limiter.holding("a")
    assert holding is not None
    holding.tokens, holding.expires, holding.renew_at = 1, now + 1, now + 1
    assert scene.admission.may_admit(limited, AREA, now)
    assert holding.tokens == 1
    holding.expires = now
    assert scene.admission.may_admit(limited, AREA, now)
    holding.denied_until = now + 1
    assert not scene.admission.may_admit(limited, AREA, now)


async def test_a_quota_that_is_used_up_or_unknown_is_known_beforehand(scene: Scene) -> None:
    key = key_with(Terms(quota=Quota(2, "day", warn_at=1.0)))
    assert not scene.admission.may_admit(key, AREA, scene.usage.clock())
    await scene.primed(Quota(2, "day", warn_at=1.0))
    allowance = scene.admit(key)
    assert allowance is not None
    assert scene.admission.may_admit(key, AREA, scene.usage.clock())
    scene.admission.count_allowed(allowance, AREA, "answered")
    await scene.usage.quotas.prime("a")
    assert scene.admit(key) is None  # the last one carries a warning
    assert not scene.admission.may_admit(key, AREA, scene.usage.clock())
