"""What goes to the collector is what the SDK would send."""

import msgspec
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan

from service.base.tracing import CallerContext, Trace
from service.worker.otlp import ExportError, OtlpExporter, encoded
from service.worker.spans import SpanMaker
from tests.service.edge.requests.test_log import ANSWERED, FAILED


def some_spans() -> list[ReadableSpan]:
    """With and without a caller, steps, errors."""
    maker = SpanMaker()
    plain, called = (
        Trace(None, 10.0),
        Trace(CallerContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", True), 11.0),
    )
    called.note("shared", 11.0, 11.1, {"db.system.name": "redis"}, remote=True)
    called.note("SELECT forecast", 11.1, 11.2, {"forecast.lookups": 3}, parent=called.steps[0], error="LookupTimeout")
    query = msgspec.structs.replace(ANSWERED, query="city_name=Doña Ana&state_code=NM", path="/v1/x/")
    return [span for trace, request in ((plain, query), (called, FAILED)) for span in maker.spans_of(trace, request)]


def test_spans_are_encoded_as_the_sdk_encodes_them() -> None:
    spans = some_spans()
    ours, theirs = ExportTraceServiceRequest.FromString(encoded(spans)), encode_spans(spans)
    (whole,), (other,) = ours.resource_spans, theirs.resource_spans
    assert whole.resource == other.resource
    (part,), (other_part,) = whole.scope_spans, other.scope_spans
    assert (part.scope.name, part.scope.version) == (other_part.scope.name, other_part.scope.version)
    assert len(part.spans) == len(other_part.spans) == 4
    for one, another in zip(part.spans, other_part.spans, strict=True):
        for span in (one, another):  # their order says nothing
            span.attributes.sort(key=lambda attribute: attribute.key)
        assert one == another


def test_a_batch_that_was_not_sent_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as nobody listens and no more tries are left."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    exporter = OtlpExporter()
    with pytest.raises(ExportError, match="Connection refused"):
        exporter.export(some_spans())
