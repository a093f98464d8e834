"""Counts and tells of every request that was not answered directly: its metrics, its usage, its line."""

import os
import time
from collections.abc import Callable

import msgspec

from service.base.masking import masked
from service.base.seen import LoggedRequest
from service.base.telemetry import ANSWERS, REJECTED, REQUEST_SECONDS, REQUESTS, ROUTED, TEST_REQUESTS, Telemetry
from service.edge.admission.admission import Admission
from service.edge.requests.log import LONG, Made, Make
from service.edge.requests.sightings import shortened
from service.edge.requests.watch import RequestWatch, stamp
from service.http.errors import problem
from service.http.head import NO_AREA, RequestHead
from service.http.reply import Counted, Reply, Source
from service.keys.record import ApiKey


class RequestCounting:
    """Counts the requests that reach one `Gate`, which owns it and says what its parameters are."""

    def __init__(
        self,
        telemetry: Telemetry,
        watch: RequestWatch,
        admission: Admission | None,
        keep_error: Callable[[str, Make], None],
    ) -> None:
        self._telemetry = telemetry
        self._watch = watch
        self._admission = admission
        self._keep_error = keep_error

    def rejected(self, code: str) -> None:
        """Counts a request that the protocol refused before it could be routed."""
        self._telemetry.count(REJECTED, code)

    def refusal(self, code: str, request_id: str, address: str | None, detail: str | None = None) -> Reply:
        """The answer to such a request, which is counted and logged. Its method and path may not have arrived."""
        reply = problem(code, request_id, detail)
        self._telemetry.count(REQUESTS, NO_AREA, str(reply.status), code)
        line = LoggedRequest(
            time=stamp(time.time()),
            request_id=request_id,
            status=reply.status,
            method="-",
            path="-",
            outcome=code,
            milliseconds=0.0,
            pid=os.getpid(),
            address=address,
            detail=detail,
        )
        self._watch.look(line, 0.0)
        return reply

    def finished(
        self,
        head: RequestHead,
        status: int,
        outcome: str,
        source: Source | None,
        counted: tuple[Counted, ...],
        seconds: float,
        *,
        directly: bool = False,
    ) -> None:
        """Counts a request that was answered, `seconds` after its head had arrived."""
        area, key = head.area, head.key
        make: Make = _Told(
            head.request_id,
            status,
            head.method,
            head.sent_path,
            source.query if source is not None else head.query,
            outcome,
            seconds,
            time.time(),
            area,
            source,
            key if key is not None else head.key_id,
            head.address,
        )
        if len(head.sent_path) + len(head.query) > LONG:
            make = Made(make())
        if head.is_test:  # a 503 on purpose must alarm nobody
            self._telemetry.count(TEST_REQUESTS, str(status), outcome)
            self._watch.look(make(), seconds, head.trace)
            return
        if status >= 400 and key is not None:
            self._keep_error(key.key_id, make)
        self._telemetry.count(REQUESTS, area, str(status), outcome)
        if key is not None:
            for one in counted or (Counted(1, status, outcome, source.tier if source is not None else None),):
                if source is not None and one.tier is not None:
                    self._telemetry.count(ANSWERS, area, one.tier, source.release, ROUTED, amount=one.number)
                if self._admission is not None:
                    self._admission.count(key, area, one.status, one.outcome, one.number)
        self._telemetry.observe(REQUEST_SECONDS, seconds, area)
        if directly and head.trace is None:
            kind = (status, outcome, area if area != NO_AREA else None, head.key_id or head.address)
            self._watch.look_at_error(kind, make, time.monotonic())
        else:
            self._watch.look(make(), seconds, head.trace)


class _Told(msgspec.Struct, gc=False):
    """An answer that was given, from which its line is made."""

    request_id: str
    status: int
    method: str
    path: str
    query: str | bytes  # canonical, or as it was sent, in bytes
    outcome: str
    seconds: float
    at: float  # seconds since 1970
    area: str
    source: Source | None
    key: ApiKey | str | None  # or the id of one that is not good any more
    address: str | None

    def __call__(self) -> LoggedRequest:
        query, source, key = self.query, self.source, self.key
        # a key may have been put into the address by mistake, and an address may be long
        shown = query if isinstance(query, str) else query.decode("latin-1")
        known = key if isinstance(key, ApiKey) else None
        return LoggedRequest(
            time=stamp(self.at),
            request_id=self.request_id,
            status=self.status,
            method=masked(self.method),
            path=shortened(self.path),
            outcome=self.outcome,
            milliseconds=round(self.seconds * 1000, 3),
            pid=os.getpid(),
            area=self.area if self.area != NO_AREA else None,
            query=shortened(shown) or None,
            tier=source.tier if source is not None else None,
            release=source.release if source is not None else None,
            key_id=known.key_id if known is not None else key if isinstance(key, str) else None,
            partner=known.partner if known is not None else None,
            test=(known is not None and known.test) or None,
            address=self.address,
        )
