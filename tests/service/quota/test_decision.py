"""What the headers say: whole numbers that a caller can keep to."""

import pytest

from service.base.terms import Rate
from service.quota.gcra import Decision, allowed, refused


@pytest.mark.parametrize(
    ("rate", "remaining", "reset"),
    [
        (Rate(500, 1, 100), 99, 1),
        (Rate(10, 1, 100), 100, 10),
        (Rate(10, 60, 10), 9, 54),
        (Rate(10, 60, 10), 1, 6),
        (Rate(10, 60, 10), 0, 6),
        (Rate(1, 3600, 1), 0, 3600),
    ],
)
def test_the_remaining_requests_may_be_spread_over_the_reset_time(rate: Rate, remaining: int, reset: int) -> None:
    assert allowed(rate, remaining) == Decision(True, remaining, reset, 0)


@pytest.mark.parametrize(("seconds", "reported"), [(0.0, 1), (0.001, 1), (1.0, 1), (1.001, 2), (360.0, 360)])
def test_a_refusal_says_a_whole_second_that_is_late_enough(seconds: float, reported: int) -> None:
    assert refused(seconds) == Decision(False, 0, reported, reported)
