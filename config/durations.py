"""Durations as people write them: ``90s``, ``30m``, ``12h``, ``31d``, ``2w``."""

import re
from datetime import timedelta

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"([0-9]{1,6})([smhdw])")


def parse_duration(text: str) -> timedelta | None:
    """Returns the duration in `text`; None if it is malformed."""
    match = _DURATION.fullmatch(text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None


def in_words(seconds: float) -> str:
    """Formats `seconds` roughly, for people: "40 minutes", "31 days", "2.5 days"."""
    lengths = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))
    unit, length = next((each for each in lengths if seconds >= each[1]), lengths[-1])
    number = round(seconds / length, 1)
    return f"{number:g} {unit}{'' if number == 1 else 's'}"
