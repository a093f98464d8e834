"""How usage lies in the key store: one hash of counts per key and month, one of flush sequences per key.

``u:{<key id>}:2026-11``: ``20:forecast:answered`` -> how often on the 20th. The area ``*`` holds what quotas ask for:
``20:*:billable`` of the day, ``*:*:billable`` of the month. ``s:{<key id>}``: worker id -> last batch and its time.
``i:{<key id>}:2026-11``: how much of the counts was imported, ``<generation>:20:forecast:answered``; ``u:generation``:
which generation the store itself is (restore.py).
Nothing expires. Days are whole days since 1970-01-01 in UTC.
"""

import re
from datetime import date

import msgspec

COUNTS_PREFIX = "u:"
SEQUENCES_PREFIX = "s:"
IMPORTED_PREFIX = "i:"
GENERATION = "u:generation"
DAY_SECONDS = 86_400
MONTH_TOTAL = "*:*:billable"

_EPOCH = date(1970, 1, 1).toordinal()
_COUNTS = re.compile(r"u:\{([^{}]+)\}:([0-9]{4}-(?:0[1-9]|1[0-2]))")
_IMPORTED = re.compile(r"([0-9a-f]+):([0-9]{2}:.+)")
_FIELD = re.compile(r"([0-9]{2}):([^:*]+):([^:*]+)")


class CountsName(msgspec.Struct, frozen=True):
    """`month` as in ``2026-11``, which sorts as time does."""

    key_id: str
    month: str


class Field(msgspec.Struct, frozen=True):
    day_of_month: int
    area: str
    outcome: str


def date_of(day: int) -> date:
    return date.fromordinal(_EPOCH + day)


def day_of(day: date) -> int:
    return day.toordinal() - _EPOCH


def month_of(day: date) -> str:
    return f"{day:%Y-%m}"


def counts_name(key_id: str, month: str) -> str:
    return f"{COUNTS_PREFIX}{{{key_id}}}:{month}"


def imported_name(key_id: str, month: str) -> str:
    return f"{IMPORTED_PREFIX}{{{key_id}}}:{month}"


def sequences_name(key_id: str) -> str:
    return f"{SEQUENCES_PREFIX}{{{key_id}}}"


def field_name(day: date, area: str, outcome: str) -> str:
    return f"{day.day:02}:{area}:{outcome}"


def day_total(day: date) -> str:
    return field_name(day, "*", "billable")


def total_of(field: Field) -> str:
    return f"{field.day_of_month:02}:*:billable"


def parse_imported(name: str) -> tuple[str, str] | None:
    """The generation, and the field of the counts."""
    match = _IMPORTED.fullmatch(name)
    return (match[1], match[2]) if match else None


def parse_counts_name(name: str) -> CountsName | None:
    match = _COUNTS.fullmatch(name)
    return CountsName(match[1], match[2]) if match else None


def parse_field(name: str) -> Field | None:
    """None for totals, and for what is no field of ours."""
    match = _FIELD.fullmatch(name)
    return Field(int(match[1]), match[2], match[3]) if match else None
