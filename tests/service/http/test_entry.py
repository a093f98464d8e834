"""The ASGI door: the pipeline's checks, an application behind them, and the record of what it answered."""

from pathlib import Path
from typing import Any

import pytest

from service.base.telemetry import KEY_CHECKS, REQUESTS
from service.http.entry import Entry
from service.http.sandbox.app import Sandbox
from service.request.request import request_of
from service.request.response import JSON, SCOPE_KEY, Response
from tests.support.asgi import exchange
from tests.support.pipeline import KEY, OPEN, OTHER, PATH, TEST_KEY, Steps, request_for

GOOD = Response.of(200, (JSON,), b"{}", "answered")


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return Steps(tmp_path)


def entry(steps: Steps, live: Any = GOOD, test: Any = GOOD) -> Entry:
    return Entry(steps.pipeline, live, Sandbox(test, frozenset({PATH})))


async def ask(app: Entry, path: str, method: str = "GET", *, key: str | None = KEY, **more: Any) -> tuple[Any, bytes]:
    keys = [(b"x-api-key", key.encode())] if key is not None else []
    headers = [(b"host", b"a"), (b"x-request-id", b"r1"), *keys]
    return await exchange(app, path, method, **{"headers": headers, **more})


def status_of(answer: tuple[Any, bytes]) -> int:
    status: int = answer[0]["status"]
    return status


async def test_the_application_answers_what_was_checked(steps: Steps) -> None:
    start, body = await ask(entry(steps), OTHER)
    assert (start["status"], body) == (200, b"{}")
    assert (b"x-request-id", b"r1") in start["headers"]
    assert steps.telemetry.sum(REQUESTS, area="index", status="200", outcome="answered") == 1
    (line,) = steps.watch.lines
    assert (line.status, line.method, line.path, line.outcome) == (200, "GET", "/v1/", "answered")


async def test_what_is_refused_never_reaches_the_application(steps: Steps) -> None:
    async def reached(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError(scope["path"])

    app = entry(steps, reached, reached)
    for path in (PATH, OTHER, "/nowhere"):
        assert status_of(await ask(app, path, key=None)) == 401
    assert status_of(await ask(app, "/nowhere")) == 404
    assert status_of(await ask(app, OTHER, "POST")) == 405
    assert status_of(await ask(app, OTHER, key=TEST_KEY)) == 404
    assert status_of(await ask(app, OTHER, headers=[(b"x-api-key", KEY.encode())])) == 400


@pytest.mark.parametrize(("key", "answered"), [(KEY, b"live"), (TEST_KEY, b"test")])
async def test_test_keys_are_answered_from_test_data_alone(steps: Steps, key: str, answered: bytes) -> None:
    app = entry(steps, *(Response.of(200, (), body, "answered") for body in (b"live", b"test")))
    start, body = await ask(app, PATH, key=key)
    assert body == answered
    assert ((b"x-test-answer", b"true") in start["headers"]) is (key == TEST_KEY)


async def test_the_application_sees_a_get_at_the_path_without_its_slash(steps: Steps) -> None:
    seen: list[tuple[str, str, bytes]] = []

    async def look(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["method"], scope["path"], request_of(scope).request_id))
        await GOOD(scope, receive, send)

    app = entry(steps, look)
    for method, path in (("GET", f"{PATH}/"), ("HEAD", PATH)):
        assert status_of(await ask(app, path, method)) == 200
    assert seen == [("GET", PATH, b"r1")] * 2


async def test_an_exception_is_a_500_that_shows_nothing(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("secret of the inside")

    start, body = await ask(entry(steps, broken), OPEN, key=None)
    assert start["status"] == 500
    assert b"secret of the inside" not in body
    assert b'"request_id":"r1"' in body
    assert "secret of the inside" in caplog.text
    assert steps.telemetry.sum(REQUESTS, status="500") == 1


async def test_an_answer_that_fails_after_its_head_is_not_completed(steps: Steps) -> None:
    """The server closes the connection: a partial answer must not look whole."""

    async def partial(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        await ask(entry(steps, partial), OTHER)


async def test_while_it_drains_every_answer_is_the_last_of_its_connection(steps: Steps) -> None:
    app = entry(steps)
    assert (b"connection", b"close") not in (await ask(app, OTHER))[0]["headers"]
    app.pipeline.draining = True
    assert (b"connection", b"close") in (await ask(app, OTHER))[0]["headers"]


async def test_a_request_that_was_checked_before_is_not_checked_again(steps: Steps) -> None:
    """As one that our own connection hands over: its token is taken once."""
    request = steps.begin(request_for(OTHER))
    steps.pipeline.run(request)
    scope: dict[str, Any] = {SCOPE_KEY: request}
    assert status_of(await ask(entry(steps), OTHER, key=None, **scope)) == 200
    assert steps.telemetry.sum(KEY_CHECKS) == 1
