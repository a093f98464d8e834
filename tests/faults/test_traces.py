"""What becomes of requests, and of stopping, with a collector of traces that is there, away, or silent."""

import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.faults.conftest import Site
from tests.support.instance import serving
from tests.support.waiting import until

# Of a near hit, one for each step that it enters, in their order.
STEPS = ["authenticate", "route", "admit", "resolve", "look_up", "respond"]


class Collector:
    """Takes what is sent to it; `tokens` has the Authorization of each request."""

    def __init__(self) -> None:
        self.messages: list[ExportTraceServiceRequest] = []
        self.tokens: set[str | None] = set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.tokens.add(self.headers["authorization"])
                outer.messages.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
                """Nobody reads it."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def spans(self, request_id: str) -> list[str]:
        """Names of the spans of that request's trace."""
        all_ = [
            span
            for message in self.messages
            for resource in message.resource_spans
            for part in resource.scope_spans
            for span in part.spans
        ]
        (trace_id,) = (
            span.trace_id
            for span in all_
            if any(one.key == "forecast.request_id" and one.value.string_value == request_id for one in span.attributes)
        )
        return [span.name for span in all_ if span.trace_id == trace_id]


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def test_what_was_traced_last_is_exported_before_the_end(published: Site, short: Path, collector: Collector) -> None:
    """As the standard variables say; far before the next batch is due."""
    env = {
        **published.env,
        "FORECAST_TRACES": "100%",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20of-the-collector",
        "OTEL_BSP_SCHEDULE_DELAY": "600000",
    }
    with serving(env, short / "serve.log") as instance:
        for _ in range(3):
            answer = instance.zip_code(published.key)
        assert answer.headers["cache-status"] == "forecast; hit; detail=near"
        assert collector.messages == []
        assert instance.stop() == 0
    assert collector.tokens == {"Bearer of-the-collector"}
    name = "GET /v1/population-housing-forecast"
    assert collector.spans(answer.headers["x-request-id"]) == [name, *STEPS]
    assert "traces" not in (short / "serve.log").read_text()


def test_with_a_silent_collector_requests_and_stopping_are_as_ever(published: Site, short: Path) -> None:
    """What cannot be exported is counted, and told once."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen(1)  # the kernel accepts; no process answers
        env = {
            **published.env,
            "FORECAST_TRACES": "100%",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{bound.getsockname()[1]}",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "0.3",
            "OTEL_BSP_SCHEDULE_DELAY": "20",
        }
        with serving(env, short / "serve.log") as instance:
            before = 0.0
            for _ in range(3):  # of which each fails an export
                assert [instance.zip_code(published.key).status_code for _ in range(20)] == [200] * 20
                until(lambda: instance.metric("forecast_traces_dropped_total") > before)  # noqa: B023 - at once
                before = instance.metric("forecast_traces_dropped_total")
            assert instance.ready().json()["status"] == "ready"
            instance.zip_code(published.key)
            assert instance.stop() == 0
            reported = [
                line for line in instance.log() if line["logger"].startswith(("forecast.traces", "opentel", "urllib3"))
            ]
    assert len(reported) == 1
    assert reported[0]["message"].startswith("traces cannot be exported and are lost: ")
    assert published.key not in (short / "serve.log").read_text()
