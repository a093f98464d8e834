"""Adds batches of usage to the key store exactly once, and returns the keys' totals (usage.lua)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

import msgspec

from service.base.batched import batched
from service.base.terms import Quota
from service.quota.batch import BILLABLE, NO_BATCH, UsageBatch
from service.quota.confirmed_batches import ConfirmedBatches
from service.quota.names import (
    DAY_SECONDS,
    HOURS_IN_A_DAY,
    HOURS_KEPT_DAYS,
    LAST_USED,
    MINUTES_IN_AN_HOUR,
    MONTH_TOTAL,
    STORE,
    counts_name,
    date_of,
    day_total,
    field_name,
    holds_name,
    hour_field,
    hours_name,
    month_of,
    sequences_name,
)
from service.redis.client import RedisStore
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.name_store import gathered
from service.redis.pipelined import UnexpectedReplyError
from service.redis.script import Script

# Batches in one command: about two milliseconds of the worker's time and of the server's, for which requests wait.
MOST_AT_ONCE = 64
# How long the store keeps the number of a worker's last batch; no batch is resent after that (spool.py). It uses some
# forty bytes for each worker and key: a month of them, with workers replaced every day, would outweigh the counts.
SEQUENCE_SECONDS = 14 * 86_400

# How long the store keeps a hold without a newer call of its worker, at least.
HOLD_SECONDS = 3

_SCRIPT = Script("service.quota", "usage.lua", loads=True)


class Claim(msgspec.Struct, frozen=True):
    """What one call says of a key's quota. The store holds `carried` requests for the worker, which it may have
    admitted and not stored, and as many of the `wanted` ones as are left. The next call replaces this hold.
    """

    quota: Quota
    carried: int
    wanted: int
    at: float  # when it was sent, in seconds since 1970


class Totals(msgspec.Struct, frozen=True):
    """The billable requests that all workers stored for one key, on `day` and in its month; and how many the `claim` of
    the call was granted.
    """

    day: int
    of_day: int
    of_month: int
    granted: int = 0
    claim: Claim | None = None


class Gap(msgspec.Struct, frozen=True):
    """The store lost confirmed batches, and added none. `last` numbers the worker's newest batch that it has."""

    last: int
    totals: Totals


class Refused(msgspec.Struct, frozen=True):
    """The store replied, but refused a batch, and is unchanged. `reason` is for operators."""

    reason: str


Reply = Totals | Gap | Refused
# Makes the claim of a call with this batch and day, just before it is sent; None without a quota.
Claims = Callable[[str, UsageBatch, int], Claim | None]


class UsageStore:
    """Usage in one Redis, written by one worker; it lives as long as the worker."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._calls = 0

    @property
    def lost_at(self) -> float:
        """When a call or a connection last failed, in monotonic seconds."""
        return self._store.lost_at

    async def add(
        self,
        worker_id: str,
        batches: Sequence[tuple[str, UsageBatch]],
        today: int,
        kept: ConfirmedBatches | None = None,
        claims: Claims = lambda *_: None,
    ) -> list[Reply]:
        """Adds each (key id, batch) that was not added before; returns the totals of `today` and its month, in order.

        At most MOST_AT_ONCE batches, one for each key: they are independent of each other. After a Gap no batch was
        added, because the store lost a batch of this worker that is `kept`.

        Raises:
            StoreUnavailable: it is unknown which were added. Sending the very same batches again is safe.
        """
        kept = kept or ConfirmedBatches()
        answers = [
            self._send(worker_id, key_id, batch, today, kept, claims(key_id, batch, today)) for key_id, batch in batches
        ]
        return [_reply_of(answer) for answer in await gathered(answers)]

    def _send(
        self, worker_id: str, key_id: str, batch: UsageBatch, today: int, kept: ConfirmedBatches, claim: Claim | None
    ) -> asyncio.Future[Reply]:
        self._calls = number = self._calls + 1
        words = _arguments(worker_id, key_id, batch, today, kept, number, claim)
        return _SCRIPT.send(self._store, words, partial(_read, today, kept, number, claim))

    async def add_all(
        self,
        worker_id: str,
        batches: Sequence[tuple[str, UsageBatch]],
        today: int,
        kept: ConfirmedBatches | None = None,
        claims: Claims = lambda *_: None,
    ) -> AsyncIterator[tuple[tuple[str, UsageBatch], Reply]]:
        """Calls `add` for any number of batches, in parts; yields each with its reply.

        Raises StoreUnavailable on the way.
        """
        for some in batched(batches, MOST_AT_ONCE):
            for pair, reply in zip(some, await self.add(worker_id, some, today, kept, claims), strict=True):
                yield pair, reply

    async def totals(self, key_id: str, today: int) -> Totals:
        """Returns the totals of `today` and its month. Raises StoreUnavailable, also if the record is damaged."""
        [reply] = await self.add("", [(key_id, NO_BATCH)], today)
        if isinstance(reply, Refused):
            raise StoreUnavailable(f"usage of {key_id}: {reply.reason}")
        return reply.totals if isinstance(reply, Gap) else reply


def _reply_of(answer: Reply | StoreUnavailable) -> Reply:
    if isinstance(answer, StoreRefused):
        return Refused(answer.text)
    if isinstance(answer, StoreUnavailable):
        raise answer
    return answer


def _arguments(
    worker_id: str,
    key_id: str,
    batch: UsageBatch,
    today: int,
    kept: ConfirmedBatches,
    call: int,
    claim: Claim | None,
) -> list[str | int]:
    """Returns the arguments after the script's name.

    `call` is its number, so that a reply shows which call it belongs to.
    """
    date = date_of(today)
    names = [sequences_name(key_id), counts_name(key_id, month_of(date)), STORE, LAST_USED]
    lines: list[str] = []
    for (name, field), amount in _sums(key_id, batch).items():
        if name not in names:
            names.append(name)
        lines.append(f"{names.index(name) + 1} {field} {amount}")
    hours: list[str] = []
    for hour, area, outcome, amount in batch.hours:
        name = hours_name(key_id, date_of(hour // HOURS_IN_A_DAY))
        if name not in names:
            names.append(name)
        hours.append(f"{names.index(name) + 1} {hour_field(hour, area, outcome)} {amount}")
    # each as one text: the client's time grows with the number of arguments
    texts = ("\n".join(lines), "\n".join(hours))
    asked = (worker_id, batch.number, SEQUENCE_SECONDS, day_total(date), MONTH_TOTAL)
    before = (kept.newest(key_id), kept.store)
    last_minute = (max((hour for hour, *_ in batch.hours), default=-1) + 1) * MINUTES_IN_AN_HOUR - 1
    rest = (HOURS_KEPT_DAYS * DAY_SECONDS, *before, key_id, last_minute, call)
    claimed: tuple[int, ...] = (0,)
    if claim is not None:
        names.append(holds_name(key_id))
        total = 4 if claim.quota.period == "day" else 5
        claimed = (len(names), claim.quota.requests, total, claim.carried, claim.wanted, HOLD_SECONDS)
    return [len(names), *names, *asked, *texts, *rest, *claimed]


def _sums(key_id: str, batch: UsageBatch) -> dict[tuple[str, str], int]:
    """Returns by record and field: the counts, and what they add to the totals."""
    sums: dict[tuple[str, str], int] = {}
    for day, area, outcome, amount in batch.cells:
        date = date_of(day)
        name = counts_name(key_id, month_of(date))
        totals = (day_total(date), MONTH_TOTAL) if outcome in BILLABLE else ()
        for field in (field_name(date, area, outcome), *totals):
            sums[name, field] = sums.get((name, field), 0) + amount
    return sums


def _read(today: int, kept: ConfirmedBatches, call: int, claim: Claim | None, reply: object) -> Reply:
    """Raises UnexpectedReplyError if it is not the reply to the call with this number."""
    match reply:
        case [0 | 1 | 2 as outcome, int(of_day), int(of_month), int(last), bytes(store), int(granted), int(made)] if (
            min(of_day, of_month, last, granted) >= 0 and made == call
        ):
            kept.note_store(store.decode("ascii", "backslashreplace"))
            if outcome == 2:
                return Gap(last, Totals(today, of_day, of_month))
            return Totals(today, of_day, of_month, granted, claim)
        case [*_, int(replied_to)] if replied_to == call:
            return Refused(f"unexpected reply: {str(reply)[:100]}")
        case _:
            raise UnexpectedReplyError.of(reply)
