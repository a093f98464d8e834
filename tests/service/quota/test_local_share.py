"""A worker's share while Redis is unreachable: of rate and burst, and what it owes afterwards."""

import pytest

from service.base.terms import Rate
from service.quota.token_lease import LocalShare

RATE = Rate(100, 1, 40)


def granted(share: LocalShare, rate: Rate, workers: int, began: float, seconds: float) -> int:
    """Asked 1,000 times a second."""
    steps = range(int(seconds * 1000))
    return sum(share.take(rate, workers, began + step / 1000).granted for step in steps)


def test_a_worker_grants_its_part_of_burst_and_rate() -> None:
    """Of four: 10 at once and 25 a second."""
    assert granted(LocalShare(), RATE, 4, 50.0, 4.0) == 10 + 99


def test_a_share_is_never_nothing() -> None:
    assert LocalShare().take(Rate(1, 3600, 1), 4, 0.0).granted == 1
    assert granted(LocalShare(), RATE, 0, 0.0, 0.1) == 40 + 9


def test_what_was_granted_is_owed_until_the_rate_has_refilled_it() -> None:
    share = LocalShare()
    assert share.debt(0.0) == 0
    for _ in range(10):
        share.take(RATE, 4, 0.0)
    assert share.debt(0.0) == 10
    assert share.debt(0.2) == 5
    assert share.debt(10.0) == 0


def test_what_was_paid_is_not_owed_again() -> None:
    share = LocalShare()
    for _ in range(10):
        share.take(RATE, 4, 0.0)
    share.set_remaining(40, 0.0)
    assert share.debt(0.0) == 0
    share.take(RATE, 4, 0.0)
    assert share.debt(0.0) == 1


@pytest.mark.parametrize(
    ("remaining", "passes"), [(40, 10), (20, 5), (9, 3), (0, 0)], ids=["full", "half", "a few", "none"]
)
def test_it_begins_with_its_part_of_what_was_left(remaining: int, passes: int) -> None:
    share = LocalShare()
    share.set_remaining(remaining, 0.0)
    assert sum(share.take(RATE, 4, 0.0).granted for _ in range(20)) == passes
    assert share.debt(0.0) == passes


def test_what_was_left_has_refilled_since() -> None:
    share = LocalShare()
    share.set_remaining(0, 0.0)
    assert sum(share.take(RATE, 4, 0.2).granted for _ in range(20)) == 5
    share.set_remaining(0, 0.0)
    assert sum(share.take(RATE, 4, 9.0).granted for _ in range(20)) == 10


def test_a_new_number_of_workers_holds_from_the_next_request() -> None:
    share = LocalShare()
    assert granted(share, RATE, 1, 0.0, 1.0) == pytest.approx(40 + 100, abs=1)
    assert granted(share, RATE, 4, 1.0, 1.0) == pytest.approx(25, abs=1)
