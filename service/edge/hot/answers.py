"""The direct answer: a hot GET is answered at the end of its head, without scope, task, router or handler.

The answer is the one that the router path would give; tests compare the two. So is an error that is known: one that
follows from the release, or one that the key is refused with for the moment. A HEAD is answered as a GET. A request in
new words is hot once it is known which entry answers it, and an entry that neither cache has is looked up in the
warehouse. Anything else is for the checks and the router path: other methods, a body, an unusual header, a key that is
not known, a query that is wrong or matches nothing, a look-up that fails or is traced.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from time import monotonic
from typing import get_args

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.base.telemetry import ANSWERS, DIRECT, LATENCY_BOUNDS, JointCount, Telemetry
from service.cache.entry import CacheEntry
from service.cache.near import PreparedHeads
from service.cache.read_through import ReadThrough, Tier
from service.cache.shared import SharedLookup
from service.cache.sieve import Node, Sieve
from service.edge.admission.admission import Admission, Allowance
from service.edge.hot import heads
from service.edge.hot.errors import ErrorAnswers
from service.edge.hot.plain import plain_line
from service.edge.hot.remembered import Caller, ErrorTarget, FoundOut, Place, Target, TargetCounts
from service.edge.hot.told import line_of, trace_of
from service.edge.hot.waiting import FOR_ROUTER, WAITING, HeldRequest, Holder, HotOutcome
from service.edge.hot.wire import Headers, HeadMaker, closing_tail, lines_of
from service.edge.requests.watch import RequestWatch
from service.http.caching import accepts_gzip
from service.http.head import new_request_id, valid_host
from service.http.reading import ReadError, Reading
from service.http.reply import Kept, KeptError
from service.keys.record import ApiKey
from service.keys.verdict import KeyVerdict, Rejected
from service.keys.verifier import KeyVerifier, Verified

# Room for all ZIP codes and cities of the country: a walk through them all finds each again.
MOST_TARGETS = 100_000
MOST_TARGET_BYTES = 64 << 20
_MOST_RECALLED = 20_000
_OLD = b" HTTP/1.0"  # its connections carry one request each
_HEAD, _G = b"HEAD ", ord("G")  # of a GET
# Of a target, beside its request line and query. Measured: a process grew by 0.97 to 1.02 of the whole.
_OVERHEAD_BYTES = 400
_QUICK_SECONDS = LATENCY_BOUNDS[0]

# Reads a raw query string, as `Answers.read`.
ReadQuery = Callable[[bytes], Reading | ReadError | None]

_accepts_gzip = lru_cache(maxsize=256)(accepts_gzip)


class HotAnswers:
    """Answers hot requests. One per worker, which owns it; every connection to its gate asks it.

    `heads_of` makes the heads of entries of a tier; those in the near cache have theirs. `readers` read query strings,
    by path, and `look_up` looks up in the warehouse what was read. Calling a function costs as much as a look-up in a
    dict, so there are few calls on the way to a near answer.
    """

    def __init__(
        self,
        cache: ReadThrough,
        heads_of: Callable[[Tier], HeadMaker],
        verifier: KeyVerifier,
        admission: Admission,
        telemetry: Telemetry,
        watch: RequestWatch,
        errors: ErrorAnswers,
        look_up: Callable[[Reading], Awaitable[bytes]],
    ) -> None:
        self._cache = cache
        self._find_near = cache.near.find
        self._heads: Mapping[Tier, HeadMaker] = {tier: heads_of(tier) for tier in get_args(Tier)}
        self._look_up = look_up
        self.readers: Mapping[bytes, ReadQuery] = {}
        self._verifier = verifier
        self._admission = admission
        self._telemetry = telemetry
        self._watch = watch
        self.errors = errors
        self._release: str | None = None  # the current one; targets of others are not answered
        self._targets: Sieve[bytes, Target] = Sieve(MOST_TARGET_BYTES, MOST_TARGETS)
        self._find_target = self._targets.find
        self._counts: dict[tuple[str, str, str], TargetCounts] = {}  # by release, area, outcome
        self._recalled: dict[bytes, Verified] = {}  # by a good key as it was sent: its fingerprint costs more
        self.fields = heads.Fields()  # shared by the head readers of all connections
        self._dates: Headers | None = None  # the server's headers that the line below begins heads with
        self._ok = self._not_modified = b""  # status line and the server's headers, of a 200 and of a 304

    @property
    def answered(self) -> int:
        return self._telemetry.sum(ANSWERS, way=DIRECT)

    @property
    def from_near(self) -> int:
        return self._telemetry.sum(ANSWERS, way=DIRECT, tier="near")

    def switched(self, release: str) -> None:
        """From now on requests are answered from `release`."""
        self._release = release
        self._counts.clear()
        self.errors.clear()  # it may lack an area, which is told first

    def remember(self, url: bytes, area: str, kept: Kept | KeptError, query: str) -> Target | None:
        """The request for `url` is answered with what is kept: next time it is hot. None if nothing was remembered."""
        line, size = heads.request_line(url), 0
        target: Target
        if isinstance(kept, KeptError):
            target = ErrorTarget(line, area, kept, query, self._telemetry)
            size = target.size
        else:
            target = Target(line, area, kept, query, self._counts_of(kept, area))
        if target.release != self._release:
            return None
        cost = len(line) + len(query) + size + _OVERHEAD_BYTES
        return target if self._targets.put(line, target, cost) else None

    def _counts_of(self, kept: Kept, area: str) -> TargetCounts:
        counts = self._counts.get((kept.key.release, area, kept.outcome))
        if counts is None:
            counts = TargetCounts(kept.key.release, area, kept.outcome, self._telemetry)
            self._counts[kept.key.release, area, kept.outcome] = counts
        return counts

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
        node = self._find_target(head[:end]) or self._find_other(head, end, caller)
        if node is None or node.value.release != self._release:
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
            return self._ask_shared(head, target, caller, asked, dates, now, began, holder)
        if caller.known is None or asked.presented != caller.presented or asked.host != caller.host:
            self._look_at(caller, asked)
        known = caller.known
        if known is None:
            return self._stranger(head, target, caller, asked, dates, began, holder)
        key = known.key if now < known.good_before else self._good_key(caller, asked, now)
        allowance = self._admission.admit(key, target.area, now) if key is not None else None
        if allowance is None:
            denied = self.errors.denied(head, target, caller, asked, key, dates, now, began)
            if denied is not None:
                return denied
            waiting, kept = HeldRequest(head, target, caller, asked, dates, began, holder, now), node
            return self._without_token(waiting, key, now, lambda allowance: self._held(waiting, kept, allowance))
        if node is None:
            return self.errors.known(head, target, caller, asked, allowance, dates, began, None)
        if reader.news is not None:
            reader.learn()
        node.visited = True
        kept = node.value
        counted = target.counts.near
        return self._written(
            head, target, counted, kept.heads, kept.entry, caller, asked, allowance, dates, began, None
        )

    def _find_other(self, head: bytes, end: int, caller: Caller) -> Node | None:
        """The target of a HEAD, or of a request in HTTP/1.0, whose connection closes after it."""
        line = head[:end]
        if line.startswith(_HEAD):
            line = b"GET " + line[len(_HEAD) :]
        if line.endswith(_OLD):
            caller.closes = True
            line = line[:-1] + b"1"
        return self._find_target(line)

    def _in_new_words(
        self, head: bytes, end: int, caller: Caller, dates: Headers, now: float, began: float, holder: Holder | None
    ) -> HotOutcome:
        """Of a request in words that nobody has used for this release: what its key is refused with, whatever it asks
        for. Otherwise it is hot, once it is known which entry answers it."""
        line = plain_line(head, end)
        if line is None:
            return FOR_ROUTER
        place, read_query = self.errors.places.get(line[2]), self.readers.get(line[2])
        if place is None and read_query is None:
            return FOR_ROUTER
        asked = caller.reader.read(head, end)
        if asked is None:
            return FOR_ROUTER
        caller.closes |= asked.connection is not None and asked.connection.lower() == heads.CLOSE
        key = self._good_key(caller, asked, now)
        if place is not None:
            if caller.known is None:
                return self._stranger(head, place, caller, asked, dates, began, holder)
            denied = self.errors.denied(head, place, caller, asked, key, dates, now, began)
            if denied is not None:
                return denied
        read = read_query(line[3] or b"") if key is not None and read_query is not None else None
        target = self._remembered(line, read) if isinstance(read, Reading) else None
        if target is not None and self._find_near(target.digest) is not None:
            return self.answer(head, caller, dates, now, began, holder)
        if target is not None and isinstance(read, Reading):
            outcome = self._ask_shared(head, target, caller, asked, dates, now, began, holder, read)
            if outcome is not FOR_ROUTER:
                return outcome
        caller.found_out = FoundOut(head, read=read)
        return FOR_ROUTER

    def _remembered(self, line: "re.Match[bytes]", read: Reading) -> Target | None:
        """From now on the request in this line is hot, if its answer is kept."""
        kept = read.kept
        if kept is None:
            return None
        url = line[2] if line[3] is None else b"%b?%b" % (line[2], line[3])
        return self.remember(url, read.area, kept, read.asked.query)

    def _held(self, waiting: HeldRequest, node: Node | None, allowance: Allowance) -> bytes:
        """What a request that waited is told: what was near, or the error that its target had before."""
        head, target, caller, asked = waiting.head, waiting.target, waiting.caller, waiting.asked
        if node is None:
            return self.errors.known(head, target, caller, asked, allowance, waiting.dates, waiting.began, waiting)
        node.visited = True
        return self._answered(waiting, target.counts.near, node.value.heads, node.value.entry, allowance)

    def _stranger(
        self,
        head: bytes,
        target: Place,
        caller: Caller,
        asked: heads.HeaderValues,
        dates: Headers,
        began: float,
        holder: Holder | None,
    ) -> HotOutcome:
        """What a key is told that is known to be wrong for the moment. One that is not known is asked for."""
        wrong = caller.wrong
        if wrong is None:
            return self._without_key(head, caller, asked, dates, holder)
        return self.errors.wrong_key(wrong.fault, head, target, caller, asked, dates, began)

    def _ask_shared(
        self,
        head: bytes,
        target: Target,
        caller: Caller,
        asked: heads.HeaderValues,
        dates: Headers,
        now: float,
        began: float,
        holder: Holder | None,
        read: Reading | None = None,
    ) -> HotOutcome:
        """Of what is not near. `read`: what the request means, if it was read just now."""
        key = self._good_key(caller, asked, now)
        if key is None and caller.known is None:
            return self._stranger(head, target, caller, asked, dates, began, holder)
        if key is None:
            return self._without_key(head, caller, asked, dates, holder)
        denied = self.errors.denied(head, target, caller, asked, key, dates, now, began)
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
        if target.release != self._release:
            return FOR_ROUTER
        finish: Callable[[Allowance], HotOutcome]
        if entry is not None:
            finish = partial(self._from_shared, waiting, entry)
        else:
            waiting.read = read = waiting.read or self._read_again(waiting)
            if read is None or lookup.outcome == "unavailable" or self._watch.tracer is not None:
                waiting.caller.found_out = FoundOut(waiting.head, read=read)
                return FOR_ROUTER
            finish = partial(self._ask_warehouse, waiting, holder, read)
        key = self._good_key(waiting.caller, waiting.asked, now)
        if key is None:
            return FOR_ROUTER

        def passed(allowance: Allowance) -> HotOutcome:
            self._cache.looked_up(target.key, lookup, generation, now - waiting.since)
            return finish(allowance)

        allowance = self._admission.admit(key, target.area, now)
        return passed(allowance) if allowance is not None else self._without_token(waiting, key, now, passed)

    def _from_shared(self, waiting: HeldRequest, entry: CacheEntry, allowance: Allowance) -> bytes:
        target, gzip = waiting.target, waiting.asked.accept_encoding is not None
        heads = self._heads["shared"].all_of(target.release, entry, gzip=gzip)
        return self._answered(waiting, target.counts.shared, heads, entry, allowance)

    def _read_again(self, waiting: HeldRequest) -> Reading | None:
        """What a request in known words means, which a cache had an entry for before. None if only the router reads it,
        as where its path is not spelt as usual."""
        line = plain_line(waiting.head, waiting.head.find(b"\r\n"))
        read_query = self.readers.get(line[2]) if line is not None else None
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
        target, gzip, waiting.dates = waiting.target, waiting.asked.accept_encoding is not None, dates
        heads = self._heads["warehouse"].all_of(target.release, result, gzip=gzip)
        return self._answered(waiting, target.counts.warehouse, heads, result, allowance)

    def _answered(
        self, waiting: HeldRequest, counted: JointCount, heads: PreparedHeads, entry: CacheEntry, allowance: Allowance
    ) -> bytes:
        if waiting.caller.reader.news is not None:
            waiting.caller.reader.learn()
        head, target, caller, asked = waiting.head, waiting.target, waiting.caller, waiting.asked
        dates, began = waiting.dates, waiting.began
        return self._written(head, target, counted, heads, entry, caller, asked, allowance, dates, began, waiting)

    def _without_token(
        self, waiting: HeldRequest, key: ApiKey | None, now: float, finish: Callable[[Allowance], HotOutcome]
    ) -> HotOutcome:
        """The request waits for a token, or first of all for its key.

        It waits here: when very many requests come at once, the router path is so slow that the tokens leased for them
        expire before they are spent; then all would wait for ever.
        """
        area, holder = waiting.target.area, waiting.holder
        if key is None:
            return self._without_key(waiting.head, waiting.caller, waiting.asked, waiting.dates, holder)
        if holder is None:
            return FOR_ROUTER

        def told(allowance: Allowance | None) -> None:
            holder.told(lambda: self._with_token(waiting, key, allowance, finish))

        return WAITING if self._admission.ask(key, area, now, told) else FOR_ROUTER

    def _without_key(
        self, head: bytes, caller: Caller, asked: heads.HeaderValues, dates: Headers, holder: Holder | None
    ) -> HotOutcome:
        """The request waits until the key store was asked about its key, or asked again if that was too long ago.

        It waits here: thousands of requests on the router path take longer than a key is good without being asked for.
        """
        known, host, presented = caller.known, asked.host, asked.presented
        if holder is None:
            return FOR_ROUTER

        def told(verdict: KeyVerdict | None) -> None:
            is_there = holder.told(lambda: self._with_key(head, caller, asked, dates, holder, verdict))
            if not is_there and isinstance(verdict, Rejected):  # a scan counts, also one that hangs up
                self._with_key(head, caller, asked, dates, None, verdict)

        if known is not None:
            waits = self._verifier.when_rechecked(known, told)
            if waits:
                self._admission.expect(known.key)
        elif presented and host is not None and valid_host(host):
            waits = self._verifier.when_checked(_text(presented), told)
        else:
            return FOR_ROUTER
        return WAITING if waits else FOR_ROUTER

    def _with_key(
        self,
        head: bytes,
        caller: Caller,
        asked: heads.HeaderValues,
        dates: Headers,
        holder: Holder | None,
        verdict: KeyVerdict | None,
    ) -> HotOutcome:
        now = monotonic()
        if self._good_key(caller, asked, now) is None and caller.wrong is None:
            # the checks need not ask again, and wait as long again for a store that is away
            caller.found_out = FoundOut(head, verdict)
            return FOR_ROUTER
        return self.answer(head, caller, dates, now, caller.arrived_at, holder)

    def _with_token(
        self, waiting: HeldRequest, key: ApiKey, allowance: Allowance | None, finish: Callable[[Allowance], HotOutcome]
    ) -> HotOutcome:
        waiting.admitted = now = monotonic()
        target, caller, asked = waiting.target, waiting.caller, waiting.asked
        if self._good_key(caller, asked, now) != key:
            return FOR_ROUTER
        if target.release != self._release:
            caller.found_out = FoundOut(waiting.head, allowance=allowance)  # the token is taken
            return FOR_ROUTER
        if allowance is not None:
            return finish(allowance)
        # of all who waited together, the first is refused by the checks
        dates, began = waiting.dates, waiting.began
        return self.errors.denied(waiting.head, target, caller, asked, key, dates, now, began, waiting) or FOR_ROUTER

    def _good_key(self, caller: Caller, asked: heads.HeaderValues, now: float) -> ApiKey | None:
        """The presented key, if it is known to be good and the host is valid. A forgotten key is looked for again."""
        known = caller.known
        if known is None or known.forgotten or asked.presented != caller.presented or asked.host != caller.host:
            self._look_at(caller, asked)
            known = caller.known
        if known is None:
            return None
        return known.key if now < known.good_before else self._verifier.good(known, now)

    def _written(
        self,
        head: bytes,
        target: Target,
        counted: JointCount,
        heads: PreparedHeads,
        entry: CacheEntry,
        caller: Caller,
        asked: heads.HeaderValues,
        allowance: Allowance,
        dates: Headers,
        began: float,
        waited: HeldRequest | None,
    ) -> bytes:
        """The bytes of the answer. The request counts from here on; nothing may send it to the router path any more."""
        zipped = False
        if asked.accept_encoding is not None and entry.gzipped and _accepts_gzip(asked.accept_encoding):
            zipped, lines, body = True, heads[1], entry.gzipped
        else:
            lines, body = heads[0], entry.body
        if dates is not self._dates:
            self._dated(dates)
        request_id = asked.request_id or new_request_id()
        counts, ok = target.counts, self._ok
        usage = counts.usage
        if asked.if_none_match:
            maker = self._heads[counts.tier_of(counted)]
            unchanged = maker.unchanged(target.release, entry, asked.if_none_match, zipped=zipped)
            if unchanged is not None:
                usage, ok = "not_modified", self._not_modified
                counted = counts.near_304 if counted is counts.near else counts.unchanged(counted)
                lines, body = unchanged, b""
        # added to inline, as what it counts in is below: a call of a method would add 2 % to a hot answer
        tally = allowance.tallies.get(usage)
        if tally is None or tally.closed:
            self._admission.count_allowed(allowance, target.area, usage)
        else:
            tally.n += 1
        seconds = monotonic() - began
        if seconds <= _QUICK_SECONDS:  # as nearly all are
            counted.n += 1
            counted.seconds += seconds
            slow = missed = False
        else:
            counted.observe(seconds)
            slow, missed = seconds >= self._watch.slow, counts.tier_of(counted) == "warehouse"
        watch = self._watch
        if watch.skip > 0 and not slow and not missed:
            watch.skip -= 1
        else:
            status = 200 if ok is self._ok else 304
            method = "HEAD" if head.startswith(_HEAD) else "GET"
            # no lambda: its variables would be slower on every way through here
            line = partial(
                line_of,
                target,
                counts.tier_of(counted),
                caller,
                allowance.key,
                request_id,
                status,
                usage,
                seconds,
                method,
            )
            if missed:  # there are few beside hits, and the rankings tell of them
                watch.look(line(), seconds)
            else:
                watch.look_directly(line, partial(trace_of, head, began, seconds, waited), slow=slow)
        tail = allowance.tail if not caller.closes else closing_tail(allowance.tail)
        return b"".join((ok, lines, request_id, tail, body if head[0] == _G else b""))

    def _look_at(self, caller: Caller, asked: heads.HeaderValues) -> None:
        """Looks at a host and a key that the connection has not sent before. The caller is known if both are good, and
        `wrong` if the key is known to be."""
        host, presented, before = asked.host, asked.presented, caller.host
        caller.presented = caller.known = caller.host = caller.wrong = None
        if host is None or not presented or (host != before and not valid_host(host)):
            return
        known = self._recalled.get(presented)
        if known is None or known.forgotten:
            found = self._verifier.recall(_text(presented))
            if not isinstance(found, Verified):
                caller.wrong = found
                return
            known = found
            if len(self._recalled) >= _MOST_RECALLED:
                self._recalled.clear()
            self._recalled[presented] = known
        if not known.key.test:  # what is kept is live
            caller.known, caller.presented, caller.host = known, presented, host

    def _dated(self, dates: Headers) -> None:
        lines = lines_of(dates)
        self._ok, self._not_modified = STATUS_LINE[200] + lines, STATUS_LINE[304] + lines
        self._dates = dates


def _text(presented: bytes) -> str:
    """A presented key as the checks read it."""
    return presented.decode("latin-1").strip()
