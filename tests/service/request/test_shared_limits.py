"""Limits that all keys of a partner share: together, inside each key's own."""

from pathlib import Path

import msgspec
import pytest

from service.base.terms import Quota, Rate, Terms
from service.keys.record import ApiKey, Partner
from service.quota.names import partner_id
from service.quota.rates import RateLimiter
from service.request.admit import Admission
from service.request.request import Request
from service.request.response import Response
from service.request.targets import Route
from tests.support.leasing import FakeLeases
from tests.support.pipeline import key_with
from tests.support.usage import UsageWorker, double

AREA = "forecast"


def keys_of(number: int, shared: Terms, own: Terms = Terms()) -> list[ApiKey]:  # noqa: B008 - frozen
    """Keys of one partner, each with a copy of its record, as look-ups return them."""
    return [
        msgspec.structs.replace(
            key_with(own),
            key_id=f"key{at}",
            shared=Partner(name="acme", terms=msgspec.structs.replace(shared)),
        )
        for at in range(number)
    ]


class Scene:
    def __init__(self, usage: UsageWorker) -> None:
        self.usage = usage
        limiter = RateLimiter(FakeLeases(usage.clock), lambda: 1, usage.clock)
        self.admission = Admission(frozenset({AREA}), limiter, usage.quotas, usage.counters, usage.clock, usage.clock)

    async def ask(self, key: ApiKey) -> Response | None:
        """Returns the refusal, or None if it was answered and counted."""
        request = Request(0.0, b"", key=key, area=AREA, route=Route(area=AREA))
        outcome = self.admission.admit(request)
        refusal = outcome if outcome is None or isinstance(outcome, Response) else await outcome
        status, code = (200, "answered") if refusal is None else (refusal.status, refusal.outcome)
        self.admission.count(request, status, code)
        self.admission.end(request)
        self.tail = request.allowance.tail if request.allowance is not None and refusal is None else b""
        return refusal


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(UsageWorker(double(), tmp_path))


async def test_five_keys_share_exactly_the_quota_of_their_partner(scene: Scene) -> None:
    keys = keys_of(5, Terms(quota=Quota(5_000, "day")))
    refusals = [await scene.ask(keys[at % 5]) for at in range(6_000)]
    assert sum(refusal is None for refusal in refusals) == 5_000
    last = refusals[-1]
    assert last is not None
    assert last.outcome == "quota_exhausted"
    assert dict(last.headers)[b"ratelimit"].startswith(b'"partner-quota";r=0;t=')


async def test_a_refusal_by_one_limit_takes_nothing_from_the_quota_of_the_other(scene: Scene) -> None:
    first, second = keys_of(2, Terms(quota=Quota(10, "day")), Terms(quota=Quota(4, "day")))
    assert sum([await scene.ask(first) is None for _ in range(9)]) == 4
    assert sum([await scene.ask(second) is None for _ in range(9)]) == 4
    assert b'"quota";r=' not in scene.tail
    other = keys_of(3, Terms(quota=Quota(10, "day")))[2]
    assert sum([await scene.ask(other) is None for _ in range(9)]) == 2


async def test_a_key_above_its_own_rate_takes_no_tokens_of_its_partner(scene: Scene) -> None:
    first, second = keys_of(2, Terms(rate=Rate(1, 3600, 6)), Terms(rate=Rate(1, 3600, 3)))
    assert [await scene.ask(first) is None for _ in range(6)] == [True] * 3 + [False] * 3
    refusals = [await scene.ask(second) for _ in range(4)]
    assert [refusal is None for refusal in refusals] == [True] * 3 + [False]
    third = keys_of(3, Terms(rate=Rate(1, 3600, 6)))[2]
    refusal = await scene.ask(third)
    assert refusal is not None
    assert refusal.outcome == "rate_limited"
    assert dict(refusal.headers)[b"ratelimit"].startswith(b'"partner-rate";r=0;t=')


async def test_an_answer_shows_all_policies_and_is_counted_once_under_each(scene: Scene) -> None:
    key = keys_of(1, Terms(quota=Quota(1_000, "day")), Terms(rate=Rate(500, 1, 500), quota=Quota(9_000, "day")))[0]
    for _ in range(3):
        assert await scene.ask(key) is None
    for words in (b'"rate";q=500', b'"quota";q=9000', b'"partner-quota";q=1000', b'ratelimit: "rate";r='):
        assert words in scene.tail
    assert b'"partner-quota";r=99' in scene.tail
    batches = dict(scene.usage.counters.to_send())
    assert {name: sum(n for *_, n in batch.cells) for name, batch in batches.items()} == {
        "key0": 3,
        partner_id("acme"): 3,
    }


async def test_a_partner_without_a_quota_is_counted_only_by_key(scene: Scene) -> None:
    key = keys_of(1, Terms(rate=Rate(500, 1, 500)))[0]
    assert await scene.ask(key) is None
    assert set(dict(scene.usage.counters.to_send())) == {"key0"}


def test_any_name_of_a_partner_makes_an_id_that_records_of_usage_accept() -> None:
    names = ["acme", "Ä {b} c", "x" * 200, "名" * 200]
    ids = [partner_id(name) for name in names]
    assert len(set(ids)) == len(ids)
    for one in ids:
        assert len(one) <= 100
        assert not set(one) & set("{} ")
