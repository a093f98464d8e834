"""Times as people type them: ``90d``, ``12h``, ``2027-01-31``."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

NEVER = datetime.max.replace(tzinfo=UTC)

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"([0-9]{1,6})([smhdw])")


# Far from the end of what a calendar can say.
_LONGEST = timedelta(days=36_500)


class Span(click.ParamType[timedelta]):
    """How long: ``7d``, ``12h``, ``0s``."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        span = value if isinstance(value, timedelta) else _span(str(value))
        if span is None:
            self.fail(f"{value!r} is no span of time: give 7d, 12h or 0s", param, ctx)
        if span > _LONGEST:
            self.fail(f"{value!r} is longer than a hundred years", param, ctx)
        return span


class FutureTime(click.ParamType[datetime]):
    """A span from now, or a date (its first moment, UTC); what is past is refused. `or_never` allows NEVER."""

    name = "time"

    def __init__(self, *, or_never: bool = False) -> None:
        self._or_never = or_never

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if self._or_never and value == "never":
            return NEVER
        time = _time(value, 1)
        if time is None:
            never = " or never" if self._or_never else ""
            self.fail(f"{value!r} is no time: give 90d, 12h or 2027-01-31{never}", param, ctx)
        if time == NEVER:  # which would be taken for the word
            self.fail(f"{value!r} is later than any key can end", param, ctx)
        if time <= datetime.now(UTC):
            self.fail(f"{value!r} is past", param, ctx)
        return time


class PastTime(click.ParamType[datetime]):
    """A span before now, or a date (its first moment, UTC)."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        time = _time(value, -1)
        if time is None:
            self.fail(f"{value!r} is no time: give 90d, 12h or 2026-01-31", param, ctx)
        return time


def _time(value: Any, direction: int) -> datetime | None:
    if isinstance(value, datetime):
        return value
    try:
        span = _span(str(value))
        if span is not None:
            return datetime.now(UTC).replace(microsecond=0) + direction * span
        time = datetime.fromisoformat(str(value))
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _span(text: str) -> timedelta | None:
    match = _SPAN.fullmatch(text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None
