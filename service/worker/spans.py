"""The spans of a traced request, by OpenTelemetry's conventions. Needs the extra `traces`."""

import os
import random
import time
from collections.abc import Iterator
from importlib.metadata import version
from socket import gethostname

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from service.base.masking import masked
from service.base.seen import LoggedRequest
from service.base.tracing import CallerContext, Trace
from service.worker.otlp import REQUEST_ID

_PACKAGE = "population-housing-forecast"
# Any other method is a caller's invention, of which there may be any number.
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"))
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_UNSET, _ERROR = Status(StatusCode.UNSET), Status(StatusCode.ERROR)


class SpanMaker:
    """Makes the spans of one worker."""

    def __init__(self) -> None:
        self._resource = _resource()
        self._scope = InstrumentationScope("forecast", version(_PACKAGE))

    def spans_of(self, trace: Trace, request: LoggedRequest) -> Iterator[ReadableSpan]:
        """That of the request, then those of its steps."""
        trace_id, since = int(trace.trace_id, 16), time.time_ns() - time.monotonic_ns()
        server = _context(trace_id)
        attributes = _attributes(request)
        yield ReadableSpan(
            f"{attributes['http.request.method']} {attributes.get('http.route', '')}".rstrip(),
            server,
            _remote(trace.caller),
            self._resource,
            attributes,
            kind=SpanKind.SERVER,
            status=_ERROR if request.status >= 500 else _UNSET,
            start_time=_nanoseconds(trace.began) + since,
            end_time=_nanoseconds(trace.ended) + since,
            instrumentation_scope=self._scope,
        )
        contexts = {step: _context(trace_id) for step in trace.steps}
        for step, context in contexts.items():
            failed = {"error.type": step.error} if step.error is not None else {}
            yield ReadableSpan(
                step.name,
                context,
                contexts.get(step.parent, server) if step.parent is not None else server,
                self._resource,
                {**step.attributes, **failed},
                kind=SpanKind.CLIENT if step.remote else SpanKind.INTERNAL,
                status=_ERROR if failed else _UNSET,
                start_time=_nanoseconds(step.began) + since,
                end_time=_nanoseconds(step.ended if step.ended is not None else trace.ended) + since,
                instrumentation_scope=self._scope,
            )


def _resource() -> Resource:
    """What all spans of this worker say; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win."""
    ours = {
        "service.name": _PACKAGE,
        "service.version": version(_PACKAGE),
        "service.instance.id": f"{gethostname()}:{os.getppid()}",  # the process of `forecast serve`
    }
    return Resource.create({**ours, "process.pid": os.getpid()}).merge(OTELResourceDetector().detect())


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


def _context(trace_id: int) -> SpanContext:
    span_id = random.getrandbits(64) or 1
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED)


def _remote(caller: CallerContext | None) -> SpanContext | None:
    if caller is None:
        return None
    return SpanContext(int(caller.trace_id, 16), int(caller.span_id, 16), is_remote=True, trace_flags=_SAMPLED)


def _attributes(request: LoggedRequest) -> dict[str, str | int]:
    """Those of the conventions for HTTP servers, and ours. Absent ones are left out."""
    path = masked(request.path)
    found = {
        "http.request.method": request.method if request.method in _METHODS else "_OTHER",
        "http.response.status_code": request.status,
        "url.scheme": "http",
        "url.path": path,
        "http.route": (path.rstrip("/") or "/") if request.area is not None else None,
        "error.type": str(request.status) if request.status >= 500 else None,
        "client.address": request.address,
        REQUEST_ID: masked(request.request_id),
        "forecast.outcome": request.outcome,
        "forecast.area": request.area,
        "forecast.tier": request.tier,
        "forecast.release": request.release,
        "forecast.key_id": request.key_id,
        # it is canonical where a tier was asked
        "url.query" if request.tier is None else "forecast.query": masked(request.query) if request.query else None,
    }
    return {name: value for name, value in found.items() if value is not None}
