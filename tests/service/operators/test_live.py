"""What operators see now and lately: once, live, and by request."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from config.settings import Settings
from service.base.sockets import bind, url_of
from service.base.telemetry import REQUESTS
from service.operators.access import Access
from service.operators.app import build_operators_app
from service.operators.listener import OperatorsListener
from service.operators.overview import History, Overview
from tests.service.operators.test_state import WELL, instance
from tests.service.request.test_access_log import ANSWERED, FAILED
from tests.support.operators import JSON, READ, WRITE, Watched, actions, ask


def watched() -> Watched:
    return Watched(lambda: instance(WELL))


async def test_the_overview_is_what_the_structs_say() -> None:
    answer = await ask(build_operators_app(watched()), "/overview")
    seen = msgspec.json.decode(answer.body, type=Overview)
    assert msgspec.json.encode(seen) == answer.body
    assert (answer.headers["cache-control"], seen.verdict.level) == ("no-store", "ok")


async def test_before_there_is_an_overview_it_is_a_503() -> None:
    class Young(Watched):
        def overview(self) -> None:
            return None

    answer = await ask(build_operators_app(Young(lambda: instance(WELL))), "/overview")
    assert answer.problem() == (503, "unavailable")


async def test_the_history_has_a_span() -> None:
    app = build_operators_app(watched())
    for query, step in (("", 1.0), ("span=10m", 1.0), ("span=2h", 10.0), ("span=24h", 60.0)):
        answer = await ask(app, "/history", query=query)
        assert msgspec.json.decode(answer.body, type=History).step == step
    answer = await ask(app, "/history", query="span=1y")
    assert answer.problem() == (400, "bad_request")
    assert "10m, 2h, 24h" in answer.json()["detail"]


async def test_a_request_is_found_by_its_id() -> None:
    found = watched()
    found.logged = [ANSWERED, FAILED]
    app = build_operators_app(found)
    (request,) = (await ask(app, "/requests/r2")).json()
    assert (request["status"], request["request_id"], request["query"]) == (503, "r2", "zip_code=90210")
    for unknown in ("nobody", "a b", "x" * 100):
        assert (await ask(app, f"/requests/{unknown}")).problem() == (404, "no_such_request")


async def test_the_sample_of_the_log_can_be_changed_with_the_write_token(tmp_path: Path) -> None:
    found = watched()
    changes = actions(Settings(data_dir=str(tmp_path)), "redis://h")
    app = build_operators_app(found, Access(READ, WRITE), changes)
    body = b'{"rate": 0.05}'
    assert (await ask(app, "/log/sampling", "POST", token=READ, body=body, **JSON)).status == 403
    assert (await ask(app, "/log/sampling", "POST", token=WRITE, body=body, **JSON)).json() == {"rate": 0.05}
    for wrong in (b'{"rate": 5}', b'{"rate": -0.1}', b'{"rate": "x"}', b"{}", b'{"share": 1}'):
        refused = await ask(app, "/log/sampling", "POST", token=WRITE, body=wrong, **JSON)
        assert refused.problem() == (400, "invalid_body")
    assert found.shares == [0.05]


async def test_a_stream_sends_every_overview_until_the_listener_stops(tmp_path: Path) -> None:
    found = watched()
    seen: list[dict[str, Any]] = []
    settings = Settings(data_dir=str(tmp_path))
    with bind("127.0.0.1", 0, "operator_port") as bound:
        listener = OperatorsListener(settings, bound, actions(settings, "unix:///nowhere"))
        listener.start(found)
        async with (
            httpx.AsyncClient(base_url=url_of(bound), timeout=30) as client,
            client.stream("GET", "/events") as stream,
        ):
            assert stream.headers["content-type"].startswith("text/event-stream")
            async for line in stream.aiter_lines():
                if not line.startswith("data: "):
                    continue
                seen.append(json.loads(line.removeprefix("data: ")))
                if len(seen) == 3:
                    stopped = asyncio.create_task(listener.stop(60))
                else:
                    found.telemetry.count(REQUESTS, "forecast", "200", "answered")
                    asyncio.get_running_loop().call_soon(found.look)
            await asyncio.wait_for(stopped, 30)
    assert [one["verdict"]["level"] for one in seen] == ["ok"] * 3
    assert [one["at"] for one in seen] == sorted({one["at"] for one in seen})


async def test_nothing_is_encoded_without_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    found = watched()
    encoded = 0
    overview = found.observer.overview

    def counting() -> Overview | None:
        nonlocal encoded
        encoded += 1
        return overview()

    monkeypatch.setattr(found.observer, "overview", counting)
    found.look()
    assert encoded == 0
    waiting = [asyncio.ensure_future(found.broadcast.next()) for _ in range(10)]
    await asyncio.sleep(0)
    found.look()
    assert len(set(await asyncio.gather(*waiting))) == 1
    assert encoded == 1
