"""The tracer of a worker. Imported only where requests are traced: it needs the extra `traces`.

The event loop only puts a traced request into the SDK's queue. Its spans are made in the thread that exports them, many
at a time. The SDK's own way, to make spans in the loop, would take as long as dozens of hot answers.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, TraceFlags

from service.base.seen import LoggedRequest
from service.base.tracing import Trace
from service.worker.otlp import OtlpExporter
from service.worker.spans import SpanMaker

log = logging.getLogger("forecast.traces")

# Traced requests that wait for the collector. More are dropped.
_MOST_WAITING = 4096
_SAY_AGAIN_SECONDS = 60.0
_MOST_REASON = 300  # characters
# What the queue asks of a span: whether it is sampled.
_SAMPLED = SpanContext(1, 1, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class SpanTracer:
    """The tracer of one worker, which owns it: gives the spans of traced requests to `exporter`, in a thread.

    `share`: of all requests.
    """

    def __init__(self, share: float, exporter: SpanExporter) -> None:
        self.share = share
        self._exports = _Exports(exporter)
        self._queue = BatchSpanProcessor(self._exports, max_queue_size=_MOST_WAITING)
        self._told = self._refused = 0

    @property
    def dropped(self) -> int:
        """Traced requests that the collector did not take."""
        return self._refused + self._exports.lost

    def tell(self, note: Callable[[], Trace | None], make: Callable[[], LoggedRequest]) -> None:
        if self._told - self._exports.done >= _MOST_WAITING:
            self._refused += 1
        else:
            self._told += 1
            self._queue.on_end(_TracedRequest(note, make))

    def stop(self, seconds: float) -> None:
        """Exports what is left, for at most so many seconds; a collector that is away is not waited for."""
        ending = threading.Thread(target=self._queue.shutdown, name="end of traces", daemon=True)
        ending.start()
        ending.join(0.0 if self._exports.failing else seconds)


class _TracedRequest(ReadableSpan):
    """Stands in the queue for the spans that will be made of it."""

    def __init__(self, note: Callable[[], Trace | None], make: Callable[[], LoggedRequest]) -> None:
        self.note = note
        self.make = make

    @property
    def context(self) -> SpanContext:
        return _SAMPLED


class _Exports(SpanExporter):
    """What happens in the thread: makes spans, counts, and logs when `exporter` begins and ceases to fail."""

    def __init__(self, exporter: SpanExporter) -> None:
        self.done = 0  # requests that were exported, or lost
        self.lost = 0
        self.failing = False  # the last export failed
        self._exporter = exporter
        self._maker = SpanMaker()
        self._told = False
        self._tell_after = 0.0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        told = [one for one in spans if isinstance(one, _TracedRequest)]
        try:
            made = [span for one in told for span in self._made(one)]
            result = self._exporter.export(made) if made else SpanExportResult.SUCCESS
        except Exception as error:  # whatever it is, the thread goes on
            result = SpanExportResult.FAILURE
            self._failed(str(error) or repr(error))
        self.failing = result is not SpanExportResult.SUCCESS
        if self.failing:
            self.lost += len(told)
        elif self._told:
            self._told = False
            log.info("traces are exported again")
        self.done += len(told)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def _made(self, one: _TracedRequest) -> Iterable[ReadableSpan]:
        trace = one.note()
        return self._maker.spans_of(trace, one.make()) if trace is not None else ()

    def _failed(self, reason: str) -> None:
        """Tells it once; within a minute not again, even if it comes and goes."""
        now = time.monotonic()
        if not self._told and now >= self._tell_after:
            self._told, self._tell_after = True, now + _SAY_AGAIN_SECONDS
            log.warning("traces cannot be exported, and are lost meanwhile: %s", reason[:_MOST_REASON])


def open_tracer(share: float) -> SpanTracer | None:
    """The tracer of this worker, as OTEL_* variables say. None if they are wrong, which is logged."""
    try:
        tracer = SpanTracer(share, collector())
    except Exception as error:  # without traces, requests are served all the same
        log.error("requests are not traced: %s", error)
        return None
    # what goes wrong from now on is logged here, once
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    return tracer


def collector() -> SpanExporter:
    """Where spans go."""
    return OtlpExporter()
