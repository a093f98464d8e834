"""What is left is told again as it was told while that is true: never more than there is, hardly less."""

import re

import pytest

from service.edge.metering import _Told
from service.http.ratelimit import limit_headers, limit_lines
from service.quota.decision import allowed
from service.quota.quotas import QuotaState
from service.terms import Quota, Rate, Terms

RATE = Rate(500, 1, 100)
QUOTA = Quota(5_000_000, "month")


def standing(remaining: int, resets_in: int = 86_400) -> QuotaState:
    return QuotaState(QUOTA.requests - remaining, remaining, resets_in, 30 * 86_400, exhausted=False, warning=False)


def left_of_quota(told: _Told) -> int:
    found = re.search(rb'"quota";r=(\d+)', told.lines)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("terms", [Terms(rate=RATE), Terms(quota=QUOTA), Terms(rate=RATE, quota=QUOTA), Terms()])
def test_lines_are_the_fields_as_they_travel(terms: Terms) -> None:
    given = (terms.rate, allowed(RATE, 7) if terms.rate else None, terms.quota, standing(900) if terms.quota else None)
    fields = limit_headers(*given)
    assert limit_lines(*given) == b"".join(b"%s: %s\r\n" % field for field in fields)


@pytest.mark.parametrize("remaining", [1, 999, 1000, 4_999_999])
def test_of_a_quota_at_most_a_thousandth_less_is_told_than_there_is(remaining: int) -> None:
    told = _Told(Terms(quota=QUOTA), None, standing(remaining))
    for used in range(remaining // 1000 + 1):
        assert told.holds(standing(remaining - used))
        assert 0 <= remaining - used - left_of_quota(told) <= remaining // 1000
    assert not told.holds(standing(remaining - remaining // 1000 - 1))


def test_what_was_told_does_not_outlive_its_seconds() -> None:
    """Nor the period: what is left of the next is another number."""
    told = _Told(Terms(quota=QUOTA), None, standing(5000, resets_in=100))
    assert told.holds(standing(5000, resets_in=99))
    assert not told.holds(standing(5000, resets_in=98))
    assert not told.holds(standing(5_000_000, resets_in=2_592_000))
