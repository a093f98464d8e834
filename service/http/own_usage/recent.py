"""Usage bodies made a moment ago, and how often one key may have a new one made.

The report is not limited by a key's terms, so it must be cheap: an answer is used again for REUSE_SECONDS, a key reads
the store once at a time, and at most RECORDS_A_SECOND records (of a month, or of the hours of a day) in the long run.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import date
from math import ceil, inf

import msgspec

from service.keys.record import ApiKey
from service.redis.errors import StoreUnavailable
from service.request.errors import ApiError
from service.request.response import JSON, NO_STORE, Response

# With half a second until a worker's flush, and the time of a read, figures are younger than 5 s.
REUSE_SECONDS = 2.0
# In each worker: two years a second, or the current month every 40 ms.
RECORDS_A_SECOND = 26
BURST_RECORDS = 130
_MOST_WAITING = 16
_MOST_BYTES = 8 << 20
_MOST_KEYS = 10_000
_DETAIL = (
    "This is far more often than usage changes. Wait as long as Retry-After says; it costs nothing of your limits."
)

Make = Callable[[], Awaitable[bytes]]
# key, first day, last day
UsageReportKey = tuple[ApiKey, date, date]


class _Made(msgspec.Struct, frozen=True):
    body: bytes
    at: float


class _Asking(msgspec.Struct):
    """What a key has left of its burst, as of `at`; who waits; and what is read for it now."""

    left: float = BURST_RECORDS
    at: float = -inf
    waiting: int = 0
    reading: "asyncio.Task[bytes] | None" = None


class RecentUsage:
    """Of one worker. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._made: OrderedDict[UsageReportKey, _Made] = OrderedDict()
        self._bytes = 0
        self._keys: OrderedDict[str, _Asking] = OrderedDict()

    async def reply(self, wanted: UsageReportKey, records: int, make: Make) -> Response:
        """The answer with that `body`. Raises ApiError (429, 503)."""
        try:
            return Response.of(200, (JSON, NO_STORE), await self.body(wanted, records, make), "answered")
        except StoreUnavailable as error:
            raise ApiError("unavailable") from error

    async def body(self, wanted: UsageReportKey, records: int, make: Make) -> bytes:
        """The body that `make` makes from `records` records of the store, or made a moment ago.

        Raises:
            ApiError: 429 if the key asks for too much; and what `make` raises.
        """
        asking = self._asking(wanted[0].key_id)
        while (recent := self._recent(wanted)) is None:
            if asking.reading is None:
                return await self._read(asking, wanted, records, make)
            if asking.waiting >= _MOST_WAITING:
                raise _too_much(1.0)
            asking.waiting += 1
            try:
                await asyncio.wait((asking.reading,))  # one for all who want the same
            finally:
                asking.waiting -= 1
        return recent

    def _recent(self, wanted: UsageReportKey) -> bytes | None:
        made = self._made.get(wanted)
        return made.body if made is not None and self._clock() - made.at < REUSE_SECONDS else None

    async def _read(self, asking: _Asking, wanted: UsageReportKey, records: int, make: Make) -> bytes:
        self._spend(asking, records)

        async def read() -> bytes:
            at = self._clock()  # the figures are as old as the question
            body = await make()
            self._keep(wanted, _Made(body, at))
            return body

        asking.reading = task = asyncio.create_task(read(), name="read usage")
        task.add_done_callback(lambda done: _forget(asking, done))
        return await asyncio.shield(task)  # others wait for it too

    def _spend(self, asking: _Asking, records: int) -> None:
        now = self._clock()
        asking.left = min(BURST_RECORDS, asking.left + (now - asking.at) * RECORDS_A_SECOND)
        asking.at = now
        if asking.left < records:
            raise _too_much((records - asking.left) / RECORDS_A_SECOND)
        asking.left -= records

    def _keep(self, wanted: UsageReportKey, made: _Made) -> None:
        self._drop(wanted)
        self._made[wanted] = made
        self._bytes += len(made.body)
        while self._made:
            oldest, first = next(iter(self._made.items()))
            if self._bytes <= _MOST_BYTES and made.at - first.at < REUSE_SECONDS:
                break
            self._drop(oldest)

    def _drop(self, wanted: UsageReportKey) -> None:
        dropped = self._made.pop(wanted, None)
        if dropped is not None:
            self._bytes -= len(dropped.body)

    def _asking(self, key_id: str) -> _Asking:
        asking = self._keys.get(key_id)
        if asking is None:
            asking = self._keys[key_id] = _Asking()
            if len(self._keys) > _MOST_KEYS:
                self._keys.popitem(last=False)
        self._keys.move_to_end(key_id)
        return asking


def _forget(asking: _Asking, done: "asyncio.Task[bytes]") -> None:
    asking.reading = None
    if not done.cancelled():
        done.exception()  # whoever asked may have gone


def _too_much(seconds: float) -> ApiError:
    return ApiError("rate_limited", _DETAIL, headers=((b"retry-after", b"%d" % max(1, ceil(seconds))),))
