"""Months and days as people type them."""

from datetime import UTC, date, datetime

import click
import pytest

from service.cli.usage.periods import Days, day, days_of, month, month_with

OCTOBER = Days(date(2026, 10, 1), date(2026, 10, 31))


def test_a_wrong_month_or_day_gets_an_example() -> None:
    for text in ("2026-13", "2026-1", "2026", "october", "2026-10-01", "", "0000-01"):
        with pytest.raises(click.BadParameter, match="write 2026-10"):
            month(text)
    for text in ("2026-02-30", "20261005", "2026-10", "today", "2026-10-05T00:00"):
        with pytest.raises(click.BadParameter, match="write 2026-10-05"):
            day(text)


def test_a_month_has_all_its_days() -> None:
    assert month_with(month("2026-10")) == OCTOBER
    assert month_with(month("2028-02")).last == date(2028, 2, 29)
    assert month_with(date(2026, 12, 24)) == Days(date(2026, 12, 1), date(2026, 12, 31))


def test_the_last_month_there_is_is_a_month() -> None:
    december = Days(date(9999, 12, 1), date(9999, 12, 31))
    assert month_with(month("9999-12")) == december
    assert days_of(None, None, date(9999, 12, 5), None) == Days(date(9999, 12, 5), december.last)


def test_the_days_that_options_mean() -> None:
    fifth, last = date(2026, 10, 5), date(2026, 11, 3)
    assert days_of(OCTOBER.first, None, None, None) == OCTOBER
    assert days_of(None, fifth, None, None) == Days(fifth, fifth)
    assert days_of(None, None, fifth, last) == Days(fifth, last)
    assert days_of(None, None, fifth, None) == Days(fifth, OCTOBER.last)
    assert days_of(None, None, None, fifth) == Days(OCTOBER.first, fifth)
    assert days_of(None, None, None, None) == month_with(datetime.now(UTC).date())


def test_options_that_exclude_each_other_are_wrong_usage() -> None:
    fifth = date(2026, 10, 5)
    for whole, one, first in ((OCTOBER.first, fifth, None), (OCTOBER.first, None, fifth), (None, fifth, fifth)):
        with pytest.raises(click.UsageError, match="exclude each other"):
            days_of(whole, one, first, None)
    with pytest.raises(click.UsageError, match="is after --to"):
        days_of(None, None, fifth, date(2026, 10, 4))
    with pytest.raises(click.UsageError, match="ten years"):
        days_of(None, None, date(1, 1, 1), fifth)
