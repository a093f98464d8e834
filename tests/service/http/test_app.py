"""The framework's application: what goes wrong in a handler becomes an error of the contract."""

import logging
from typing import Any

import msgspec
import pytest
from litestar import get
from litestar.types import ASGIApp

from service.http.app import build_litestar
from service.request.errors import ApiError
from service.request.request import Request
from service.request.response import JSON, SCOPE_KEY, Response
from tests.support.asgi import exchange


@get("/good")
async def _good() -> ASGIApp:
    return Response.of(200, (JSON,), b"{}", "answered")


@get("/refused")
async def _refused() -> ASGIApp:
    raise ApiError("unavailable") from OSError("disk")


@get("/broken")
async def _broken() -> ASGIApp:
    raise RuntimeError("secret of the inside")


async def _ask(path: str) -> tuple[int, Any]:
    scope: dict[str, Any] = {SCOPE_KEY: Request(0.0, b"r1")}
    start, body = await exchange(build_litestar([_good, _refused, _broken]), path, **scope)
    return start["status"], msgspec.json.decode(body)


async def test_a_response_goes_out_as_it_is() -> None:
    assert await _ask("/good") == (200, {})


async def test_an_api_error_is_answered_and_its_cause_logged(caplog: pytest.LogCaptureFixture) -> None:
    status, body = await _ask("/refused")
    assert (status, body["code"], body["request_id"]) == (503, "unavailable", "r1")
    assert "disk" in caplog.text
    assert "disk" not in str(body)


async def test_any_other_exception_is_a_500_that_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    status, body = await _ask("/broken")
    assert (status, body["code"]) == (500, "internal")
    assert "secret" not in str(body)
    assert "secret of the inside" in caplog.text
