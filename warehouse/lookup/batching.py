"""Which look-ups wait, and which of them share the next statement. Used from one event loop."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from warehouse.lookup.lookup_statement import LookupStatement
from warehouse.schema.errors import LookupFailure

# Measured: from some 100 scattered keys on, a statement reads every row group, and costs the same for 512: some 15 ms.
# Larger ones would gain little and hold up others.
MAX_KEYS_PER_STATEMENT = 512


class PendingLookup(msgspec.Struct, eq=False):
    """One look-up that waits for its `answer`: entries, or rows if it has no `keys`.

    `deadline` is by `time.monotonic`. `parameters` are those of a look-up that is not by key. An `alone` look-up shares
    no statement: the one that it shared failed.
    """

    lookup: LookupStatement
    answer: asyncio.Future[list[Any]]
    deadline: float
    keys: tuple[str, ...]
    parameters: tuple[Any, ...] = ()
    alone: bool = False

    @property
    def over(self) -> bool:
        """Whether it is answered or past its deadline, or its caller has gone."""
        return self.answer.done()

    def give(self, found: list[Any]) -> None:
        if not self.answer.done():
            self.answer.set_result(found)

    def fail(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    def pick(self, entries: Mapping[str, bytes]) -> None:
        """Gives the entries of its keys, in their order; fails if one is missing."""
        found = [entries[key] for key in self.keys if key in entries]
        if len(found) == len(self.keys):
            self.give(found)
        else:
            self.fail(LookupFailure(f"{len(self.keys)} entries asked for, {len(found)} found"))


class LookupQueue:
    """The look-ups of one Engine that wait for a statement.

    First come, first served: the oldest is always taken next, and none overtakes another of the same statement.
    """

    def __init__(self) -> None:
        self._requests: OrderedDict[PendingLookup, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def may_grow(self) -> bool:
        """Whether others can share the statement of the oldest request. At least one must wait."""
        oldest = next(iter(self._requests))
        return bool(oldest.keys) and not oldest.alone

    def add(self, request: PendingLookup) -> None:
        self._requests[request] = None

    def discard(self, request: PendingLookup) -> None:
        self._requests.pop(request, None)

    def put_back(self, requests: Iterable[PendingLookup]) -> None:
        """Puts them in front of all others, in this order."""
        for request in reversed(list(requests)):
            self._requests[request] = None
            self._requests.move_to_end(request, last=False)

    def take(self) -> list[PendingLookup]:
        """Takes the requests of one statement: the oldest, and those that can share it. At least one must wait."""
        oldest = next(iter(self._requests))
        taken = self._sharing(oldest) if self.may_grow else [oldest]
        for request in taken:
            del self._requests[request]
        return taken

    def take_all(self) -> list[PendingLookup]:
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
    """Text and parameters of the statement for requests that were taken together; each key is in it once."""
    first = requests[0]
    if not first.keys:
        return first.lookup.text, first.parameters
    return first.lookup.by_keys(sorted({key for request in requests for key in request.keys}))


def distribute(requests: Sequence[PendingLookup], rows: list[tuple[Any, ...]]) -> None:
    """Gives each request its part of what their statement found."""
    if not requests[0].keys:
        requests[0].give(rows)
        return
    entries = dict(rows)
    for request in requests:
        request.pick(entries)


def singly(requests: Iterable[PendingLookup]) -> list[PendingLookup]:
    """Those that still wait, each to be asked again in a statement of its own."""
    again = [request for request in requests if not request.over]
    for request in again:
        request.alone = True
    return again
