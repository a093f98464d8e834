"""The names of usage in the key store. Days, and hours, are whole ones since 1970-01-01 in UTC.

The usage of all keys of a partner with a quota is also counted together, under `partner_id` in place of a key's id.

``u:{<key id>}:2026-11``  hash of counts: ``20:forecast:answered`` is how often on the 20th; ``20:*:billable`` is the
                          total of the day, ``*:*:billable`` that of the month, which quotas use
``u:{<key id>}:2026-11-20`` hash of counts by hour: ``14:forecast:answered`` is how often from 14:00 to 15:00. It is for
                          the key's owner: not in bills or backups, and the only record that expires (HOURS_KEPT_DAYS)
``i:{<key id>}:2026-11``  hash of imported counts: ``<generation>:20:forecast:answered`` (restore.py)
``s:{<key id>}``          hash: worker id -> last batch and its time
``s:held:{<key id>}``     hash: worker id -> requests that it may have admitted and not stored, and until when. Only of
                          keys with a quota, and for a few seconds (usage.lua)
``s:store``               hash: which store this is (usage.lua)
``u:used``                hash: key id -> minute since 1970 in which a request with the key last counted
``u:generation``          the generation of the store itself
"""

import re
from datetime import date
from functools import lru_cache
from hashlib import sha256
from urllib.parse import quote

import msgspec

COUNTS_PREFIX = "u:"
SEQUENCES_PREFIX = "s:"
IMPORTED_PREFIX = "i:"
GENERATION = "u:generation"
STORE = "s:store"
LAST_USED = "u:used"
DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600
MINUTES_IN_AN_HOUR = 60
HOURS_IN_A_DAY = 24
# Today and the seven days before. A record is kept for as long after its last count.
HOURS_KEPT_DAYS = 8
MONTH_TOTAL = "*:*:billable"

_EPOCH = date(1970, 1, 1).toordinal()
_LONGEST_QUOTED = 80  # characters; ids of usage have at most 100
_DAYS = 64  # whose names are cached: each flush makes them for every key
_COUNTS = re.compile(r"u:\{([^{}]+)\}:([0-9]{4}-(?:0[1-9]|1[0-2]))")
_IMPORTED = re.compile(r"([0-9a-f]+):([0-9]{2}:.+)")
_FIELD = re.compile(r"([0-9]{2}):([^:*]+):([^:*]+)")


class CountsName(msgspec.Struct, frozen=True):
    """The parts of a name of counts; `month` is as in ``2026-11``, which sorts as time does."""

    key_id: str
    month: str


class Field(msgspec.Struct, frozen=True):
    """The parts of a field of counts. `number` is the day of the month, or the hour of the day."""

    number: int
    area: str
    outcome: str


@lru_cache(_DAYS)
def date_of(day: int) -> date:
    return date.fromordinal(_EPOCH + day)


def day_of(day: date) -> int:
    return day.toordinal() - _EPOCH


@lru_cache(_DAYS)
def month_of(day: date) -> str:
    return f"{day:%Y-%m}"


def counts_name(key_id: str, month: str) -> str:
    return f"{COUNTS_PREFIX}{{{key_id}}}:{month}"


def hours_name(key_id: str, day: date) -> str:
    return f"{COUNTS_PREFIX}{{{key_id}}}:{day.isoformat()}"


@lru_cache(1024)
def partner_id(name: str) -> str:
    """Returns the id that the usage of all keys of a partner is counted under. No key's id has a colon."""
    quoted = quote(name, safe="")
    return f"partner:{quoted if len(quoted) <= _LONGEST_QUOTED else sha256(name.encode()).hexdigest()}"


def imported_name(key_id: str, month: str) -> str:
    return f"{IMPORTED_PREFIX}{{{key_id}}}:{month}"


def sequences_name(key_id: str) -> str:
    return f"{SEQUENCES_PREFIX}{{{key_id}}}"


def holds_name(key_id: str) -> str:
    return f"{SEQUENCES_PREFIX}held:{{{key_id}}}"


def field_name(day: date, area: str, outcome: str) -> str:
    return f"{day.day:02}:{area}:{outcome}"


def hour_field(hour: int, area: str, outcome: str) -> str:
    return f"{hour % HOURS_IN_A_DAY:02}:{area}:{outcome}"


@lru_cache(_DAYS)
def day_total(day: date) -> str:
    return field_name(day, "*", "billable")


def total_of(field: Field) -> str:
    return f"{field.number:02}:*:billable"


def parse_imported(name: str) -> tuple[str, str] | None:
    """Returns the generation, and the field of the counts."""
    match = _IMPORTED.fullmatch(name)
    return (match[1], match[2]) if match else None


def parse_counts_name(name: str) -> CountsName | None:
    match = _COUNTS.fullmatch(name)
    return CountsName(match[1], match[2]) if match else None


def parse_field(name: str) -> Field | None:
    """Returns the field; None for totals, and for any other text."""
    match = _FIELD.fullmatch(name)
    return Field(int(match[1]), match[2], match[3]) if match else None
