"""The direct answer: a hot GET is answered at the end of its head, without scope, task, router or handler.

The answer is the one that the router path would give; tests compare the two. So is an error that is known: one that
follows from the release, or one that the key is refused with for the moment. A HEAD is answered as a GET. A request in
new words is hot once it is known which entry answers it, and an entry that neither cache has is looked up in the
warehouse. Anything else is for the checks and the router path: other methods, a body, an unusual header, a key that is
not known, a query that is wrong or matches nothing, a look-up that fails or is traced.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from service.base.telemetry import ANSWERS, DIRECT, Telemetry
from service.cache.read_through import ReadThrough, Tier
from service.cache.sieve import Node
from service.edge.admission.admission import Admission, Allowance
from service.edge.hot import heads
from service.edge.hot.admitting import Admitting
from service.edge.hot.callers import KnownCallers
from service.edge.hot.errors import ErrorAnswers
from service.edge.hot.look_ups import LookUps, ReadQuery
from service.edge.hot.plain import plain_line
from service.edge.hot.remembered import Caller, ErrorTarget, FoundOut, Target
from service.edge.hot.targets import Targets
from service.edge.hot.waiting import FOR_ROUTER, HeldRequest, Holder, HotOutcome
from service.edge.hot.wire import Headers, HeadMaker
from service.edge.hot.writing import AnswerWriter
from service.edge.requests.watch import RequestWatch
from service.http.reading import Reading
from service.http.reply import Kept, KeptError
from service.keys.verifier import KeyVerifier


class HotAnswers:
    """Answers hot requests. One per worker, which owns it; every connection to its gate asks it.

    `makers` make the heads of entries, by tier; those of 200s in the near cache are kept there. `readers` read query
    strings, by path, and `look_up` looks up in the warehouse what was read. Calling a function costs as much as a
    look-up in a dict, so there are few calls on the way to a near answer.
    """

    def __init__(
        self,
        cache: ReadThrough,
        makers: Mapping[Tier, HeadMaker],
        verifier: KeyVerifier,
        admission: Admission,
        telemetry: Telemetry,
        watch: RequestWatch,
        errors: ErrorAnswers,
        readers: Mapping[bytes, ReadQuery],
        look_up: Callable[[Reading], Awaitable[bytes]],
    ) -> None:
        self._find_near = cache.near.find
        self._admission = admission
        self._telemetry = telemetry
        self.errors = errors
        self.fields = heads.Fields()  # shared by the head readers of all connections
        self._readers = readers
        self._targets = targets = Targets(telemetry)
        self._find_target = targets.find
        self._callers = callers = KnownCallers(verifier)
        self._writer = writer = AnswerWriter(admission, watch, makers)
        self._admitting = Admitting(verifier, callers, admission, errors, targets, self.answer)
        self._look_ups = LookUps(
            cache, look_up, readers, watch, targets, callers, admission, self._admitting, errors, writer
        )

    @property
    def answered(self) -> int:
        return self._telemetry.sum(ANSWERS, way=DIRECT)

    @property
    def from_near(self) -> int:
        return self._telemetry.sum(ANSWERS, way=DIRECT, tier="near")

    def switched(self, release: str) -> None:
        """From now on requests are answered from `release`."""
        self._targets.switched(release)
        self.errors.clear()  # it may lack an area, which is told first

    def remember(self, url: bytes, area: str, kept: Kept | KeptError, query: str) -> None:
        """The request for `url` is answered with what is kept: next time it is hot."""
        self._targets.remember(url, area, kept, query)

    def answer(
        self,
        head: bytes,
        caller: Caller,
        dates: Headers,
        now: float,
        began: float,
        holder: Holder | None = None,
    ) -> HotOutcome:
        """The answer, or why there is none yet.

        `head` is what arrived, from the request line on. `dates` are the server's own headers. `now` is in monotonic
        seconds, and so is `began`, when it arrived: it may have waited. While a request waits, nothing else may be
        asked for this caller until `holder` is told.
        """
        end = head.find(b"\r\n")
        node = self._find_target(head[:end]) or self._targets.find_other(head, end, caller)
        if node is None or node.value.release != self._targets.release:
            return self._in_new_words(head, end, caller, dates, now, began, holder)
        node.visited = True
        target: Target = node.value
        node = self._find_near(target.digest)
        reader = caller.reader
        usual = reader.usual
        asked = reader.usually if usual and head[end:] == usual else reader.read(head, end)
        if asked is None:
            return FOR_ROUTER
        caller.closes |= asked.connection is not None and asked.connection.lower() == heads.CLOSE
        if node is None and not isinstance(target, ErrorTarget):
            return self._look_ups.for_entry(head, target, caller, asked, dates, now, began, holder)
        if caller.known is None or asked.presented != caller.presented or asked.host != caller.host:
            self._callers.look_at(caller, asked)
        known = caller.known
        if known is None:
            return self._admitting.stranger(head, target, caller, asked, dates, began, holder)
        key = known.key if now < known.good_before else self._callers.good_key(caller, asked, now)
        allowance = self._admission.admit(key, target.area, now) if key is not None else None
        if allowance is None:
            denied = self.errors.denied(head, target, caller, asked, key, dates, now, began)
            if denied is not None:
                return denied
            waiting = HeldRequest(head, target, caller, asked, dates, began, holder, now)
            # no lambda: its variables would be slower on every way through here
            return self._admitting.for_token(waiting, key, now, partial(self._held, waiting, node))
        if node is None:
            return self.errors.known(head, target, caller, asked, allowance, dates, began, None)
        if reader.news is not None:
            reader.learn()
        node.visited = True
        kept = node.value
        counted = target.counts.near
        return self._writer.written(
            head, target, counted, kept.heads, kept.entry, caller, asked, allowance, dates, began, None
        )

    def _in_new_words(
        self, head: bytes, end: int, caller: Caller, dates: Headers, now: float, began: float, holder: Holder | None
    ) -> HotOutcome:
        """Of a request in words that nobody has used for this release: what its key is refused with, whatever it asks
        for. Otherwise it is hot, once it is known which entry answers it."""
        line = plain_line(head, end)
        if line is None:
            return FOR_ROUTER
        place, read_query = self.errors.places.get(line[2]), self._readers.get(line[2])
        if place is None and read_query is None:
            return FOR_ROUTER
        asked = caller.reader.read(head, end)
        if asked is None:
            return FOR_ROUTER
        caller.closes |= asked.connection is not None and asked.connection.lower() == heads.CLOSE
        key = self._callers.good_key(caller, asked, now)
        if place is not None:
            if caller.known is None:
                return self._admitting.stranger(head, place, caller, asked, dates, began, holder)
            denied = self.errors.denied(head, place, caller, asked, key, dates, now, began)
            if denied is not None:
                return denied
        read = read_query(line[3] or b"") if key is not None and read_query is not None else None
        if isinstance(read, Reading) and (target := self._targets.remember_read(line, read)) is not None:
            if self._find_near(target.digest) is not None:
                return self.answer(head, caller, dates, now, began, holder)
            outcome = self._look_ups.for_entry(head, target, caller, asked, dates, now, began, holder, read)
            if outcome is not FOR_ROUTER:
                return outcome
        caller.found_out = FoundOut(head, read=read)
        return FOR_ROUTER

    def _held(self, waiting: HeldRequest, node: Node | None, allowance: Allowance) -> bytes:
        """What a request that waited is told: what was near, or the error that its target had before."""
        if node is None:
            head, target, caller, asked = waiting.head, waiting.target, waiting.caller, waiting.asked
            return self.errors.known(head, target, caller, asked, allowance, waiting.dates, waiting.began, waiting)
        node.visited = True
        return self._writer.held(waiting, "near", node.value.entry, allowance, node.value.heads)
