"""Reads usage back: of one key for its owner, of all keys for billing."""

import re
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, date, datetime
from typing import Any

import msgspec
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from service.base.batched import batched
from service.quota.batch import BILLABLE, OUTCOMES
from service.quota.names import (
    COUNTS_PREFIX,
    HOURS_IN_A_DAY,
    LAST_USED,
    CountsName,
    counts_name,
    date_of,
    day_of,
    hours_name,
    month_of,
    parse_counts_name,
    parse_field,
)
from service.redis.client import RedisStore
from service.redis.errors import StoreRefused, StoreUnavailable

_RECORDS_AT_ONCE = 50
_NAMES_AT_ONCE = 1000
# A count as the store holds it.
WHOLE = re.compile(rb"[0-9]{1,15}")

# From Python 3.14 on, `date` in an annotation would refer to the field `date` of the class.
Day = date


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one key, area and UTC day. `answered` excludes `answered_empty`, the answers without figures."""

    key_id: str
    area: str
    date: Day
    answered: int = 0
    answered_empty: int = 0
    not_modified: int = 0
    not_found: int = 0
    rejected: int = 0
    limited: int = 0

    @property
    def billable(self) -> int:
        total: int = sum(getattr(self, outcome) for outcome in BILLABLE)
        return total


class HourRow(UsageRow, frozen=True, kw_only=True):
    """The counts of one key, area and UTC hour of the date, from 0 to 23."""

    hour: int


class DamagedUsage(msgspec.Struct, frozen=True):
    """A damaged record of usage; its valid counts are still reported."""

    key_id: str
    detail: str


class UsageReport:
    """Reads usage from one store, for as long as that is open. Days are UTC days; `first` and `last` are included."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def whole(self, key_ids: Iterable[str], first: date, last: date) -> list[UsageRow]:
        """Returns the rows of `of_keys`. Raises StoreUnavailable, also if any figures are damaged."""
        rows: list[UsageRow] = []
        async for found in self.of_keys(key_ids, first, last):
            if isinstance(found, DamagedUsage):
                raise StoreUnavailable(f"usage of {found.key_id} is damaged: {found.detail}")
            rows.append(found)
        return rows

    async def hours_of_key(self, key_id: str, first: date, last: date) -> list[HourRow]:
        """Returns the rows by hour, then area, as far as hours are kept.

        Raises StoreUnavailable, also if one is damaged.
        """
        days = [date_of(day) for day in range(day_of(first), day_of(last) + 1)]
        rows: list[HourRow] = []
        names = [hours_name(key_id, day) for day in days]
        for day, name, record in zip(days, names, await self._records(names), strict=True):
            counts, wrong = _counts(name, record)
            wrong = wrong or next((f"{name} has hour {hour}" for hour, _ in counts if hour >= HOURS_IN_A_DAY), None)
            if wrong is not None:
                raise StoreUnavailable(f"usage of {key_id} is damaged: {wrong}")
            for (hour, area), found in sorted(counts.items()):
                rows.append(HourRow(key_id=key_id, area=area, date=day, hour=hour, **found))
        return rows

    async def of_keys(self, key_ids: Iterable[str], first: date, last: date) -> AsyncIterator[UsageRow | DamagedUsage]:
        """Yields the rows in the order of `key_ids`, for each key by date, then area. Raises StoreUnavailable."""
        months = _months(first, last)
        wanted = ((key_id, month) for key_id in key_ids for month in months)
        for some in batched(wanted, _RECORDS_AT_ONCE):
            records = await self._records([counts_name(key_id, month) for key_id, month in some])
            for (key_id, month), record in zip(some, records, strict=True):
                rows, damage = _rows(key_id, month, record)
                for row in rows:
                    if first <= row.date <= last:
                        yield row
                if damage is not None:
                    yield damage

    async def _records(self, names: list[str]) -> list[Any]:
        records: list[Any] = await self._store.call(lambda client: _read(client, names))
        if len(records) != len(names):
            raise StoreUnavailable(f"usage: {len(names)} records asked for, {len(records)} answered")
        return records

    async def listed(self, name: str) -> set[str]:
        """Returns the ids in a list of keys (`list_of_keys`). Raises StoreUnavailable."""
        [found] = await self._records([name])
        if not isinstance(found, dict):
            raise StoreUnavailable(f"{name} is damaged: {found}")
        return {field.decode("utf-8", "replace") for field in found}

    async def keys(self, first: date, last: date) -> set[str]:
        """Returns the ids of the keys with counts in those months. Raises StoreUnavailable."""
        months = set(_months(first, last))
        found: set[str] = set()
        async for name in counts_names(self._store):
            if name.month in months and ":" not in name.key_id:  # not a partner's
                found.add(name.key_id)
        return found


async def last_used(store: RedisStore) -> dict[str, datetime]:
    """Returns the minute in which each key was last used, as far as it is known. Raises StoreUnavailable."""
    try:
        found: Any = await store.call(lambda client: client.hgetall(LAST_USED))
    except StoreRefused:  # damaged
        return {}
    return {
        key_id.decode("utf-8", "replace"): datetime.fromtimestamp(int(minute) * 60, UTC)
        for key_id, minute in found.items()
        if re.fullmatch(rb"[0-9]{1,9}", minute)
    }


async def counts_names(store: RedisStore) -> AsyncIterator[CountsName]:
    """Yields the names of all records of counts, in no order, some perhaps twice. Raises StoreUnavailable."""
    async for names in store.scan(f"{COUNTS_PREFIX}{{*", _NAMES_AT_ONCE):
        for name in names:
            parts = parse_counts_name(name.decode("utf-8", "replace"))
            if parts is not None:
                yield parts


async def _read(client: Redis, names: list[str]) -> list[Any]:
    async with client.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.hgetall(name)
        return await pipeline.execute(raise_on_error=False)


def _rows(key_id: str, month: str, record: Any) -> tuple[list[UsageRow], DamagedUsage | None]:
    counts, wrong = _counts(counts_name(key_id, month), record)
    rows = []
    for (number, area), found in sorted(counts.items()):
        try:
            day = date.fromisoformat(f"{month}-{number:02}")
        except ValueError as error:
            wrong = f"{counts_name(key_id, month)} {number:02}: {error}"
            continue
        rows.append(UsageRow(key_id=key_id, area=area, date=day, **found))
    return rows, DamagedUsage(key_id, wrong) if wrong is not None else None


def _counts(name: str, record: Any) -> tuple[dict[tuple[int, str], dict[str, int]], str | None]:
    """Returns a record's counts by day or hour, and area; and its damaged part, if any."""
    if isinstance(record, ResponseError) or not isinstance(record, dict):
        return {}, f"{name}: {record}"
    counts: dict[tuple[int, str], dict[str, int]] = {}
    wrong = None
    for raw, value in record.items():
        text = raw.decode("utf-8", "replace")
        field = parse_field(text)
        if field is None or field.outcome not in OUTCOMES:
            continue  # totals, and counts of a later version
        if not WHOLE.fullmatch(value):
            wrong = f"{name} {text}: holds {value[:40]!r}"
            continue
        counts.setdefault((field.number, field.area), {})[field.outcome] = int(value)
    return counts, wrong


def _months(first: date, last: date) -> list[str]:
    """Returns the months as names of records have them."""
    numbers = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    return [month_of(date(number // 12, number % 12 + 1, 1)) for number in numbers]
