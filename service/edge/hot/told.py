"""What is told of a direct answer, if it is looked at: its line in the request log, and its trace."""

import os
import re
import time

import msgspec

from service.base import tracing
from service.base.seen import LoggedRequest
from service.base.tracing import Trace
from service.cache.read_through import SHARED_STEP, Tier
from service.edge.hot.remembered import Caller, KnownError, Place, Target
from service.edge.hot.waiting import HeldRequest
from service.edge.requests.sightings import shortened
from service.edge.requests.watch import stamp
from service.keys.record import ApiKey

# In a head of plain lines.
_TRACEPARENT = re.compile(rb"\r\ntraceparent:([^\r]*)", re.IGNORECASE)


def line_of(
    target: Target,
    tier: Tier,
    caller: Caller,
    key: ApiKey,
    request_id: bytes,
    status: int,
    outcome: str,
    seconds: float,
    method: str,
) -> LoggedRequest:
    return LoggedRequest(
        time=stamp(time.time()),
        request_id=request_id.decode(),
        status=status,
        method=method,
        path=target.path,
        outcome=outcome,
        milliseconds=round(seconds * 1000, 3),
        pid=os.getpid(),
        area=target.area,
        query=target.query,
        tier=tier,
        release=target.release,
        key_id=key.key_id,
        partner=key.partner,
        address=caller.address,
    )


class ToldError(msgspec.Struct, gc=False):
    """An error that was told, from which its line is made if somebody wants that. Thousands of these are kept, which
    the garbage collector need not look at."""

    target: Place
    error: KnownError
    address: str | None
    key: ApiKey | None
    request_id: bytes
    seconds: float
    line: bytes  # the request line
    ended: float  # monotonic seconds
    at: float = 0.0  # seconds since 1970, once somebody wants to know

    def __call__(self) -> LoggedRequest:
        method, url, _ = self.line.split(b" ")
        self.at = self.at or time.time() - (time.monotonic() - self.ended)
        return LoggedRequest(
            time=stamp(self.at),
            request_id=self.request_id.decode(),
            status=self.error.status,
            method=method.decode(),
            path=self.target.path,
            outcome=self.error.outcome,
            milliseconds=round(self.seconds * 1000, 3),
            pid=os.getpid(),
            area=self.target.area,
            query=shortened(url.partition(b"?")[2].decode("latin-1")) or None,
            key_id=self.key.key_id if self.key is not None else None,
            partner=self.key.partner if self.key is not None else None,
            address=self.address,
        )


def trace_of(head: bytes, began: float, seconds: float, waited: HeldRequest | None) -> Trace | None:
    """The trace of the request with this head; None if its caller does not want one.

    Its steps are those that it waited for. Nobody takes the time of the others, which take less than taking it.
    """
    trace = tracing.begin(_TRACEPARENT.findall(head), began)
    if trace is None:
        return None
    trace.ended = began + seconds
    if waited is not None and waited.found:
        attributes = {**SHARED_STEP, tracing.STEP_OUTCOME: "hit"}
        trace.note("shared", waited.since, waited.found, attributes, remote=True)
    if waited is not None and waited.admitted:
        trace.note("rate", waited.found or waited.since, waited.admitted, {})
    return trace
