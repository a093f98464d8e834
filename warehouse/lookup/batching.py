"""The queue of look-ups, and the choice of those that share the next statement. Used from one event loop."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from warehouse.lookup.query import LookupStatement
from warehouse.schema.errors import LookupFailure

# Measured: a statement for 512 keys takes about 9 ms. Where it reads the file, one for about 100 scattered keys reads
# every row group, and one for 512 costs no more: about 15 ms. Larger statements would gain little and delay others.
MAX_KEYS_PER_STATEMENT = 512


# Called with the start of a statement and its duration (monotonic seconds), the number of look-ups that shared it, and
# the class of its error, or None.
OnStatement = Callable[[float, float, int, str | None], None]


class PendingLookup(msgspec.Struct, eq=False):
    """One look-up with a waiting caller. The engine creates it, and drops it when it is answered."""

    lookup: LookupStatement
    answer: asyncio.Future[list[Any]]  # the entries of `keys`, or without keys the rows
    deadline: float  # by time.monotonic()
    keys: tuple[str, ...]
    parameters: tuple[Any, ...] = ()  # for a look-up without keys
    alone: bool = False  # must not share a statement
    on_statement: OnStatement | None = None  # called after each statement for it

    @property
    def over(self) -> bool:
        """Whether it was answered, has passed its deadline, or lost its caller."""
        return self.answer.done()

    def give(self, found: list[Any]) -> None:
        """Answers it, unless it is over."""
        if not self.answer.done():
            self.answer.set_result(found)

    def fail(self, error: BaseException) -> None:
        """Fails it, unless it is over."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def pick(self, entries: Mapping[str, bytes]) -> None:
        """Answers it with the entries of its keys, in their order. Fails it if any is missing."""
        found = [entries[key] for key in self.keys if key in entries]
        if len(found) == len(self.keys):
            self.give(found)
        else:
            self.fail(LookupFailure(f"found {len(found)} of {len(self.keys)} entries"))


class LookupQueue:
    """The look-ups that wait for a statement. Owned by one engine.

    First in, first out: the next statement always includes the oldest look-up, and no look-up overtakes another with
    the same SQL.
    """

    def __init__(self) -> None:
        self._requests: OrderedDict[PendingLookup, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def may_grow(self) -> bool:
        """Whether later look-ups could share the statement of the oldest. At least one must be waiting."""
        oldest = next(iter(self._requests))
        return bool(oldest.keys) and not oldest.alone

    def add(self, request: PendingLookup) -> None:
        """Adds a look-up at the end."""
        self._requests[request] = None

    def discard(self, request: PendingLookup) -> None:
        """Removes a look-up, if it is still waiting."""
        self._requests.pop(request, None)

    def put_back(self, requests: Iterable[PendingLookup]) -> None:
        """Puts look-ups before all others, in their order."""
        for request in reversed(list(requests)):
            self._requests[request] = None
            self._requests.move_to_end(request, last=False)

    def take(self) -> list[PendingLookup]:
        """Removes and returns the look-ups of the next statement: the oldest, and those that can share it.

        At least one must be waiting.
        """
        oldest = next(iter(self._requests))
        taken = self._sharing(oldest) if self.may_grow else [oldest]
        for request in taken:
            del self._requests[request]
        return taken

    def take_all(self) -> list[PendingLookup]:
        """Removes and returns all look-ups, oldest first."""
        taken = list(self._requests)
        self._requests.clear()
        return taken

    def _sharing(self, oldest: PendingLookup) -> list[PendingLookup]:
        taken: list[PendingLookup] = []
        room = max(MAX_KEYS_PER_STATEMENT, len(oldest.keys))
        for request in self._requests:
            if request.lookup is not oldest.lookup or not request.keys or request.alone:
                continue
            room -= len(request.keys)
            if room < 0:
                break
            taken.append(request)
        return taken


def shared_statement(requests: Sequence[PendingLookup]) -> tuple[str, tuple[Any, ...]]:
    """Returns text and parameters of the statement for look-ups that share it. Each key is in it once."""
    first = requests[0]
    if not first.keys:
        return first.lookup.text, first.parameters
    return first.lookup.by_keys(sorted({key for request in requests for key in request.keys}))


def distribute(requests: Sequence[PendingLookup], rows: list[tuple[Any, ...]]) -> None:
    """Answers each look-up with its part of the rows from their statement."""
    if not requests[0].keys:
        requests[0].give(rows)
        return
    entries = dict(rows)
    for request in requests:
        request.pick(entries)


def singly(requests: Iterable[PendingLookup]) -> list[PendingLookup]:
    """Returns those look-ups of a failed statement that must be retried, each alone."""
    again = [request for request in requests if not request.over]
    for request in again:
        request.alone = True
    return again
