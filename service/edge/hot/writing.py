"""Writes hot answers, and counts each as it is written."""

from collections.abc import Mapping
from functools import lru_cache, partial
from time import monotonic

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.base.telemetry import LATENCY_BOUNDS, JointCount
from service.cache.entry import CacheEntry
from service.cache.near import PreparedHeads
from service.cache.read_through import Tier
from service.edge.admission.admission import Admission, Allowance
from service.edge.hot.heads import HeaderValues
from service.edge.hot.remembered import Caller, Target
from service.edge.hot.told import line_of, trace_of
from service.edge.hot.waiting import HeldRequest
from service.edge.hot.wire import Headers, HeadMaker, closing_tail, lines_of
from service.edge.requests.watch import RequestWatch
from service.http.caching import accepts_gzip
from service.http.head import new_request_id

_HEAD, _G = b"HEAD ", ord("G")  # of a GET
_QUICK_SECONDS = LATENCY_BOUNDS[0]

_accepts_gzip = lru_cache(maxsize=256)(accepts_gzip)


class AnswerWriter:
    """Writes the answers of one worker; its `HotAnswers` owns it. `makers` make the heads of each tier."""

    def __init__(self, admission: Admission, watch: RequestWatch, makers: Mapping[Tier, HeadMaker]) -> None:
        self._admission = admission
        self._watch = watch
        self._makers = makers
        self._dates: Headers | None = None  # the server's headers that the line below begins heads with
        self._ok = self._not_modified = b""  # status line and the server's headers, of a 200 and of a 304

    def written(
        self,
        head: bytes,
        target: Target,
        counted: JointCount,
        prepared: PreparedHeads,
        entry: CacheEntry,
        caller: Caller,
        asked: HeaderValues,
        allowance: Allowance,
        dates: Headers,
        began: float,
        waited: HeldRequest | None,
    ) -> bytes:
        """The bytes of the answer. The request counts from here on; nothing may send it to the router path any more."""
        zipped = False
        if asked.accept_encoding is not None and entry.gzipped and _accepts_gzip(asked.accept_encoding):
            zipped, lines, body = True, prepared[1], entry.gzipped
        else:
            lines, body = prepared[0], entry.body
        if dates is not self._dates:
            self._dated(dates)
        request_id = asked.request_id or new_request_id()
        counts, ok = target.counts, self._ok
        usage = counts.usage
        if asked.if_none_match:
            maker = self._makers[counts.tier_of(counted)]
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

    def held(
        self,
        waiting: HeldRequest,
        tier: Tier,
        entry: CacheEntry,
        allowance: Allowance,
        prepared: PreparedHeads | None = None,
    ) -> bytes:
        """The bytes of an answer that was waited for. `prepared`: its heads, if there are any."""
        head, target, caller, asked = waiting.head, waiting.target, waiting.caller, waiting.asked
        if caller.reader.news is not None:
            caller.reader.learn()
        if prepared is None:
            prepared = self._makers[tier].all_of(target.release, entry, gzip=asked.accept_encoding is not None)
        counted, dates, began = target.counts.whole[tier], waiting.dates, waiting.began
        return self.written(head, target, counted, prepared, entry, caller, asked, allowance, dates, began, waiting)

    def _dated(self, dates: Headers) -> None:
        lines = lines_of(dates)
        self._ok, self._not_modified = STATUS_LINE[200] + lines, STATUS_LINE[304] + lines
        self._dates = dates
