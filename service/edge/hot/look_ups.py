"""The entry of a hot request that is not near: the request waits for the shared cache, and then for the warehouse."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import monotonic

from service.cache.entry import CacheEntry
from service.cache.read_through import ReadThrough
from service.cache.shared import SharedLookup
from service.edge.admission.admission import Admission, Allowance
from service.edge.hot.admitting import Admitting
from service.edge.hot.callers import KnownCallers
from service.edge.hot.errors import ErrorAnswers
from service.edge.hot.heads import HeaderValues
from service.edge.hot.plain import plain_line
from service.edge.hot.remembered import Caller, FoundOut, Target
from service.edge.hot.targets import Targets
from service.edge.hot.waiting import FOR_ROUTER, WAITING, HeldRequest, Holder, HotOutcome
from service.edge.hot.wire import Headers
from service.edge.hot.writing import AnswerWriter
from service.edge.requests.watch import RequestWatch
from service.http.reading import ReadError, Reading

# Reads a raw query string, as `Answers.read`.
ReadQuery = Callable[[bytes], Reading | ReadError | None]


class LookUps:
    """Looks up what is not near. One per worker; its `HotAnswers` owns it.

    `look_up` looks up in the warehouse what `readers`, by path, have read.
    """

    def __init__(
        self,
        cache: ReadThrough,
        look_up: Callable[[Reading], Awaitable[bytes]],
        readers: Mapping[bytes, ReadQuery],
        watch: RequestWatch,
        targets: Targets,
        callers: KnownCallers,
        admission: Admission,
        admitting: Admitting,
        errors: ErrorAnswers,
        writer: AnswerWriter,
    ) -> None:
        self._cache = cache
        self._look_up = look_up
        self._readers = readers
        self._watch = watch
        self._targets = targets
        self._callers = callers
        self._admission = admission
        self._admitting = admitting
        self._errors = errors
        self._writer = writer

    def for_entry(
        self,
        head: bytes,
        target: Target,
        caller: Caller,
        asked: HeaderValues,
        dates: Headers,
        now: float,
        began: float,
        holder: Holder | None,
        read: Reading | None = None,
    ) -> HotOutcome:
        """Asks for the entry of a target that is not near. `read`: what the request means, if it was read just now."""
        key = self._callers.good_key(caller, asked, now)
        if key is None:
            return self._admitting.stranger(head, target, caller, asked, dates, began, holder)
        denied = self._errors.denied(head, target, caller, asked, key, dates, now, began)
        if denied is not None:
            return denied
        shared = self._cache.shared
        if holder is None or shared.is_away or not self._admission.may_admit(key, target.area, now):
            return FOR_ROUTER
        waiting = HeldRequest(head, target, caller, asked, dates, began, holder, now, read=read)
        generation = self._cache.near.generation

        def found(lookup: SharedLookup) -> None:
            holder.told(lambda: self._found(waiting, holder, lookup, generation))

        shared.ask(target.key, found)
        return WAITING

    def _found(self, waiting: HeldRequest, holder: Holder, lookup: SharedLookup, generation: int) -> HotOutcome:
        """Builds the answer from a hit in the shared cache, or asks the warehouse. If the shared cache could not be
        asked, or a look-up may be traced, the router path looks again, and counts that look-up instead of this one."""
        target, entry, now = waiting.target, lookup.entry, monotonic()
        waiting.found = now
        if target.release != self._targets.release:
            return FOR_ROUTER
        finish: Callable[[Allowance], HotOutcome]
        if entry is not None:
            finish = partial(self._writer.held, waiting, "shared", entry)
        else:
            waiting.read = read = waiting.read or self._read_again(waiting)
            if read is None or lookup.outcome == "unavailable" or self._watch.tracer is not None:
                waiting.caller.found_out = FoundOut(waiting.head, read=read)
                return FOR_ROUTER
            finish = partial(self._ask_warehouse, waiting, holder, read)
        key = self._callers.good_key(waiting.caller, waiting.asked, now)
        if key is None:
            return FOR_ROUTER

        def passed(allowance: Allowance) -> HotOutcome:
            self._cache.looked_up(target.key, lookup, generation, now - waiting.since)
            return finish(allowance)

        allowance = self._admission.admit(key, target.area, now)
        return passed(allowance) if allowance is not None else self._admitting.for_token(waiting, key, now, passed)

    def _read_again(self, waiting: HeldRequest) -> Reading | None:
        """What a request in known words means, which a cache had an entry for before. None if only the router reads it,
        as where its path is not spelt as usual."""
        line = plain_line(waiting.head, waiting.head.find(b"\r\n"))
        read_query = self._readers.get(line[2]) if line is not None else None
        read = read_query(line[3] or b"") if line is not None and read_query is not None else None
        return read if isinstance(read, Reading) and read.key == waiting.target.key else None

    def _ask_warehouse(self, waiting: HeldRequest, holder: Holder, read: Reading, allowance: Allowance) -> HotOutcome:
        def filled(result: CacheEntry | BaseException) -> None:
            holder.told(lambda: self._filled(waiting, allowance, result, holder.dates))

        self._cache.fill(waiting.target.key, partial(self._look_up, read), filled)
        return WAITING

    def _filled(
        self, waiting: HeldRequest, allowance: Allowance, result: CacheEntry | BaseException, dates: Headers
    ) -> HotOutcome:
        """Builds the answer. The router path tells of a look-up that failed, and makes one again that was given up."""
        if isinstance(result, BaseException):
            failed = (result, result.__traceback__) if isinstance(result, Exception) else None
            waiting.caller.found_out = FoundOut(waiting.head, None, waiting.read, allowance, failed)
            return FOR_ROUTER
        waiting.dates = dates
        return self._writer.held(waiting, "warehouse", result, allowance)
