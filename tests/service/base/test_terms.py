"""Rates and quotas as people write them, and the periods that quotas are counted in."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from service.base.terms import Quota, Rate, parse_quota, parse_rate, period_of


def test_a_rate_is_read_in_seconds_minutes_and_hours_and_printed_so() -> None:
    assert parse_rate("500/s", 100) == Rate(500, 1, 100)
    for text, rate in (("500/s", Rate(500, 1, 500)), ("30/min", Rate(30, 60, 1)), ("7200/h", Rate(7200, 3600, 2))):
        assert (parse_rate(text), str(rate)) == (rate, text)


@pytest.mark.parametrize("text", ["", "500", "0/s", "-5/s", "5/day", "5.5/s", "5/ s", "9999999999/s"])
def test_what_is_no_rate_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="500/s"):
        parse_rate(text)


def test_a_burst_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        parse_rate("5/s", 0)


def test_a_quota_is_read_by_day_and_month() -> None:
    assert parse_quota("5000000/month") == Quota(5_000_000, "month")
    assert parse_quota("10/day", 0.5) == Quota(10, "day", 0.5)


@pytest.mark.parametrize(
    ("requests", "share", "used"), [(10, 0.5, 5), (5, 0.8, 4), (100, 0.07, 7), (9, 0.5, 5), (1, 0.01, 1)]
)
def test_a_warning_begins_with_the_first_answer_that_reaches_the_share(requests: int, share: float, used: int) -> None:
    assert Quota(requests, "day", share).warn_from == used


@pytest.mark.parametrize("text", ["", "5", "0/day", "5/year", "-1/month", "5/s"])
def test_what_is_no_quota_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="5000000/month"):
        parse_quota(text)


def test_a_month_ends_where_the_next_begins() -> None:
    december = datetime(2026, 12, 31, 23, 59, tzinfo=UTC)
    assert period_of("month", december) == (datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))


def test_days_are_those_of_utc() -> None:
    evening = datetime(2026, 11, 20, 20, tzinfo=timezone(timedelta(hours=-8)))
    assert period_of("day", evening)[0] == datetime(2026, 11, 21, tzinfo=UTC)
