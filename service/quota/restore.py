"""Imports usage from a backup into a store that may have counted since.

The counts of a key and month are a sum over generations: the store's own, and those that were imported. Importing takes
the higher figure of each part (restore.lua). So an import is right into a store that was emptied and counts anew (the
two add up), and into the store that the backup is of (nothing is counted twice or lost). Imports can come in any order,
any number of times, and one that was interrupted is simply run again. One case stays unknown: what a store counted
after it was started from an older copy of its files. Until the import, that is taken for what the backup has.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from service.base.batched import batched
from service.quota.backup import UsageRecord, foreseen_generation, generation_of
from service.quota.batch import BILLABLE
from service.quota.names import (
    GENERATION,
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
    """What an import of usage did, or would do.

    `added`: requests of every outcome. `damaged`: records of the store that nothing could be added to.
    """

    added: int = 0
    damaged: list[DamagedUsage] = []


async def restore_usage(
    store: RedisStore, begun: datetime | None, records: Iterable[UsageRecord], *, dry_run: bool
) -> RestoredUsage:
    """Adds what the store lacks; a dry run writes nothing. `begun` is as in `generation_of`.

    Raises:
        StoreUnavailable: if the store does not answer; what was added by then stays.
    """
    done = RestoredUsage()
    generation: str | None = None
    for some in batched(records, _RECORDS_AT_ONCE):
        if generation is None:
            generation = await (foreseen_generation if dry_run else generation_of)(store, begun)
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
    names = (counts_name(key_id, month), imported_name(key_id, month), sequences_name(key_id), GENERATION)
    workers = "\n".join(f"{worker} {last.number} {last.at}" for worker, last in record.workers.items())
    writes = "0" if dry_run else "1"
    arguments = (generation, record.generation, writes, SEQUENCE_SECONDS, "\n".join(lines), MONTH_TOTAL, workers)
    return [len(names), *names, *arguments]


async def _run(client: Redis, calls: list[list[str | int]]) -> list[Any]:
    return raise_errors(await _SCRIPT.evaluate(client, calls), but=_REFUSED)
