"""What is noted of a traced request; and that nothing is of others."""

import asyncio
import subprocess
import sys

import pytest

from service.base import tracing
from service.base.tracing import CallerContext, Trace, caller_context, step

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SENT = f"00-{TRACE}-{SPAN}-01".encode()


@pytest.mark.parametrize(("flags", "sampled"), [("01", True), ("00", False), ("03", True), ("02", False), ("ff", True)])
def test_a_caller_s_context_is_read(flags: str, sampled: bool) -> None:
    sent = f" 00-{TRACE}-{SPAN}-{flags}\t".encode()
    assert caller_context([sent]) == CallerContext(TRACE, SPAN, sampled)


def test_a_later_version_may_say_more() -> None:
    assert caller_context([b"cc" + SENT[2:] + b"-what the future will be like"]) == CallerContext(TRACE, SPAN, True)
    assert caller_context([b"cc" + SENT[2:]]) == CallerContext(TRACE, SPAN, True)


@pytest.mark.parametrize(
    "sent",
    [
        b"ff" + SENT[2:],
        SENT + b"-more",
        b"cc" + SENT[2:] + b"more",
        SENT.upper(),
        SENT[:-1],
        SENT.replace(b"-", b"_"),
        SENT.replace(TRACE.encode(), b"0" * 32),
        SENT.replace(SPAN.encode(), b"0" * 16),
        SENT.replace(TRACE.encode(), b"x" * 32),
    ],
)
def test_a_malformed_or_repeated_context_is_ignored(sent: bytes) -> None:
    for contexts in ([sent], [SENT, SENT], []):
        assert caller_context(contexts) is None
    trace = tracing.begin([sent], 0.0)
    assert trace is not None
    assert len(trace.trace_id) == 32
    assert int(trace.trace_id, 16) != int(TRACE, 16)


def test_a_caller_who_does_not_record_is_not_traced() -> None:
    assert tracing.begin([SENT[:-1] + b"0"], 0.0) is None
    trace = tracing.begin([SENT], 0.0)
    assert trace is not None
    assert trace.trace_id == TRACE


def names(trace: Trace) -> list[tuple[str, str]]:
    return [(one.name, one.parent.name if one.parent is not None else "") for one in trace.steps]


async def test_steps_are_parts_of_those_around_them() -> None:
    trace, other = Trace(None, 0.0), Trace(None, 0.0)

    async def work(name: str) -> None:
        with step(name):
            await asyncio.sleep(0)
            with step(f"{name}, more"):
                await asyncio.sleep(0)

    async def answer(trace: Trace | None, name: str) -> None:
        tracing.enter(trace)
        with step(name) as outer:
            outer.set("forecast.outcome", "hit")
            await asyncio.create_task(work(f"task of {name}"))

    await asyncio.gather(answer(trace, "a"), answer(other, "b"), answer(None, "c"))
    assert names(trace) == [("a", ""), ("task of a", "a"), ("task of a, more", "task of a")]
    assert names(other) == [("b", ""), ("task of b", "b"), ("task of b, more", "task of b")]
    assert trace.steps[0].attributes == {"forecast.outcome": "hit"}
    for one in trace.steps:
        assert one.ended is not None
        assert one.ended >= one.began


async def test_a_task_of_one_request_can_serve_the_next_without_telling_of_it() -> None:
    """Connections start the task of a pipelined request within that of the one before."""
    trace = Trace(None, 0.0)
    tracing.enter(trace)

    async def next_request() -> None:
        tracing.enter(None)
        with step("near"):
            pass

    await asyncio.create_task(next_request())
    assert trace.steps == []


async def test_a_step_says_what_ended_it() -> None:
    trace = Trace(None, 0.0)
    tracing.enter(trace)
    with pytest.raises(ValueError, match="broken"), step("warehouse"):
        raise ValueError("broken")
    assert [one.error for one in trace.steps] == ["ValueError"]


async def test_after_it_was_recorded_nothing_is_noted() -> None:
    """A task that goes on for ever must not fill the memory; nor may one request without end."""
    trace = Trace(None, 0.0)
    tracing.enter(trace)
    statement = tracing.statement_of("forecast")
    trace.recorded = True
    with step("late"):
        assert tracing.statement_of("forecast") is None
    assert statement is not None
    statement(0.0, 0.1, 1, None)
    assert trace.steps == []
    trace.recorded = False
    for _ in range(1_000):
        with step("again"):
            pass
    assert len(trace.steps) == 100


def test_nothing_is_loaded_where_nothing_is_traced() -> None:
    code = """
import sys
import service.cli.main, service.instance.supervisor, service.worker.serving
from config.settings import Settings
from service.base.ipc import Endpoints
from service.worker.assembly import WorkerApp
url = "redis://127.0.0.1:1"
app = WorkerApp(Settings(data_dir="/nowhere"), Endpoints(url, url, b"pepper"), lambda _: None)
assert app.watch.tracer is None
named = ("opentelemetry.sdk", "opentelemetry.exporter", "google.protobuf", "requests")
print([name for name in named if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == ("[]\n", 0), ran.stderr
