"""Leases of tokens from the buckets in Redis: one script call each; concurrent calls are sent together.

The buckets (``r:{<key id>}``) are in the cache's Redis, with a time to live: losing one only refills a burst, and the
Redis of the keys would write each of them to its disk.
"""

import asyncio
from functools import partial

import msgspec

from service.base.terms import Rate
from service.quota.gcra import pace_of
from service.redis.opening import CacheStore
from service.redis.pipelined import UnexpectedReplyError
from service.redis.script import Script

SCRIPT = Script("service.quota", "lease.lua")


class Lease(msgspec.Struct, frozen=True):
    """The tokens that Redis granted to one worker for one key."""

    granted: int  # tokens
    remaining: int  # whole tokens left in the bucket
    retry_after: int  # microseconds until there are `least`; 0 if all `wanted` were granted


def lease_name(key_id: str) -> str:
    return f"r:{{{key_id}}}"


class LeaseStore:
    """The leases of one worker, as long as it lives."""

    def __init__(self, store: CacheStore) -> None:
        self._store = store
        self._calls = 0

    def lease(self, key_id: str, rate: Rate, wanted: int, least: int) -> asyncio.Future[Lease]:
        """Leases up to `wanted` (at least 1) tokens of the key, or none if there are fewer than `least`.

        A cancelled caller does not cancel it. The future raises StoreUnavailable if Redis is unreachable, refuses, or
        sends an unexpected reply.
        """
        pace = pace_of(rate)
        self._calls = number = self._calls + 1
        words = (1, lease_name(key_id), pace.requests, pace.micros, pace.burst, wanted, least, number)
        return SCRIPT.send(self._store, words, partial(_lease_of, rate, wanted, least, number))


def _lease_of(rate: Rate, wanted: int, least: int, number: int, reply: object) -> Lease:
    """Raises UnexpectedReplyError if the reply is damaged, or answers another call."""
    if not isinstance(reply, list) or len(reply) != 5 or any(type(one) is not int for one in reply):
        raise UnexpectedReplyError.of(reply)
    granted, remaining, retry_after, _, replied_to = reply
    pace = pace_of(rate)
    in_range = (granted == 0 or least <= granted <= wanted) and 0 <= remaining <= pace.burst
    lacks = remaining < least and 0 < retry_after <= pace.cost(least)
    waits = retry_after == 0 if granted == wanted else lacks
    if not (in_range and waits and replied_to == number):
        raise UnexpectedReplyError.of(reply)
    return Lease(granted, remaining, retry_after)
