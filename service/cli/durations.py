"""Option types for durations and times: ``90d``, ``12h``, ``2027-01-31``."""

from datetime import UTC, datetime, timedelta
from typing import Any

import click

from config.text import parse_duration

NEVER = datetime.max.replace(tzinfo=UTC)

# Maximum, so that a date plus a duration does not overflow the calendar.
_LONGEST = timedelta(days=36_500)


class Duration(click.ParamType[timedelta]):
    """The type of an option that takes ``7d``, ``12h`` or ``0s``."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        duration = value if isinstance(value, timedelta) else parse_duration(str(value))
        if duration is None:
            self.fail(f"{value!r} is not a duration; give 7d, 12h or 0s", param, ctx)
        if duration > _LONGEST:
            self.fail(f"{value!r} is longer than a hundred years", param, ctx)
        return duration


class FutureTime(click.ParamType[datetime]):
    """The type of an option that takes a duration from now, or a date (its first moment, UTC). Rejects the past.

    With `or_never` it also takes ``never``, which becomes NEVER.
    """

    name = "time"

    def __init__(self, *, or_never: bool = False) -> None:
        self._or_never = or_never

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if self._or_never and value == "never":
            return NEVER
        time = _time(value, 1)
        if time is None:
            never = " or never" if self._or_never else ""
            self.fail(f"{value!r} is not a time; give 90d, 12h or 2027-01-31{never}", param, ctx)
        if time == NEVER:  # a date must not count as `never`
            self.fail(f"{value!r} is too late: no key can end then", param, ctx)
        if time <= datetime.now(UTC):
            self.fail(f"{value!r} is in the past", param, ctx)
        return time


class PastTime(click.ParamType[datetime]):
    """The type of an option that takes a duration back from now, or a date (its first moment, UTC)."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        time = _time(value, -1)
        if time is None:
            self.fail(f"{value!r} is not a time; give 90d, 12h or 2026-01-31", param, ctx)
        return time


def _time(value: Any, direction: int) -> datetime | None:
    if isinstance(value, datetime):
        return value
    try:
        duration = parse_duration(str(value))
        if duration is not None:
            return datetime.now(UTC).replace(microsecond=0) + direction * duration
        time = datetime.fromisoformat(str(value))
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
