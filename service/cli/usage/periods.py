"""Months and days as people type them, and the range of UTC days that the options select."""

from calendar import monthrange
from contextlib import suppress
from datetime import UTC, date, datetime

import click
import msgspec

_MOST_DAYS = 3660


class Days(msgspec.Struct, frozen=True):
    """A range of UTC days."""

    first: date
    last: date  # included


def month(text: str) -> date:
    """The type of an option that takes ``2026-10``; returns the first day."""
    return _date(text, "%Y-%m", "a month; write 2026-10")


def day(text: str) -> date:
    """The type of an option that takes ``2026-10-05``."""
    return _date(text, "%Y-%m-%d", "a day; write 2026-10-05")


def _date(text: str, form: str, what: str) -> date:
    with suppress(ValueError):
        found = datetime.strptime(text, form).replace(tzinfo=UTC).date()
        if f"{found:{form}}" == text:  # strptime also takes 2026-1
            return found
    raise click.BadParameter(f"{text!r} is not {what}")


def month_with(day: date) -> Days:
    return Days(day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1]))


def days_of(month: date | None, day: date | None, first: date | None, last: date | None) -> Days:
    """Returns the days that the options select; without options, the current month.

    `first` alone selects the days to the end of its month, `last` alone those from the start of its month.

    Raises:
        click.UsageError: if the options contradict each other.
    """
    if sum((month is not None, day is not None, first is not None or last is not None)) > 1:
        raise click.UsageError("--month, --day and --from/--to exclude each other")
    if month is not None:
        return month_with(month)
    if day is not None:
        return Days(day, day)
    if first is None and last is None:
        return month_with(datetime.now(UTC).date())
    first = first or month_with(last or date.min).first
    last = last or month_with(first).last
    if first > last:
        raise click.UsageError(f"--from {first} is after --to {last}")
    if (last - first).days > _MOST_DAYS:
        raise click.UsageError("the range is longer than ten years; split it")
    return Days(first, last)
