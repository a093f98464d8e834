"""The terms of an API key: the areas it opens, its rate and its quota.

A key without terms opens every area and has no limit.
"""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

QuotaPeriod = Literal["day", "month"]

_RATE = re.compile(r"([0-9]{1,9})/(s|min|h)")
_QUOTA = re.compile(r"([0-9]{1,15})/(day|month)")
_SECONDS = {"s": 1, "min": 60, "h": 3600}
_UNITS = {seconds: unit for unit, seconds in _SECONDS.items()}

# An area without figures: the usage of all keys of the partner. Only keys whose areas name it have it.
PARTNER_USAGE = "partner-usage"

# The largest count: Redis' scripts are exact up to 2^53.
MOST = 10**15
Positive = Annotated[int, Meta(ge=1, le=MOST)]


class Rate(msgspec.Struct, frozen=True):
    """At most `requests` per `seconds` (1, 60 or 3600) in the long run; `burst` at once after a rest."""

    requests: Positive
    seconds: Annotated[int, Meta(ge=1, le=86_400)]
    burst: Positive

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    def __str__(self) -> str:
        return f"{self.requests}/{_UNITS.get(self.seconds, f'{self.seconds}s')}"


class Quota(msgspec.Struct, frozen=True, omit_defaults=True):
    """At most `requests` billable answers per UTC day or month; from the share `warn_at` on, the partner is warned."""

    requests: Positive
    period: QuotaPeriod
    warn_at: Annotated[float, Meta(gt=0, le=1)] = 0.8

    @property
    def warn_from(self) -> int:
        """Used requests from which warnings are sent.

        Rounded first: 7 % of 100 are 7, though the product is a bit more.
        """
        return max(1, math.ceil(round(self.requests * self.warn_at, 6)))

    def __str__(self) -> str:
        return f"{self.requests}/{self.period}"


class Terms(msgspec.Struct, frozen=True, omit_defaults=True):
    """The entitlements of a key, stored in its record. `areas` is None if every area is open."""

    areas: tuple[str, ...] | None = None
    rate: Rate | None = None
    quota: Quota | None = None

    def over(self, others: "Terms") -> "Terms":
        """Returns these terms, and for each that is absent, that of the `others`."""
        areas = others.areas if self.areas is None else self.areas
        return Terms(areas, self.rate or others.rate, self.quota or others.quota)


def parse_rate(text: str, burst: int | None = None) -> Rate:
    """Parses `500/s`, `30/min` or `1000/h`. The default `burst` is the requests of one second, at least one.

    Raises:
        ValueError: with a correct spelling.
    """
    match = _RATE.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError("write a rate as 500/s, 30/min or 1000/h")
    requests, seconds = int(match[1]), _SECONDS[match[2]]
    if burst is not None and burst < 1:
        raise ValueError("a burst is at least 1 request")
    return Rate(requests, seconds, burst or max(1, requests // seconds))


def parse_quota(text: str, warn_at: float = 0.8) -> Quota:
    """Parses `5000000/month` or `100000/day`. Raises ValueError, with a correct spelling."""
    match = _QUOTA.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError("write a quota as 5000000/month or 100000/day")
    period: QuotaPeriod = "day" if match[2] == "day" else "month"
    return Quota(int(match[1]), period, warn_at)


def period_of(period: QuotaPeriod, now: datetime) -> tuple[datetime, datetime]:
    """Returns the start and end (exclusive) of the UTC day or month that contains `now`."""
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "day":
        return day, day + timedelta(days=1)
    first = day.replace(day=1)
    return first, (first + timedelta(days=32)).replace(day=1)
