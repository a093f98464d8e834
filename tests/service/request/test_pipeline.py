"""The steps of a request in their order: inline until one has to wait, then in one task."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from service.base.terms import Terms
from service.request.resolve import DISPATCH
from service.request.response import Response
from tests.support.pipeline import BODY, KEY, OPEN, OTHER, PATH, TEST_KEY, Steps, key_with, request_for
from tests.support.watching import KeptTracer


def code_of(response: Response) -> str:
    code: str = msgspec.json.decode(response.whole(b"r1")[1])["code"]
    return code


async def test_a_hit_in_memory_is_answered_without_a_task(steps: Steps) -> None:
    first = steps.pipeline.run(steps.begin(request_for()))
    assert isinstance(first, asyncio.Task)
    assert (await first).body == BODY
    before = asyncio.all_tasks()
    request = steps.begin(request_for())
    second = steps.pipeline.run(request)
    assert isinstance(second, Response)
    assert request.found is not None
    assert (second.status, second.body, request.found.tier) == (200, BODY, "near")
    assert asyncio.all_tasks() == before


async def test_a_request_that_waits_twice_goes_on_in_the_same_task(steps: Steps) -> None:
    steps.keys.waits = True
    tasks: list[object] = []

    async def fill() -> bytes:
        tasks.append(asyncio.current_task())
        return BODY

    steps.fill = fill
    waiting = steps.pipeline.run(steps.begin(request_for()))
    assert isinstance(waiting, asyncio.Task)
    assert (await waiting).status == 200
    assert (steps.keys.judged, steps.resolved, len(tasks)) == (1, 1, 1)


async def test_an_error_of_a_waiting_step_ends_the_request(steps: Steps) -> None:
    steps.keys.waits = True
    waiting = steps.pipeline.run(steps.begin(request_for(key="another")))
    assert isinstance(waiting, asyncio.Task)
    assert code_of(await waiting) == "invalid_api_key"
    assert steps.resolved == 0


@pytest.mark.parametrize("where", ["inline", "in a task"])
async def test_an_exception_is_a_500_without_details(
    steps: Steps, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    steps.keys.waits = where == "in a task"

    steps.error = RuntimeError("secret of the inside")
    response = await steps.answer(request_for())
    assert (response.status, code_of(response)) == (500, "internal")
    assert b"secret" not in response.whole(b"r1")[1]
    assert "secret of the inside" in caplog.text
    assert [getattr(record, "request_id", None) for record in caplog.records] == ["r1"]


@pytest.mark.parametrize(("path", "key"), [(OTHER, KEY), (OPEN, None), (PATH, TEST_KEY)])
async def test_a_request_without_a_live_look_up_is_checked_and_dispatched(
    steps: Steps, path: str, key: str | None
) -> None:
    request = request_for(path, key=key)
    assert await steps.answer(request) is DISPATCH
    assert request.is_checked
    assert steps.resolved == 0


async def test_the_checks_have_one_order(steps: Steps) -> None:
    steps.keys.keys["elsewhere"] = key_with(Terms(areas=("projects",)))
    body = ((b"content-length", b"1"),)
    for expected, request in (
        ("body_not_allowed", request_for("/nowhere", b"x=1", key=None, headers=body)),
        ("missing_api_key", request_for("/nowhere", b"x=1", method="POST", key=None)),
        ("not_found", request_for("/nowhere", b"x=1", method="POST", key="elsewhere")),
        ("method_not_allowed", request_for(PATH, b"x=1", method="POST", key="elsewhere")),
        ("not_entitled", request_for(PATH, b"x=1", key="elsewhere")),
        ("invalid_parameter", request_for(PATH, b"x=1")),
        ("no_matching_records", request_for(PATH, b"id=0")),
    ):
        assert code_of(await steps.answer(request)) == expected


async def test_a_traced_request_has_a_span_for_each_step(tmp_path: Path) -> None:
    tracer = KeptTracer(1.0)
    steps = Steps(tmp_path, tracer)
    await steps.answer(request_for())
    request = request_for()
    response = await steps.answer(request)
    steps.pipeline.finish(request, response, b"")
    (trace, line), *_ = tracer.recorded
    assert [(one.name, one.parent.name if one.parent else "") for one in trace.steps] == [
        (name, "") for name in ("authenticate", "route", "admit", "resolve", "look_up", "respond")
    ]
    assert (line.status, response.body) == (200, BODY)
    assert steps.watch.lines[-1].trace_id == trace.trace_id


@pytest.mark.parametrize(
    ("path", "query", "last"),
    [(PATH, b"id=0", {"forecast.outcome": "no_matching_records"}), (OTHER, b"", {})],
    ids=["an error", "dispatched"],
)
async def test_the_last_step_of_a_trace_names_the_error(
    tmp_path: Path, path: str, query: bytes, last: dict[str, str]
) -> None:
    request = request_for(path, query)
    await Steps(tmp_path, KeptTracer(1.0)).answer(request)
    assert request.trace is not None
    assert [(one.name, dict(one.attributes)) for one in request.trace.steps] == [
        *((name, {}) for name in ("authenticate", "route", "admit")),
        ("resolve", last),
    ]
