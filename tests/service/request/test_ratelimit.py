"""RateLimit fields: to the letter of the draft, and consistent with Retry-After."""

import re
from typing import Any

import pytest

from service.base.terms import Quota, Rate
from service.quota.gcra import Decision, allowed, refused
from service.quota.quota_state import QuotaState
from service.request.limits import OF_KEY, OF_PARTNER, Limit, Passed
from service.request.ratelimit import limit_headers, quota_exhausted_headers, rate_limited_headers
from service.request.response import Header

RATE = Rate(500, 1, 100)
QUOTA = Quota(5_000_000, "month")


def standing_of(remaining: int, resets_in: int, window: int) -> QuotaState:
    return QuotaState(0, remaining, resets_in, window, exhausted=False, warn_from=4_000_000)


STANDING = standing_of(4_999_999, 86_400, 30 * 86_400)
# RFC 9651: a List of Strings with Integer parameters, as it is serialised
ITEM = r'"[a-z-]+"(;[a-z]+=(0|[1-9][0-9]{0,14}))+'
FIELD = re.compile(rf"{ITEM}(, {ITEM})*")


BURST, LOWERED = Rate(10, 1, 100), Quota(10, "day")  # of ten seconds' worth; below what is left


def passed_with(
    rate: Rate | None,
    decision: Decision | None,
    quota: Quota | None = None,
    standing: QuotaState | None = None,
    prefix: bytes = OF_KEY,
) -> list[Passed]:
    return [Passed(Limit("a", prefix, rate, quota), decision, standing)]


def limits_shown(*given: Any) -> tuple[Header, ...]:
    return limit_headers(passed_with(*given))


@pytest.mark.parametrize(
    ("given", "policy", "limits"),
    [
        ((RATE, allowed(RATE, 99)), b'"rate";q=500;w=1', b'"rate";r=99;t=1'),
        (
            (RATE, allowed(RATE, 99), QUOTA, STANDING),  # the window of a month has the seconds of this one
            b'"rate";q=500;w=1, "quota";q=5000000;w=2592000',
            b'"rate";r=99;t=1, "quota";r=4999999;t=86400',
        ),
        ((None, None, QUOTA, STANDING), b'"quota";q=5000000;w=2592000', b'"quota";r=4999999;t=86400'),
        ((BURST, allowed(BURST, 100)), b'"rate";q=10;w=1', b'"rate";r=10;t=1'),
        ((None, None, LOWERED, standing_of(50, 99_999, 86_400)), b'"quota";q=10;w=86400', b'"quota";r=10;t=86400'),
        ((None, None, QUOTA, standing_of(-3, 0, 86_400)), b'"quota";q=5000000;w=86400', b'"quota";r=0;t=0'),
    ],
    ids=["rate", "both", "quota", "more than the window", "a lowered quota", "an overdrawn quota"],
)
def test_what_is_left_is_advertised(given: tuple[Any, ...], policy: bytes, limits: bytes) -> None:
    assert limits_shown(*given) == ((b"ratelimit-policy", policy), (b"ratelimit", limits))


def test_a_key_without_limits_has_no_fields() -> None:
    assert limits_shown(None, None) == ()


def test_what_is_not_known_is_not_claimed() -> None:
    assert limits_shown(RATE, allowed(RATE, 1), QUOTA, None) == limits_shown(RATE, allowed(RATE, 1))
    assert limits_shown(RATE, None, QUOTA, STANDING) == limits_shown(None, None, QUOTA, STANDING)


@pytest.mark.parametrize("standing", [None, STANDING], ids=["rate only", "rate and quota"])
def test_a_refusal_names_its_policy_and_when_to_come_back(standing: QuotaState | None) -> None:
    """The policies are the same as ever; only the one that refused is reported, so that Retry-After ends no earlier."""
    headers = dict(rate_limited_headers(passed_with(RATE, refused(1.2), QUOTA, standing), 0))
    assert headers[b"ratelimit"] == b'"rate";r=0;t=2'
    assert headers[b"retry-after"] == b"2"
    passed = limits_shown(RATE, Decision(True, 3, 1, 0), QUOTA, standing)
    assert headers[b"ratelimit-policy"] == dict(passed)[b"ratelimit-policy"]


def test_an_exhausted_quota_says_when_the_next_period_begins() -> None:
    headers = dict(quota_exhausted_headers(passed_with(RATE, None, QUOTA, standing_of(0, 0, 86_400)), 0))
    assert headers[b"ratelimit"] == b'"quota";r=0;t=1'
    assert headers[b"retry-after"] == b"1"


@pytest.mark.parametrize(
    "rate", [Rate(1, 3600, 1), Rate(999_999_999, 1, 10**9), RATE], ids=["slowest", "fastest", "usual"]
)
def test_every_field_is_a_structured_list(rate: Rate) -> None:
    quota = Quota(10**15 - 1, "month")
    for headers in (
        limits_shown(rate, allowed(rate, rate.burst), quota, standing_of(10**15 - 1, 1, 31 * 86_400)),
        rate_limited_headers(passed_with(rate, refused(3600), quota, STANDING), 0),
        quota_exhausted_headers(passed_with(None, None, quota, STANDING), 0),
    ):
        for name, value in headers:
            assert name == b"retry-after" or FIELD.fullmatch(value.decode())


SHARED = passed_with(
    Rate(900, 1, 900), allowed(Rate(900, 1, 900), 40), Quota(100, "day"), standing_of(60, 9, 86_400), OF_PARTNER
)


def test_of_two_limits_of_a_kind_all_policies_and_the_tighter_rest_are_shown() -> None:
    own = passed_with(RATE, allowed(RATE, 70), QUOTA, standing_of(8, 100, 86_400))
    fields = dict(limit_headers([*own, *SHARED]))
    assert fields[b"ratelimit-policy"].startswith(b'"rate";q=')
    for name in (b'"quota";q=', b'"partner-rate";q=900;w=1', b'"partner-quota";q=100;w=86400'):
        assert name in fields[b"ratelimit-policy"]
    assert fields[b"ratelimit"].startswith(b'"partner-rate";r=40;t=1, "quota";r=8;t=')
    assert FIELD.fullmatch(fields[b"ratelimit"].decode())


def test_a_refusal_by_a_shared_limit_names_it() -> None:
    own = passed_with(RATE, None, QUOTA, standing_of(8, 100, 86_400))
    exhausted = dict(quota_exhausted_headers([*own, *SHARED], 1))
    assert exhausted[b"ratelimit"] == b'"partner-quota";r=60;t=9'
    refusing = [Passed(SHARED[0].limit, refused(3), SHARED[0].standing)]
    limited = dict(rate_limited_headers([*own, *refusing], 1))
    assert (limited[b"ratelimit"], limited[b"retry-after"]) == (b'"partner-rate";r=0;t=3', b"3")
