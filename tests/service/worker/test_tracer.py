"""Traces of a worker: which spans a request has, from which tier it was answered, whoever asked."""

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from config.settings import Settings
from service.base.terms import Terms
from service.base.tracing import Trace
from service.worker import tracer as tracer_module
from service.worker.tracer import SpanTracer, open_tracer
from tests.service.request.test_access_log import ANSWERED
from tests.support.caller import Caller
from tests.support.served import FORECAST, Served, served
from tests.support.valkey import ValkeyProcess
from tests.support.wire import Answer

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
KEYLIKE = "phf_live_0B1zQmX4ktLw_0123456789abcdefghij"


class Traced:
    """A worker that traces everything, and what it exported."""

    def __init__(self, running: Served, exporter: InMemorySpanExporter) -> None:
        self.running = running
        self.exporter = exporter
        self.tracer = running.app.watch.tracer
        assert isinstance(self.tracer, SpanTracer)

    def ask(self, target: str, method: str = "GET", *, key: str | None = "", **headers: str) -> "Spans":
        self.exporter.clear()
        self.answer = self.running.ask(target, method, key=key, **headers)
        assert isinstance(self.tracer, SpanTracer)
        self.tracer.flush()
        return Spans(self.exporter.get_finished_spans())

    def forget_near(self) -> None:
        """Once the shared cache has what was near."""
        self.running.wait_until_stored()

        async def purge() -> None:
            for _ in self.running.app.near.purge():
                pass

        self.running.run(purge)


class Spans:
    """Those of one request. `server` is the request's own."""

    def __init__(self, all_: Sequence[ReadableSpan]) -> None:
        self.all = all_
        self.server = next((span for span in all_ if span.kind is SpanKind.SERVER), None)

    @property
    def names(self) -> list[tuple[str, str]]:
        """Each span and the one that it is a part of."""
        by_id = {span.context.span_id: span.name for span in self.all}
        return [(span.name, by_id.get(span.parent.span_id, "") if span.parent else "") for span in self.all]

    @property
    def steps(self) -> list[tuple[str, str]]:
        """The same without the wait for the key, which depends on how long ago it was checked."""
        return [one for one in self.names if one[0] != "key"]

    def attributes(self, name: str = "") -> dict[str, object]:
        (found,) = (span for span in self.all if (span.name == name if name else span is self.server))
        return dict(found.attributes or {})


@pytest.fixture(scope="module")
def traced(settings: Settings, short_folder: Path) -> Iterator[Traced]:
    server = ValkeyProcess(short_folder / "traces").start()
    exporter = InMemorySpanExporter()
    with contextlib.ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        stack.callback(server.kill)
        patched.setattr(tracer_module, "collector", lambda: exporter)
        own = msgspec.structs.replace(settings, cache_url=server.url, traces=1.0, access_log="all")
        with served(own) as running:
            yield Traced(running, exporter)


GET = f"GET {FORECAST}"


def test_each_tier_has_its_spans(traced: Traced, settings: Settings) -> None:
    target = f"{FORECAST}?city_name=springfield&state_code=IL"
    filled = traced.ask(target, key=Caller(traced.running, settings, Terms()).key)
    steps = [(name, GET) for name in ("authenticate", "route", "admit", "resolve", "look_up")]
    assert filled.names == [
        *((GET, ""), steps[0], ("key", "authenticate"), *steps[1:]),
        ("shared", "look_up"),
        ("single flight", "look_up"),
        ("warehouse", "single flight"),
        ("SELECT forecast", "warehouse"),
        ("respond", GET),
    ]
    assert filled.attributes()["forecast.tier"] == "warehouse"
    assert filled.attributes("key")["forecast.outcome"] == "accepted"
    assert filled.attributes("respond")["forecast.outcome"] == "answered_empty"
    assert filled.attributes("shared")["forecast.outcome"] == "miss"
    assert filled.attributes("single flight")["forecast.outcome"] == "led"
    assert filled.attributes("SELECT forecast") == {
        "db.system.name": "duckdb",
        "db.operation.name": "SELECT",
        "db.query.summary": "SELECT forecast",
        "forecast.lookups": 1,
    }
    assert {span.context.trace_id for span in filled.all} == {filled.all[0].context.trace_id}

    near = traced.ask(target)
    assert near.steps == [(GET, ""), *steps, ("respond", GET)]
    assert near.attributes()["forecast.tier"] == "near"

    traced.forget_near()
    shared = traced.ask(target)
    assert shared.steps == [(GET, ""), *steps, ("shared", "look_up"), ("respond", GET)]
    assert shared.attributes()["forecast.tier"] == "shared"
    assert shared.attributes("shared") == {
        "db.system.name": "redis",
        "db.operation.name": "GET",
        "forecast.outcome": "hit",
    }
    assert next(span for span in shared.all if span.name == "shared").kind is SpanKind.CLIENT


@pytest.mark.parametrize("tier", ["near", "shared"])
def test_an_answer_that_is_traced_is_the_same(traced: Traced, tier: str) -> None:
    target = f"{FORECAST}?zip_code=09001"

    def answered() -> Answer:
        traced.ask(target)
        if tier == "shared":
            traced.forget_near()
        traced.ask(target, X_Request_Id="r-1", Traceparent=f"00-{TRACE}-{CALLER}-01")
        kept = tuple(header for header in traced.answer.headers if header[0] != "date")
        return Answer(traced.answer.status, kept, traced.answer.body)

    traced.ask(target)
    with_spans = answered()
    assert traced.exporter.get_finished_spans()
    assert isinstance(traced.tracer, SpanTracer)
    share, traced.tracer.share = traced.tracer.share, 0.0
    assert answered() == with_spans
    assert traced.exporter.get_finished_spans() == ()
    traced.tracer.share = share


def test_a_caller_s_trace_is_taken_over(traced: Traced) -> None:
    target = f"{FORECAST}?zip_code=36436"
    spans = traced.ask(target, Traceparent=f"00-{TRACE}-{CALLER}-01", X_Request_Id="taken")
    assert spans.server is not None
    assert spans.server.parent is not None
    assert spans.server.parent.is_remote
    assert f"{spans.server.parent.span_id:016x}" == CALLER
    assert {f"{span.context.trace_id:032x}" for span in spans.all} == {TRACE}
    (line,) = traced.running.app.watch.log.find("taken")
    assert line.trace_id == TRACE
    assert f'"trace_id":"{TRACE}"' in msgspec.json.encode(line).decode()


def test_the_request_s_span_follows_the_conventions(traced: Traced) -> None:
    traced.ask(f"{FORECAST}/?zip_code=36436-0001", X_Request_Id="r-2")
    release = traced.running.app.follower.current
    assert release is not None
    spans = traced.ask(f"{FORECAST}/?zip_code=36436-0001", X_Request_Id="r-2")
    attributes = spans.attributes()
    assert len(str(attributes.pop("forecast.key_id"))) > 4
    assert attributes == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": FORECAST,
        "url.scheme": "http",
        "url.path": f"{FORECAST}/",
        "client.address": "testclient",
        "forecast.request_id": "r-2",
        "forecast.outcome": "answered",
        "forecast.area": "forecast",
        "forecast.tier": "near",
        "forecast.release": release.id,
        "forecast.query": attributes["forecast.query"],
    }
    assert "36436" in str(attributes["forecast.query"])
    assert "0001" not in str(attributes["forecast.query"])


def test_errors_are_traced(traced: Traced) -> None:
    unknown = traced.ask(f"{FORECAST}?zip_code=99999")
    assert unknown.steps == [(GET, ""), *((name, GET) for name in ("authenticate", "route", "admit", "resolve"))]
    assert unknown.attributes("resolve")["forecast.outcome"] == "no_matching_records"
    assert unknown.server is not None
    assert unknown.server.status.status_code is StatusCode.UNSET
    assert unknown.attributes()["forecast.outcome"] == "no_matching_records"
    again = traced.ask(f"{FORECAST}?zip_code=99999", X_Request_Id="r-404", Traceparent=f"00-{TRACE}-{CALLER}-01")
    assert again.attributes()["forecast.outcome"] == "no_matching_records"
    (line,) = traced.running.app.watch.log.find("r-404")
    assert line.trace_id == TRACE
    refused = traced.ask(f"{FORECAST}?zip_code=36436", key=KEYLIKE)
    assert refused.attributes("authenticate")["forecast.outcome"] == "invalid_api_key"
    nowhere = traced.ask("/made/up", "BREW")
    assert nowhere.server is not None
    assert nowhere.server.name == "_OTHER"
    assert "http.route" not in nowhere.attributes()


def test_no_key_is_in_a_span(traced: Traced) -> None:
    for target, headers in (
        (f"{FORECAST}?zip_code=36436&x={KEYLIKE}", {}),
        (f"/{KEYLIKE}", {}),
        (f"{FORECAST}?zip_code=36436", {"X_Request_Id": KEYLIKE, "Tracestate": f"a={KEYLIKE}", "User_Agent": KEYLIKE}),
    ):
        for _ in range(2):
            for key in (None, "", KEYLIKE):
                spans = traced.ask(target, key=key, **headers)
                assert spans.all
                said = " ".join(span.to_json() for span in spans.all)
                assert KEYLIKE not in said
                assert traced.running.key not in said


def test_all_spans_say_whose_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "forecast-eu")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
    exporter = InMemorySpanExporter()
    tracer = SpanTracer(1.0, exporter)
    tracer.record(Trace(None, 0.0), ANSWERED)
    tracer.stop(60)
    (span,) = exporter.get_finished_spans()
    said = dict(span.resource.attributes)
    assert said["service.name"] == "forecast-eu"
    assert said["deployment.environment.name"] == "staging"
    assert {"service.version", "service.instance.id", "process.pid"} <= said.keys()


class Away(SpanExporter):
    away = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.away:
            raise OSError(f"nobody takes {len(spans)}")
        return SpanExportResult.SUCCESS


def test_an_unreachable_collector_is_reported_once_and_lost_spans_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "forecast.traces")
    collector = Away()
    tracer = SpanTracer(1.0, collector)

    def tell(count: int) -> None:
        for _ in range(count):
            tracer.record(Trace(None, 0.0), ANSWERED)
        tracer.flush()

    for _ in range(3):
        tell(2)
    assert tracer.dropped == 6
    collector.away = False
    tell(1)
    collector.away = True
    tell(1)  # within the minute
    assert tracer.dropped == 7
    assert [record.getMessage() for record in caplog.records] == [
        "traces cannot be exported and are lost: nobody takes 2",
        "traces are exported again",
    ]
    tracer.stop(60)


class Silent(SpanExporter):
    """A collector that does not answer before it is told to."""

    def __init__(self) -> None:
        self.asked, self.answers = threading.Event(), threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked.set()
        self.answers.wait(60)
        return SpanExportResult.SUCCESS


def test_more_than_can_wait_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer_module, "_MOST_WAITING", 512)
    collector = Silent()
    tracer = SpanTracer(1.0, collector)
    for _ in range(600):
        tracer.record(Trace(None, 0.0), ANSWERED)
    assert tracer.dropped == 88
    collector.answers.set()
    tracer.flush()
    tracer.record(Trace(None, 0.0), ANSWERED)
    tracer.stop(60)
    assert (tracer.dropped, tracer._exports.done) == (88, 513)


def test_wrong_variables_end_no_worker(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A worker that ended because of them would be started for ever."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "-1")
    assert open_tracer(1.0) is None
    assert "requests are not traced: schedule_delay_millis must be positive." in caplog.text


def test_a_silent_collector_holds_up_no_end() -> None:
    collector = Silent()
    tracer = SpanTracer(1.0, collector)
    for _ in range(600):  # more than a batch
        tracer.record(Trace(None, 0.0), ANSWERED)
    assert collector.asked.wait(60)
    tracer.stop(0.01)
    assert not collector.answers.is_set()
    assert tracer._exports.done == 0
    collector.answers.set()
