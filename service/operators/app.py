"""The operators' application: liveness, readiness, metrics. It runs in the supervisor and needs no key."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from litestar import Litestar, get
from litestar.types import ASGIApp

from service.http.errors import NO_STORE
from service.http.reply import JSON, Reply
from service.operators.metrics import render
from service.operators.state import InstanceState, readiness
from service.telemetry import Snapshot

_METRICS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_INDEX = b'{"endpoints":["/health/live","/health/ready","/metrics"]}'


def build_operators_app(
    state: Callable[[], InstanceState], sums: Callable[[], Awaitable[Snapshot]]
) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """`state` is what is known at once; `sums` asks every worker for its newest figures."""

    @get("/")
    async def index() -> ASGIApp:
        return Reply(200, (JSON, NO_STORE), _INDEX, "answered")

    @get("/health/live")
    async def live() -> ASGIApp:
        return Reply(200, (JSON, NO_STORE), b'{"status":"live"}', "answered")

    @get("/health/ready")
    async def ready() -> ASGIApp:
        found = readiness(state())
        status = 503 if found.status == "unavailable" else 200
        return Reply(status, (JSON, NO_STORE), msgspec.json.encode(found), found.status)

    @get("/metrics")
    async def metrics() -> ASGIApp:
        figures = await sums()
        return Reply(200, (_METRICS, NO_STORE), render(state(), figures), "answered")

    return Litestar([index, live, ready, metrics], openapi_config=None, logging_config=None)
