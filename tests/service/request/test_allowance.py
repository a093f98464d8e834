"""What a key passes with is kept, and what was told of its limits is told again while it is true."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from service.base.terms import Quota, Rate, Terms
from service.keys.record import ApiKey
from service.quota.rates import RateLimiter
from service.request.admit import Admission
from service.request.allowance import Allowance
from service.request.request import Request
from service.request.response import Response
from service.request.targets import Route
from tests.support.leasing import FakeLeases
from tests.support.pipeline import key_with
from tests.support.usage import UsageWorker, double

RATE = Rate(500, 1, 100)
QUOTA = Quota(5_000_000, "month")
AREA = "forecast"


def of_quota(allowance: Allowance) -> tuple[int, int]:
    found = re.search(rb'"quota";r=(\d+);t=(\d+)', allowance.tail)
    assert found is not None
    return int(found[1]), int(found[2])


class Scene:
    """One worker's admission, over doubles; time is the test's."""

    def __init__(self, usage: UsageWorker) -> None:
        self.usage = usage
        self.limiter = RateLimiter(FakeLeases(usage.clock), lambda: 1, usage.clock)
        self.admission = Admission(
            frozenset({AREA, "projects"}), self.limiter, usage.quotas, usage.counters, usage.clock, usage.clock
        )

    def request(self, key: ApiKey, area: str = AREA) -> Request:
        return Request(0.0, b"", key=key, area=area, route=Route(area=area))

    def admit(self, key: ApiKey, area: str = AREA) -> Allowance | None:
        """What the key passes with; None if it is refused, or has to wait."""
        request = self.request(key, area)
        outcome = self.admission.admit(request)
        if outcome is not None and not isinstance(outcome, Response):
            outcome.close()
        return request.allowance

    def passes(self, key: ApiKey, area: str = AREA) -> Allowance:
        allowance = self.admit(key, area)
        assert allowance is not None
        return allowance

    async def passes_in_the_end(self, key: ApiKey, area: str = AREA) -> Allowance:
        """Though the worker's grant is spent, so that it asks the store."""
        request = self.request(key, area)
        outcome = self.admission.admit(request)
        if outcome is not None and not isinstance(outcome, Response):
            await outcome
        self.admission.end(request)
        assert request.allowance is not None
        return request.allowance

    def count(self, allowance: Allowance, outcome: str = "answered", area: str = AREA) -> None:
        request = self.request(allowance.key, area)
        request.allowance = allowance
        self.admission.count(request, 200, outcome)

    async def primed(self, quota: Quota) -> ApiKey:
        assert self.usage.quotas.check("a", quota, self.usage.clock()) is None
        await self.usage.quotas.prime("a")
        return key_with(Terms(quota=quota))


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    client = double()
    yield Scene(UsageWorker(client, tmp_path))
    await client.aclose()


@pytest.mark.parametrize("requests", [900, 100_000])
async def test_the_header_says_hardly_less_of_a_quota_than_is_left(scene: Scene, requests: int) -> None:
    key = await scene.primed(Quota(requests, "month"))
    for used in range(500):
        area = AREA if used % 7 else "projects"
        allowance = await scene.passes_in_the_end(key, area)
        assert 0 <= requests - used - 1 - of_quota(allowance)[0] <= requests // 1000
        if used % 50 == 49:
            scene.usage.quotas.check("a", key.terms.quota, scene.usage.clock())  # type: ignore[arg-type]
            scene.usage.counters.count("a", AREA, "answered")
        else:
            scene.count(allowance)


async def test_unchanged_headers_are_not_written_again(scene: Scene) -> None:
    key = await scene.primed(QUOTA)
    first = scene.passes(key)
    assert scene.admit(key) is first
    lines = first.tail
    scene.admit(key)
    assert first.tail is lines


async def test_a_written_header_does_not_outlive_its_second(scene: Scene) -> None:
    key = await scene.primed(QUOTA)
    allowance = scene.passes(key)
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
async def test_the_answer_that_reaches_the_level_of_a_warning_says_so(scene: Scene, quota: Quota, passed: int) -> None:
    key = await scene.primed(quota)
    for _ in range(passed):
        allowance = await scene.passes_in_the_end(key)
        assert b"x-quota-warning" not in allowance.tail
        scene.count(allowance)
    last = await scene.passes_in_the_end(key)
    assert b"x-quota-warning: %d of %d used" % (passed + 1, quota.requests) in last.tail


@pytest.mark.parametrize("warn_at", [0.0002, 0.0015, 0.01])
async def test_the_remaining_quota_without_a_warning_needs_none(scene: Scene, warn_at: float) -> None:
    quota = Quota(1_000_000, "month", warn_at=warn_at)
    key = await scene.primed(quota)
    for _ in range(500):
        allowance = scene.admit(key)
        if allowance is None or b"x-quota-warning" in allowance.tail:
            break
        for tail in (allowance.tail, allowance.unbilled):
            (left,) = re.findall(rb'"quota";r=(\d+);', tail)
            assert quota.requests - int(left) < quota.requests * warn_at
        scene.count(allowance)


async def test_terms_that_changed_hold_from_the_next_request(scene: Scene) -> None:
    assert scene.admit(key_with(Terms(areas=(AREA,)))) is not None
    assert scene.admit(key_with(Terms(areas=("projects",)))) is None
    assert scene.passes(key_with(Terms())).tail == b"\r\n\r\n"


async def test_a_tally_counts_for_its_day_and_until_it_is_stored(scene: Scene) -> None:
    key = key_with(Terms())
    counters, clock = scene.usage.counters, scene.usage.clock
    today = int(clock.now // 86_400)

    def count() -> None:
        scene.count(scene.passes(key))

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
    key, clock = key_with(Terms()), scene.usage.clock
    clock.now += 3_600 - clock.now % 3_600 - 0.3
    for _ in range(3):
        scene.count(scene.passes(key))
        clock.now += 0.2
    hour = int(clock.now // 3_600)
    sent = scene.usage.counters.to_send_of("a")
    assert sent.hours == ((hour - 1, AREA, "answered", 2), (hour, AREA, "answered", 1))


async def test_a_refusal_is_kept_while_it_holds_and_counts_for_its_hour(scene: Scene) -> None:
    key, clock = key_with(Terms(areas=("projects",))), scene.usage.clock
    clock.now += 3_600 - clock.now % 3_600 - 0.3
    first = None
    for _ in range(3):
        request = scene.request(key)
        refusal = scene.admission.admit(request)
        assert isinstance(refusal, Response)
        assert first is None or refusal is first
        first = refusal
        scene.admission.count(request, refusal.status, refusal.outcome)
        clock.now += 0.2
    hour = int(clock.now // 3_600)
    sent = scene.usage.counters.to_send_of("a")
    assert sent.hours == ((hour - 1, AREA, "rejected", 2), (hour, AREA, "rejected", 1))
    assert scene.admit(key_with(Terms())) is not None


async def test_no_request_passes_before_a_token_was_leased(scene: Scene) -> None:
    key = key_with(Terms(rate=Rate(1000, 1, 2)))
    assert [scene.admit(key) for _ in range(3)] == [None] * 3
    assert (await scene.limiter.take("a", key.terms.rate)).allowed  # type: ignore[arg-type]
    scene.limiter.token_lease("a").tokens = 1  # type: ignore[union-attr]
    scene.limiter.token_lease("a").renew_at = scene.usage.clock() + 1  # type: ignore[union-attr]
    assert scene.admit(key) is not None
    assert scene.admit(key) is None


async def test_an_expired_token_lets_no_request_pass(scene: Scene) -> None:
    key = key_with(Terms(rate=Rate(1000, 1, 1000)))
    assert (await scene.limiter.take("a", key.terms.rate)).allowed  # type: ignore[arg-type]
    token_lease = scene.limiter.token_lease("a")
    assert token_lease is not None
    token_lease.tokens, token_lease.low = 500, 0
    token_lease.renew_at = scene.usage.clock() + 0.05
    assert scene.admit(key) is not None
    assert scene.admit(key) is not None
    scene.usage.clock.now += 0.05
    assert scene.admit(key) is None


async def test_allowances_of_many_keys_are_bounded(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.request.admit._MOST_ALLOWANCES", 3)
    for number in range(10):
        assert scene.admit(msgspec.structs.replace(key_with(Terms()), key_id=f"k{number}")) is not None
    assert len(scene.admission._allowances[AREA]) <= 3
