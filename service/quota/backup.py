"""Reads usage for a backup.

A store's counts are the sum of its own and of those imported from other stores. Each store has a generation of its own.
A backup keeps the parts apart, each with its generation (see restore.py).
"""

import secrets
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from service.base.batched import batched
from service.quota.names import (
    GENERATION,
    LAST_USED,
    counts_name,
    imported_name,
    parse_field,
    parse_imported,
    sequences_name,
)
from service.quota.report import WHOLE, DamagedUsage, counts_names
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable

# Few enough that the server serves other clients in between.
_RECORDS_AT_ONCE = 50
# A month has about ten fields a day: any line of a backup stays far below a megabyte.
_FIELDS_IN_A_RECORD = 2000
_LONGEST_FIELD = 100  # characters

Generation = Annotated[str, Meta(pattern="^[0-9a-f]{1,32}$")]
Word = Annotated[str, Meta(pattern=r"^[^\s{}]{1,100}$")]
Count = Annotated[int, Meta(ge=0, lt=10**15)]
FieldName = Annotated[str, Meta(pattern=r"^[0-9]{2}:[^:*\s]+:[^:*\s]+$", max_length=_LONGEST_FIELD)]


class Sequence(msgspec.Struct, frozen=True, array_like=True):
    """The last batch of one worker: its number, and when the store added it, in seconds since 1970."""

    number: Count
    at: Count


class UsageRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The counts of `generation` for one key in one month: one line of a backup.

    `figures` are counts by field. `workers` has the last batch of each worker in them. Both are read atomically, so
    that a batch resent after a restore is neither lost nor counted twice. `last_used` is a minute since 1970.
    """

    key_id: Word
    month: Annotated[str, Meta(pattern="^[0-9]{4}-(0[1-9]|1[0-2])$")]
    generation: Generation
    figures: dict[FieldName, Count] = {}
    workers: dict[Word, Sequence] = {}
    last_used: Count | None = None


async def generation_of(store: RedisStore, begun: datetime | None) -> str:
    """Returns the store's generation, which is created if there is none. Raises StoreUnavailable.

    `begun` is the time that identifies a key store. A new generation is derived from it, so that an older copy of the
    same store has the same one. A store that has lost its keys counts as a new store.
    """
    made = _made(begun)
    await store.call(lambda client: client.set(GENERATION, made, nx=True))
    noted = await _noted(store)
    if noted is None:
        raise StoreUnavailable("the key store was emptied meanwhile")
    return noted


async def predict_generation(store: RedisStore, begun: datetime | None) -> str:
    """Returns what `generation_of` would return, without writing. Raises StoreUnavailable."""
    return await _noted(store) or _made(begun)


def _made(begun: datetime | None) -> str:
    return secrets.token_hex(8) if begun is None else f"{int(begun.timestamp() * 1_000_000):x}"


async def _noted(store: RedisStore) -> str | None:
    """Returns the generation in the store. Raises StoreUnavailable, also if it is damaged."""
    raw: Any = await store.call(lambda client: client.get(GENERATION))
    try:
        return None if raw is None else msgspec.convert(raw.decode(), Generation)
    except (UnicodeDecodeError, msgspec.ValidationError):
        raise StoreUnavailable(f"the key store holds a damaged record: {GENERATION}") from None


class UsageDump:
    """The usage of every key, read once for one export; afterwards `damaged` lists unreadable records."""

    def __init__(self, store: RedisStore, begun: datetime | None) -> None:
        self.damaged: list[DamagedUsage] = []
        self._store = store
        self._begun = begun

    async def __aiter__(self) -> AsyncIterator[UsageRecord]:
        """Yields the records; uses some 150 bytes of memory for each key. Raises StoreUnavailable."""
        generation = await generation_of(self._store, self._begun)
        months: dict[str, int] = {}
        keys: dict[str, int] = {}  # the months of each, as bits: names come in no order
        async for name in counts_names(self._store):
            bit = months.setdefault(name.month, len(months))
            keys[name.key_id] = keys.get(name.key_id, 0) | 1 << bit
        wanted = ((key, [month for month, bit in months.items() if bits >> bit & 1]) for key, bits in keys.items())
        for some in batched(wanted, max(1, _RECORDS_AT_ONCE // max(1, len(months)))):
            replies = iter(await self._store.call(lambda client, these=some: _snapshot(client, these)))  # type: ignore[misc]
            for key_id, its_months in some:
                for record in self._records(key_id, its_months, replies, generation):
                    yield record

    def _records(self, key_id: str, months: list[str], replies: Iterator[Any], own: str) -> Iterator[UsageRecord]:
        workers, last_used = _sequences(next(replies)), next(replies)
        if isinstance(last_used, bytes) and WHOLE.fullmatch(last_used):
            yield UsageRecord(key_id=key_id, month=months[0], generation=own, last_used=int(last_used))
        for month in months:
            counts = self._figures(key_id, counts_name(key_id, month), next(replies))
            imported = self._figures(key_id, imported_name(key_id, month), next(replies))
            parts: dict[str, dict[str, int]] = {own: {field: n for (_, field), n in counts.items()}}
            for (generation, field), n in imported.items():
                parts.setdefault(generation, {})[field] = n
                parts[own][field] = max(0, parts[own].get(field, 0) - n)
            for some in _parts(workers):  # before any figures, so that nothing is counted twice meanwhile
                yield UsageRecord(key_id=key_id, month=month, generation=own, workers=some)
            workers = {}
            for generation, figures in parts.items():
                for part in _parts({field: n for field, n in figures.items() if n}):
                    yield UsageRecord(key_id=key_id, month=month, generation=generation, figures=part)

    def _figures(self, key_id: str, name: str, reply: Any) -> dict[tuple[str, str], int]:
        """Yields counts by generation (empty in a record of own counts) and field."""
        found: dict[tuple[str, str], int] = {}
        if isinstance(reply, ResponseError) or not isinstance(reply, dict):
            self.damaged.append(DamagedUsage(key_id, f"{name}: {reply}"))
            return found
        for raw, value in reply.items():
            text = raw.decode("utf-8", "replace")
            generation, field = parse_imported(text) or ("", text)
            if parse_field(field) is None:
                continue  # totals: they follow from the rest
            if WHOLE.fullmatch(value) and len(field) <= _LONGEST_FIELD and not any(map(str.isspace, field)):
                found[generation, field] = int(value)
            else:
                self.damaged.append(DamagedUsage(key_id, f"{name} {text[:_LONGEST_FIELD]}: holds {value[:40]!r}"))
        return found


async def _snapshot(client: Redis, keys: list[tuple[str, list[str]]]) -> list[Any]:
    """Reads atomically: a sequence newer than its counts would lose a batch, an older one would double it."""
    async with client.pipeline(transaction=True) as pipeline:
        for key_id, months in keys:
            pipeline.hgetall(sequences_name(key_id))
            pipeline.hget(LAST_USED, key_id)
            for month in months:
                pipeline.hgetall(counts_name(key_id, month))
                pipeline.hgetall(imported_name(key_id, month))
        return await pipeline.execute(raise_on_error=False)


def _sequences(reply: Any) -> dict[str, Sequence]:
    found = {}
    for worker, text in reply.items() if isinstance(reply, dict) else ():
        number, _, at = text.partition(b":")
        if WHOLE.fullmatch(number) and WHOLE.fullmatch(at):
            found[worker.decode("utf-8", "replace")] = Sequence(int(number), int(at))
    return found


def _parts(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return map(dict, batched(whole.items(), _FIELDS_IN_A_RECORD))
