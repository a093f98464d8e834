"""Formats figures of running instances: short, and never rounded to a better value."""

from datetime import UTC, datetime
from math import floor

from config.text import format_bytes, in_words

UNKNOWN = "-"
_DAY_SECONDS = 86_400
_HOUR_SECONDS = 3600
_MINUTE_SECONDS = 60


def percent(share: float | None) -> str:
    """Returns a share in percent; 100% and 0% are exact."""
    if share is None:
        return UNKNOWN
    if 0 < share < 0.0001:
        return "<0.01%"
    return f"{floor(share * 10_000) / 100:.2f}%" if 0 < share < 1 else f"{share:.0%}"


def rate(per_second: float) -> str:
    if 0 < per_second < 0.05:
        return "<0.1/s"
    return f"{per_second:,.0f}/s" if per_second >= 100 or not per_second else f"{per_second:,.1f}/s"


def latency(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.3g} ms"


def size(amount: int | None) -> str:
    if amount is None:
        return UNKNOWN
    return format_bytes(amount) if amount >= 1_000_000 else f"{amount / 1000:.3g} kB"


def span(seconds: float) -> str:
    """Returns the heading of a column: the time that its figures cover."""
    if seconds >= _HOUR_SECONDS - 1:
        return "1 h"
    minutes = round(seconds / _MINUTE_SECONDS)
    return f"{minutes} min" if round(seconds) >= _MINUTE_SECONDS - 1 else f"{round(seconds)} s"


def time_of_day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}"


def since(at: float, now: float) -> str:
    """Returns the start time `at`, and how long ago that is."""
    moment = datetime.fromtimestamp(at, UTC)
    shown = f"{moment:%Y-%m-%d %H:%M}" if now - at >= _DAY_SECONDS else f"{moment:%H:%M:%S}"
    return f"since {shown} UTC, {in_words(max(0.0, now - at))}"


def many(count: int, thing: str, things: str | None = None) -> str:
    """Returns `1 worker` or `2 workers`; `things` is an irregular plural of `thing`."""
    return f"{count:,} {thing if count == 1 else things or f'{thing}s'}"
