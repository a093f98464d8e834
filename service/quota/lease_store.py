"""Leases of tokens from the buckets in Redis: one script call each; those of one turn of the loop travel together.

The buckets (``r:{<key id>}``) are in the cache's Redis, with a time to live: losing one only refills a burst, and the
Redis of the keys would write each of them to its disk.
"""

import asyncio
from typing import Any

import msgspec

from config.once_per_turn import OncePerTurn
from service.base.batched import batched
from service.base.tasks import hold_until_done
from service.base.terms import Rate
from service.quota.gcra import pace_of
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameStore
from service.redis.script import Script

SCRIPT = Script("service.quota", "lease.lua")
# Calls of one command, so that Redis soon serves others.
_MOST_CALLS = 64
# Of a reply that makes no sense, in the log.
_SHOWN_CHARACTERS = 100


class Lease(msgspec.Struct, frozen=True):
    """What Redis granted to one worker for one key."""

    granted: int  # tokens
    remaining: int  # whole tokens left in the bucket
    retry_after: int  # microseconds until there are as many as were needed; 0 if all that was wanted was granted


class _Call(msgspec.Struct):
    words: tuple[str | int, ...]
    rate: Rate
    wanted: int
    least: int
    lease: "asyncio.Future[Lease]"


def lease_name(key_id: str) -> str:
    return f"r:{{{key_id}}}"


class LeaseStore:
    """Leases for one worker, as long as it lives. Commands run in tasks of their own, so no caller cancels one."""

    def __init__(self, store: NameStore) -> None:
        self._store = store
        self._waiting: list[_Call] = []
        self._turn = OncePerTurn(self._send)
        self._commands: set[asyncio.Task[None]] = set()

    async def lease(self, key_id: str, rate: Rate, wanted: int, least: int = 1) -> Lease:
        """Up to `wanted` (at least 1) tokens of the key; none if there are fewer than `least`.

        Raises:
            StoreUnavailable: if Redis is away or refuses, or if its answer makes no sense.
        """
        pace = pace_of(rate)
        words = (1, lease_name(key_id), pace.requests, pace.micros, pace.burst, wanted, least)
        call = _Call(words, rate, wanted, least, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        self._turn.soon()
        return await call.lease

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        for calls in batched(waiting, _MOST_CALLS):
            hold_until_done(asyncio.create_task(self._run(calls)), self._commands)

    async def _run(self, calls: list[_Call]) -> None:
        try:
            replies = await SCRIPT.run_by_name(self._store, [call.words for call in calls])
        except BaseException as error:  # nobody may be left waiting, whatever went wrong
            for call in calls:
                if not call.lease.done():
                    call.lease.set_exception(StoreUnavailable(str(error)))
            if isinstance(error, StoreUnavailable):
                return
            raise
        for call, reply in zip(calls, replies, strict=True):
            if call.lease.done():
                continue
            lease = _lease_of(reply, call)
            if lease is None:
                why = (
                    reply
                    if isinstance(reply, Exception)
                    else f"a lease was answered with {repr(reply)[:_SHOWN_CHARACTERS]}"
                )
                call.lease.set_exception(StoreUnavailable(f"{self._store.name}: {why}"))
            else:
                call.lease.set_result(lease)


def _lease_of(reply: Any, call: _Call) -> Lease | None:
    """None if the script cannot have replied so: the reply is damaged, or belongs to another call."""
    if not isinstance(reply, list) or len(reply) != 4 or any(type(number) is not int for number in reply):
        return None
    granted, remaining, retry_after, _ = reply
    pace = pace_of(call.rate)
    in_range = (granted == 0 or call.least <= granted <= call.wanted) and 0 <= remaining <= pace.burst
    lacks = remaining < call.least and 0 < retry_after <= pace.cost(call.least)
    waits = retry_after == 0 if granted == call.wanted else lacks
    return Lease(granted, remaining, retry_after) if in_range and waits else None
