"""Types of options that take durations and times: ``90d``, ``12h``, ``2027-01-31``."""

from datetime import UTC, datetime, timedelta

import click

from config.text import parse_duration

NEVER = datetime.max.replace(tzinfo=UTC)

# Maximum, so that a date plus a duration does not overflow the calendar.
_LONGEST = timedelta(days=36_500)


def duration(text: str) -> timedelta:
    """The type of an option that takes ``7d``, ``12h`` or ``0s``."""
    found = parse_duration(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a duration; give 7d, 12h or 0s")
    if found > _LONGEST:
        raise click.BadParameter(f"{text!r} is longer than a hundred years")
    return found


def future_time(text: str, examples: str = "90d, 12h or 2027-01-31") -> datetime:
    """The type of an option that takes a duration from now, or a date (its first moment, UTC). Rejects the past."""
    time = _time(text, 1)
    if time is None:
        raise click.BadParameter(f"{text!r} is not a time; give {examples}")
    if time == NEVER:  # a date must not count as `never`
        raise click.BadParameter(f"{text!r} is too late: no key can end then")
    if time <= datetime.now(UTC):
        raise click.BadParameter(f"{text!r} is in the past")
    return time


def future_time_or_never(text: str) -> datetime:
    """The same, and ``never``, which becomes NEVER."""
    return NEVER if text == "never" else future_time(text, "90d, 12h, 2027-01-31 or never")


def past_time(text: str) -> datetime:
    """The type of an option that takes a duration back from now, or a date (its first moment, UTC)."""
    time = _time(text, -1)
    if time is None:
        raise click.BadParameter(f"{text!r} is not a time; give 90d, 12h or 2026-01-31")
    return time


def _time(text: str, direction: int) -> datetime | None:
    try:
        found = parse_duration(text)
        if found is not None:
            return datetime.now(UTC).replace(microsecond=0) + direction * found
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
