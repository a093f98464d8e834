"""The tracer of a worker: OpenTelemetry's spans of traced requests. Imported only where requests are traced, because it
needs the extra `traces`.

A request is recorded while it is answered (service/base/tracing.py). Its spans are made at its end, by the conventions
of OpenTelemetry for HTTP servers.
"""

import logging
import os
import threading
import time
from collections.abc import Sequence
from importlib.metadata import version
from socket import gethostname

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from service.base.ipc import AccessLogEntry
from service.base.masking import masked
from service.base.tracing import MOST_STEPS, CallerContext, Step, Trace

log = logging.getLogger("forecast.traces")

_PACKAGE = "population-housing-forecast"
# Spans that wait for the collector. Requests above this limit are dropped.
_MOST_WAITING = 4096
_SAY_AGAIN_SECONDS = 60.0
_MOST_REASON = 300  # characters
# Other methods are unbounded in number, because callers may invent them.
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"))


class SpanTracer:
    """Makes the spans of one worker, which owns it, and exports them by `exporter`, in a thread of the SDK's.

    `share`: of all requests.
    """

    def __init__(self, share: float, exporter: SpanExporter) -> None:
        self.share = share
        self._exports = _CountedExports(exporter)
        self._trace_ids = _TraceIds()
        self._provider = TracerProvider(
            sampler=ALWAYS_ON, resource=_resource(), id_generator=self._trace_ids, shutdown_on_exit=False
        )
        # with room for the last request, so that the SDK drops nothing by itself
        queue = BatchSpanProcessor(self._exports, max_queue_size=_MOST_WAITING + MOST_STEPS + 1)
        self._provider.add_span_processor(queue)
        self._tracer = self._provider.get_tracer("forecast", version(_PACKAGE))
        self._made = self._refused = 0

    @property
    def dropped(self) -> int:
        """Traced requests that the collector did not accept."""
        return self._refused + self._exports.lost

    def record(self, trace: Trace, request: AccessLogEntry) -> None:
        """Makes the spans of a request that was answered: its own, then those of its steps."""
        if self._made - self._exports.done >= _MOST_WAITING:
            self._refused += 1
            return
        self._made += 1 + len(trace.steps)
        self._trace_ids.next = int(trace.trace_id, 16)
        since = time.time_ns() - time.monotonic_ns()
        attributes = _attributes(request)
        server = self._tracer.start_span(
            f"{attributes['http.request.method']} {attributes.get('http.route', '')}".rstrip(),
            _context_of(trace.caller),
            SpanKind.SERVER,
            attributes,
            start_time=since + _nanoseconds(trace.began),
        )
        _end(server, since + _nanoseconds(trace.ended), is_error=request.status >= 500)
        spans: dict[Step | None, Span] = {}
        for step in trace.steps:
            failed = {"error.type": step.error} if step.error is not None else {}
            spans[step] = span = self._tracer.start_span(
                step.name,
                set_span_in_context(spans.get(step.parent, server), Context()),
                SpanKind.CLIENT if step.remote else SpanKind.INTERNAL,
                {**step.attributes, **failed},
                start_time=since + _nanoseconds(step.began),
            )
            ended = step.ended if step.ended is not None else trace.ended
            _end(span, since + _nanoseconds(ended), is_error=step.error is not None)

    def flush(self) -> None:
        """Exports waiting spans."""
        self._provider.force_flush()

    def stop(self, seconds: float) -> None:
        """Exports remaining spans, for at most so many seconds; does not wait for a failing collector."""
        ending = threading.Thread(target=self._provider.shutdown, name="end of traces", daemon=True)
        ending.start()
        ending.join(0.0 if self._exports.failing else seconds)


class _TraceIds(RandomIdGenerator):
    """Gives the next trace the id of its request, which is in the log."""

    next = 0

    def generate_trace_id(self) -> int:
        return self.next


class _CountedExports(SpanExporter):
    """Counts spans that `exporter` exports and loses, and logs when failures begin and end. In the SDK's thread."""

    def __init__(self, exporter: SpanExporter) -> None:
        self.done = 0  # spans that were exported, or lost
        self.lost = 0  # requests
        self.failing = False  # the last export failed
        self._exporter = exporter
        self._reason = _LastMessage()
        self._is_logged = False
        self._log_after = 0.0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # the SDK would not count it
            result, self._reason.text = SpanExportResult.FAILURE, str(error) or repr(error)
        self.failing = result is not SpanExportResult.SUCCESS
        self.done += len(spans)
        if self.failing:
            self.lost += sum(span.kind is SpanKind.SERVER for span in spans)
            self._log_failure()
        elif self._is_logged:
            self._is_logged = False
            log.info("traces are exported again")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def _log_failure(self) -> None:
        """Logs it once; within a minute not again, even if it comes and goes."""
        now = time.monotonic()
        if not self._is_logged and now >= self._log_after:
            self._is_logged, self._log_after = True, now + _SAY_AGAIN_SECONDS
            log.warning("traces cannot be exported and are lost: %s", self._reason.text[:_MOST_REASON])


class _LastMessage(logging.Handler):
    """Captures OpenTelemetry's log of failed exports, so that our log has each failure once."""

    def __init__(self) -> None:
        super().__init__()
        self.text = "no reason was given"
        logger = logging.getLogger("opentelemetry")
        logger.handlers, logger.propagate = [self], False

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


def open_tracer(share: float) -> SpanTracer | None:
    """Returns the tracer of this worker, as OTEL_* variables say. None if they are wrong, which is logged."""
    try:
        return SpanTracer(share, collector())
    except Exception as error:  # without traces, requests are still served
        log.error("requests are not traced: %s", error)
        return None


def collector() -> SpanExporter:
    """Returns the exporter of spans to a collector, by OTLP over HTTP."""
    return OTLPSpanExporter()


def _resource() -> Resource:
    """Returns the attributes of all spans of this worker; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win."""
    ours = {
        "service.name": _PACKAGE,
        "service.version": version(_PACKAGE),
        "service.instance.id": f"{gethostname()}:{os.getppid()}",  # the process of `forecast serve`
    }
    return Resource.create({**ours, "process.pid": os.getpid()}).merge(OTELResourceDetector().detect())


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


def _end(span: Span, at: int, *, is_error: bool) -> None:
    if is_error:
        span.set_status(StatusCode.ERROR)
    span.end(at)


def _context_of(caller: CallerContext | None) -> Context:
    if caller is None:
        return Context()
    trace_id, span_id, sampled = int(caller.trace_id, 16), int(caller.span_id, 16), TraceFlags(TraceFlags.SAMPLED)
    remote = SpanContext(trace_id, span_id, is_remote=True, trace_flags=sampled)
    return set_span_in_context(NonRecordingSpan(remote), Context())


def _attributes(request: AccessLogEntry) -> dict[str, str | int]:
    """Returns the attributes of the conventions for HTTP servers, and ours. Absent ones are left out."""
    path = masked(request.path)
    found = {
        "http.request.method": request.method if request.method in _METHODS else "_OTHER",
        "http.response.status_code": request.status,
        "url.scheme": "http",
        "url.path": path,
        "http.route": (path.rstrip("/") or "/") if request.area is not None else None,
        "error.type": str(request.status) if request.status >= 500 else None,
        "client.address": request.address,
        "forecast.request_id": masked(request.request_id),
        "forecast.outcome": request.outcome,
        "forecast.area": request.area,
        "forecast.tier": request.tier,
        "forecast.release": request.release,
        "forecast.key_id": request.key_id,
        # it is canonical if a tier was queried
        "url.query" if request.tier is None else "forecast.query": masked(request.query) if request.query else None,
    }
    return {name: value for name, value in found.items() if value is not None}
