"""The endpoints of the operators' listener, one controller for each subject.

The health of the instance needs no token. Everything else needs a right (access.py).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Protocol, get_args

from litestar import Controller, Response, post, route
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter, SkipValidation
from litestar.response import ServerSentEvent, ServerSentEventMessage

from service.base.ipc import AccessLogEntry
from service.base.telemetry import Snapshot
from service.operators.access import Right
from service.operators.actions import Actions, Purged, RollbackOrder
from service.operators.events import EventBoard
from service.operators.guards import READ, WITH_TOKEN, AnyRequest, By, errors, has_right, needing
from service.operators.history import Span
from service.operators.live import Broadcast, Rounds, Sampling
from service.operators.metrics import render_metrics
from service.operators.overview import History, Overview
from service.operators.reasons import Health, readiness
from service.operators.state import InstanceState
from service.publishing.releases import RolledBack
from service.request.errors import ApiError
from service.request.request import valid_request_id

log = logging.getLogger("forecast.operators")

_SPANS: tuple[Span, ...] = get_args(Span)
# Longest silence of an event stream, so that neither end considers the connection lost.
_HEARTBEAT_SECONDS = 5.0


_READING = errors(400, 401, 421)
_CHANGING = errors(400, 401, 403, 404, 409, 413, 415, 421, 503)


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
        """Returns the overview, refreshed; None before the first."""
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
Scrapes = NamedDependency[SkipValidation[Rounds[bytes]]]


class HealthController(Controller):
    """Probes of balancers and orchestrators. They use any host name, and no token."""

    path = "/health"
    tags = ("health",)

    @route("/live", http_method=READ)
    async def live(self) -> dict[str, str]:
        """Whether the process runs. It never looks at Redis."""
        return {"status": "live"}

    @route("/ready", http_method=READ)
    async def ready(self, request: AnyRequest, instance: Watched) -> Response[Health]:
        """Whether the instance can answer partners. The reasons are shown to callers that may read."""
        await instance.look_at_disk()
        found = readiness(instance.state())
        shown = found if has_right(request, Right.READ) else Health(found.status)
        return Response(shown, status_code=503 if found.status == "unavailable" else 200)


class FiguresController(Controller):
    """Current and recent figures."""

    guards = (needing(Right.READ),)
    tags = ("figures",)
    security = WITH_TOKEN

    @route("/metrics", http_method=READ, responses=_READING, media_type="text/plain; version=0.0.4")
    async def metrics(self, scrapes: Scrapes) -> bytes:
        """All metrics, in the text format of Prometheus."""
        return await scrapes.get()

    @route("/overview", http_method=READ, responses=_READING)
    async def overview(self, instance: Watched) -> Overview:
        """Verdict, hit rates, latency, releases and events."""
        found = await instance.overview_now()
        if found is None:
            raise ApiError("unavailable", "The instance is starting. Try again.")
        return found

    @route("/history", http_method=READ, responses=_READING)
    async def history(
        self, instance: Watched, span: Annotated[str, QueryParameter(description="10m, 2h or 24h.")] = "10m"
    ) -> History:
        """Rates and latency of a span, in steps."""
        if span not in _SPANS:
            raise ApiError("bad_request", f"span must be one of {', '.join(_SPANS)}.")
        return instance.history(span)

    @route("/events", http_method=READ, responses=_READING)
    async def events(self, request: AnyRequest, instance: Watched) -> ServerSentEvent:
        """Server-sent events: `overview` once a second."""
        events = _overviews(instance.broadcast) if request.method == "GET" else ()
        return ServerSentEvent(events, headers={"Cache-Control": "no-store"})

    @route("/requests/{request_id:str}", http_method=READ, responses=_READING)
    async def request_lines(self, request_id: FromPath[str], instance: Watched) -> list[AccessLogEntry]:
        """The log lines of one request."""
        found = await instance.find(request_id) if valid_request_id(request_id.encode()) else []
        if not found:
            raise ApiError("no_such_request")
        return found


class ChangesController(Controller):
    """Operators' changes. These endpoints exist only if a write token is set."""

    guards = (needing(Right.WRITE),)
    tags = ("changes",)

    @post("/log/sampling", status_code=200, responses=_CHANGING)
    async def sample(self, by: By, data: JSONBody[Sampling], instance: Watched) -> Sampling:
        """Set the share of requests that are logged."""
        instance.sample(data.rate)
        log.info("the share of requests that are logged was set to %g by %s", data.rate, by)
        return data

    @post("/releases/rollback", status_code=200, responses=_CHANGING)
    async def roll_back(self, by: By, changes: Changes, data: JSONBody[RollbackOrder | None] = None) -> RolledBack:
        """Make the previous release current, or the one that the body names."""
        return await changes.roll_back(data.release if data is not None else None, by)

    @post("/caches/purge", status_code=200, responses=_CHANGING)
    async def purge(self, by: By, changes: Changes) -> Purged:
        """Empty the shared cache and all near caches."""
        return await changes.purge(by)


def scrapes_of(instance: WatchedInstance) -> Rounds[bytes]:
    """Returns the scrapes, which run one at a time: each costs milliseconds here and in every worker."""

    async def rendered() -> bytes:
        figures = await instance.sums()
        return render_metrics(instance.state(), figures, instance.events.counted, instance.partner_totals())

    return Rounds(rendered)


async def _overviews(broadcast: Broadcast) -> AsyncIterator[ServerSentEventMessage]:
    """Yields each overview until the broadcast closes."""
    encoded = broadcast.newest()
    while True:
        coming = broadcast.next()  # before the yield, which lasts until a slow reader has taken the last one
        if encoded is not None:
            yield ServerSentEventMessage(encoded, event="overview")
        else:
            yield ServerSentEventMessage(None, comment="wait")
        await asyncio.wait([coming], timeout=_HEARTBEAT_SECONDS)
        encoded = coming.result() if coming.done() else None
        if coming.done() and encoded is None:
            return
