"""The endpoints of the operators' listener, one controller for each subject.

The page and the health of the instance need no token. Everything else needs a right (access.py).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, cast, get_args

from litestar import Controller, Request, Response, post, route
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter, SkipValidation
from litestar.response import ServerSentEvent, ServerSentEventMessage

from service.base.ipc import AccessLogEntry
from service.base.telemetry import Snapshot
from service.http.app import GUIDE_PATH, FinishedResponse
from service.http.documentation.routes import GUIDE, serve_page
from service.http.documentation.site import Site
from service.keys.record import KeyView
from service.operators.access import Access, Right
from service.operators.actions import Actions, NoOrder, Purged, RollbackOrder
from service.operators.events import EventBoard
from service.operators.history import Span
from service.operators.live import Broadcast, Rounds, Sampling
from service.operators.metrics import render_metrics
from service.operators.overview import History, Overview
from service.operators.page_files import INDEX, Page, wants_page
from service.operators.problems import OPERATOR_CODES
from service.operators.reasons import Health, readiness
from service.operators.state import InstanceState
from service.publishing.releases import RolledBack
from service.request import response
from service.request.errors import ApiError, Problem
from service.request.request import request_of, valid_request_id
from service.request.response import Header

log = logging.getLogger("forecast.operators")

_READ: tuple[Literal["GET"], Literal["HEAD"]] = ("GET", "HEAD")
_SPANS: tuple[Span, ...] = get_args(Span)
# Longest silence of an event stream, so that neither end considers the connection lost.
_HEARTBEAT_SECONDS = 5.0
_DESCRIPTION = "/schema/openapi.json"  # where Litestar serves it


def _errors(*statuses: int) -> dict[int, ResponseSpec]:
    """Returns these errors by status, for the OpenAPI description."""
    codes = {
        status: ", ".join(code for code, (its, _) in OPERATOR_CODES.items() if its == status) for status in statuses
    }
    return {
        status: ResponseSpec(Problem, generate_examples=False, description=f"code: {named}")
        for status, named in codes.items()
    }


_READING = _errors(400, 401, 421)
_CHANGING = _errors(400, 401, 403, 404, 409, 413, 415, 421, 503)

AnyRequest = Request[Any, Any, Any]
AnyConnection = ASGIConnection[Any, Any, Any, Any]


class WatchedInstance(Protocol):
    """The instance that the endpoints describe."""

    broadcast: Broadcast
    events: EventBoard

    def state(self) -> InstanceState:
        """Returns the newest known state."""
        ...

    async def look_at_disk(self) -> None:
        """Notices whether the embedded key store's disk is full."""
        ...

    async def sums(self) -> Snapshot:
        """Returns the sums of every worker's newest figures."""
        ...

    async def overview_now(self) -> Overview | None:
        """Returns the overview, refreshed if a worker has reported since; None before the first."""
        ...

    def history(self, span: Span) -> History: ...

    def partner_totals(self) -> list[tuple[str, Mapping[int, int]]]:
        """Returns the requests by status of the partners that metrics name."""
        ...

    async def find(self, request_id: str) -> list[AccessLogEntry]:
        """Returns the workers' log lines of one request."""
        ...

    def sample(self, share: float) -> None:
        """Sets the share of requests that are logged."""
        ...


# Dependencies. Litestar cannot validate our classes, and need not.
Watched = NamedDependency[SkipValidation[WatchedInstance]]
Changes = NamedDependency[SkipValidation[Actions]]
Files = NamedDependency[SkipValidation[Page]]
Documentation = NamedDependency[SkipValidation[Site]]
Scrapes = NamedDependency[SkipValidation[Rounds[bytes]]]


def headers_of(connection: AnyConnection) -> list[Header]:
    return list(connection.scope["headers"])


def has_right(connection: AnyConnection, needed: Right) -> bool:
    return access_of(connection).refusal(needed, headers_of(connection)) is None


def access_of(connection: AnyConnection) -> Access:
    return cast("Access", connection.app.state["access"])


# Guards are coroutines because Litestar runs a function in a thread, which may not start without memory.
async def guard_reading(connection: AnyConnection, _: BaseRouteHandler) -> None:
    """Raises ApiError unless the request may read."""
    access_of(connection).require(Right.READ, headers_of(connection))


async def guard_writing(connection: AnyConnection, _: BaseRouteHandler) -> None:
    """Raises ApiError unless the request may write, and its body, if it has one, is declared as JSON."""
    access_of(connection).require(Right.WRITE, headers_of(connection))
    headers = connection.headers
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    # A form on another site cannot declare JSON.
    declared = [value.partition(";")[0].strip().lower() for value in headers.getall("content-type", [])]
    if has_body and declared != ["application/json"]:
        raise ApiError("not_json")


class PageController(Controller):
    """The page for a browser, and the list of endpoints for a program."""

    include_in_schema = False

    @route("/", http_method=_READ)
    async def index(self, request: AnyRequest, page: Files) -> Response[Any]:
        if wants_page(headers_of(request)):
            return FinishedResponse(page[INDEX].reply(headers_of(request)))
        return Response({"endpoints": _endpoints(request)})

    @route("/page/{name:path}", http_method=_READ)
    async def file(self, request: AnyRequest, name: FromPath[Path], page: Files) -> response.Response:
        found = page.get(str(name).removeprefix("/"))
        if found is None:
            raise ApiError("not_found")
        return found.reply(headers_of(request))

    @route([GUIDE, f"{GUIDE_PATH}{{file:path}}"], http_method=_READ)
    async def documentation(self, request: AnyRequest, documentation: Documentation) -> response.Response:
        return serve_page(documentation, request_of(request.scope).sent_path, headers_of(request))


class HealthController(Controller):
    """Probes of balancers and orchestrators. They use any host name, and no token."""

    path = "/health"
    tags = ("health",)

    @route("/live", http_method=_READ)
    async def live(self) -> dict[str, str]:
        """Whether the process runs. It never looks at Redis."""
        return {"status": "live"}

    @route("/ready", http_method=_READ)
    async def ready(self, request: AnyRequest, instance: Watched) -> Response[Health]:
        """Whether the instance can answer partners. The reasons are shown to callers that may read."""
        await instance.look_at_disk()
        found = readiness(instance.state())
        shown = found if has_right(request, Right.READ) else Health(found.status)
        return Response(shown, status_code=503 if found.status == "unavailable" else 200)


class FiguresController(Controller):
    """Current and recent figures."""

    guards = (guard_reading,)
    tags = ("figures",)

    @route("/metrics", http_method=_READ, responses=_READING, media_type="text/plain; version=0.0.4")
    async def metrics(self, scrapes: Scrapes) -> bytes:
        """All metrics, in the text format of Prometheus."""
        return await scrapes.get()

    @route("/overview", http_method=_READ, responses=_READING)
    async def overview(self, instance: Watched) -> Overview:
        """Verdict, hit rates, latency, releases and events."""
        found = await instance.overview_now()
        if found is None:
            raise ApiError("unavailable", "The instance is starting. Try again.")
        return found

    @route("/history", http_method=_READ, responses=_READING)
    async def history(
        self, instance: Watched, span: Annotated[str, QueryParameter(description="10m, 2h or 24h.")] = "10m"
    ) -> History:
        """Rates and latency of a span, in steps."""
        if span not in _SPANS:
            raise ApiError("bad_request", f"span must be one of {', '.join(_SPANS)}.")
        return instance.history(span)

    @route("/events", http_method=_READ, responses=_READING)
    async def events(self, request: AnyRequest, instance: Watched) -> ServerSentEvent:
        """Server-sent events: `overview` once a second."""
        events = _overviews(instance.broadcast) if request.method == "GET" else ()
        return ServerSentEvent(events, headers={"Cache-Control": "no-store"})

    @route("/requests/{request_id:str}", http_method=_READ, responses=_READING)
    async def request_lines(self, request_id: FromPath[str], instance: Watched) -> list[AccessLogEntry]:
        """The log lines of one request."""
        found = await instance.find(request_id) if valid_request_id(request_id.encode()) else []
        if not found:
            raise ApiError("no_such_request")
        return found


class ChangesController(Controller):
    """Operators' changes. These endpoints exist only if a write token is set."""

    guards = (guard_writing,)
    tags = ("changes",)

    @post("/log/sampling", status_code=200, responses=_CHANGING)
    async def sample(self, request: AnyRequest, data: JSONBody[Sampling], instance: Watched) -> Sampling:
        """Set the share of requests that are logged."""
        instance.sample(data.rate)
        log.info("the share of requests that are logged was set to %g by %s", data.rate, _caller(request))
        return data

    @post("/keys/{key_id:str}/revoke", status_code=200, responses=_CHANGING)
    async def revoke(
        self,
        request: AnyRequest,
        key_id: FromPath[str],
        changes: Changes,
        data: JSONBody[NoOrder | None] = None,  # noqa: ARG002 - only {} is allowed
    ) -> KeyView:
        """Revoke a key."""
        return await changes.revoke(key_id, _caller(request))

    @post("/releases/rollback", status_code=200, responses=_CHANGING)
    async def roll_back(
        self, request: AnyRequest, changes: Changes, data: JSONBody[RollbackOrder | None] = None
    ) -> RolledBack:
        """Make the previous release current, or the one that the body names."""
        return await changes.roll_back(data.release if data is not None else None, _caller(request))

    @post("/caches/purge", status_code=200, responses=_CHANGING)
    async def purge(
        self,
        request: AnyRequest,
        changes: Changes,
        data: JSONBody[NoOrder | None] = None,  # noqa: ARG002 - only {} is allowed
    ) -> Purged:
        """Empty the shared cache and all near caches."""
        return await changes.purge(_caller(request))


def scrapes_of(instance: WatchedInstance) -> Rounds[bytes]:
    """Returns the scrapes, which run one at a time: each costs milliseconds here and in every worker."""

    async def rendered() -> bytes:
        figures = await instance.sums()
        return render_metrics(instance.state(), figures, instance.events.counted, instance.partner_totals())

    return Rounds(rendered)


async def _overviews(broadcast: Broadcast) -> AsyncIterator[ServerSentEventMessage]:
    """Yields each overview until the broadcast closes."""
    encoded = broadcast.newest()
    coming = asyncio.ensure_future(broadcast.next())
    try:
        while True:
            if encoded is not None:
                yield ServerSentEventMessage(encoded, event="overview")
            else:
                yield ServerSentEventMessage(None, comment="wait")
            await asyncio.wait([coming], timeout=_HEARTBEAT_SECONDS)
            encoded = None
            if coming.done():
                encoded = coming.result()
                if encoded is None:
                    return
                coming = asyncio.ensure_future(broadcast.next())
    finally:
        coming.cancel()


def _endpoints(request: AnyRequest) -> list[str]:
    """Returns the paths that the caller may call; those of changes begin with their method."""
    described = request.app.openapi_schema.paths or {}
    endpoints = [path for path, item in described.items() if item.get is not None]
    if has_right(request, Right.WRITE):
        endpoints += [f"POST {path}" for path, item in described.items() if item.post is not None]
    return [*endpoints, _DESCRIPTION]


def _caller(request: AnyRequest) -> str:
    return request.client.host if request.client is not None else "unknown"
