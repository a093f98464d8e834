"""Months and days as people type them, and the range of UTC days that the options select."""

import re
from calendar import monthrange
from datetime import UTC, date, datetime
from typing import Any

import click
import msgspec

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_MOST_DAYS = 3660
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Days(msgspec.Struct, frozen=True):
    """A range of UTC days."""

    first: date
    last: date  # included


class Month(click.ParamType[Days]):
    """The type of an option that takes ``2026-10``."""

    name = "month"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Days:
        if isinstance(value, Days):
            return value
        try:
            if not _MONTH.fullmatch(str(value)):
                raise ValueError
            return month_with(date.fromisoformat(f"{value}-01"))
        except ValueError:
            self.fail(f"{value!r} is not a month; write 2026-10", param, ctx)


class Day(click.ParamType[date]):
    """The type of an option that takes ``2026-10-05``."""

    name = "day"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        if isinstance(value, date):
            return value
        try:
            if not _DAY.fullmatch(str(value)):
                raise ValueError
            return date.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a day; write 2026-10-05", param, ctx)


def month_with(day: date) -> Days:
    return Days(day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1]))


def days_of(month: Days | None, day: date | None, first: date | None, last: date | None) -> Days:
    """Returns the days that the options select; without options, the current month.

    `first` alone selects the days to the end of its month, `last` alone those from the start of its month.

    Raises:
        click.UsageError: if the options contradict each other.
    """
    if sum((month is not None, day is not None, first is not None or last is not None)) > 1:
        raise click.UsageError("--month, --day and --from/--to exclude each other")
    if month is not None:
        return month
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
