"""Times as people type them: ``90d``, ``12h``, ``2027-01-31``."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"([0-9]{1,6})([mhdw])")


class FutureTime(click.ParamType[datetime]):
    """A span from now, or a date (its first moment, UTC); what is past is refused."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        now = datetime.now(UTC).replace(microsecond=0)
        span = _SPAN.fullmatch(str(value))
        try:
            time = now + timedelta(**{_UNITS[span[2]]: int(span[1])}) if span else datetime.fromisoformat(value)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time: give 90d, 12h or 2027-01-31", param, ctx)
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        if time <= now:
            self.fail(f"{value!r} is past", param, ctx)
        return time
