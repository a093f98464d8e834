"""Imports usage from a backup into a store that may have counted since the backup.

The counts of a key and month are a sum over generations: the store's own, and those that were imported. Importing keeps
the higher figure of each part (restore.lua). So an import is correct for a store that was emptied and counts from
scratch (the two add up), and for the store of the backup (no count is doubled or lost). Imports are idempotent and can
come in any order; an interrupted one is simply run again. One case remains ambiguous: counts of a store that was
started from an older copy of its files. If they precede the import, they are mistaken for those of the backup.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from service.base.batched import batched
from service.quota.backup import UsageRecord, generation_of, predict_generation
from service.quota.batch import BILLABLE
from service.quota.names import (
    GENERATION,
    LAST_USED,
    MONTH_TOTAL,
    counts_name,
    imported_name,
    parse_field,
    sequences_name,
    total_of,
)
from service.quota.report import DamagedUsage
from service.quota.usage_store import SEQUENCE_SECONDS
from service.redis.client import RedisStore
from service.redis.refusals import WRONG_TYPE, raise_errors
from service.redis.script import Script

_RECORDS_AT_ONCE = 50
_SCRIPT = Script("service.quota", "restore.lua")
_REFUSED = ("DAMAGED", WRONG_TYPE)


class RestoredUsage(msgspec.Struct):
    """The result of an import of usage, or of a dry run.

    `added`: requests of every outcome. `damaged`: records of the store to which no counts could be added.
    """

    added: int = 0
    damaged: list[DamagedUsage] = []


async def restore_usage(
    store: RedisStore, begun: datetime | None, records: Iterable[UsageRecord], *, dry_run: bool
) -> RestoredUsage:
    """Adds the counts that the store lacks, except in a dry run. `begun` is as in `generation_of`.

    Raises:
        StoreUnavailable: if the store does not reply; counts added by then stay.
    """
    done = RestoredUsage()
    generation: str | None = None
    for some in batched(records, _RECORDS_AT_ONCE):
        if generation is None:
            generation = await (predict_generation if dry_run else generation_of)(store, begun)
        calls = [_arguments(record, generation, dry_run=dry_run) for record in some]
        replies = await store.call(lambda client, these=calls: _run(client, these))  # type: ignore[misc]
        for record, reply in zip(some, replies, strict=True):
            if isinstance(reply, ResponseError):
                done.damaged.append(DamagedUsage(record.key_id, str(reply)))
            else:
                done.added += int(reply)
    return done


def _arguments(record: UsageRecord, generation: str, *, dry_run: bool) -> list[str | int]:
    key_id, month = record.key_id, record.month
    lines = []
    for name, count in record.figures.items():
        field = parse_field(name)
        total = total_of(field) if field is not None and field.outcome in BILLABLE else "-"
        lines.append(f"{name} {count} {total}")
    names = (counts_name(key_id, month), imported_name(key_id, month), sequences_name(key_id), GENERATION, LAST_USED)
    workers = "\n".join(f"{worker} {last.number} {last.at}" for worker, last in record.workers.items())
    writes = "0" if dry_run else "1"
    arguments = (generation, record.generation, writes, SEQUENCE_SECONDS, "\n".join(lines), MONTH_TOTAL, workers)
    used = -1 if record.last_used is None else record.last_used
    return [len(names), *names, *arguments, key_id, used]


async def _run(client: Redis, calls: list[list[str | int]]) -> list[Any]:
    return raise_errors(await _SCRIPT.evaluate(client, calls), but=_REFUSED)
