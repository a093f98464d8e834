"""The operators' application: health and metrics of the whole instance, and, with a write token, a few changes.

It runs in the supervisor. A few fixed paths need no router, and a framework's would answer HEAD, OPTIONS and errors in
its own way.
"""

import logging
import re
import time
from typing import Any, Protocol

import msgspec

from service.base.seen import LoggedRequest
from service.base.telemetry import Snapshot
from service.http.errors import NO_STORE, ApiError
from service.http.head import read_head
from service.http.reply import Header, Reply, Send
from service.operators.access import Right, Tokens
from service.operators.actions import Actions, NoOrder, RollbackOrder
from service.operators.body import decoded, read_body
from service.operators.endpoint import Answer, Endpoint, EndpointCall, json_reply
from service.operators.events import EventBoard
from service.operators.history import Span
from service.operators.live import Broadcast, Sampling, live_endpoints
from service.operators.metrics import render_metrics
from service.operators.origins import Hosts, is_cross_site
from service.operators.overview import History, Overview
from service.operators.page_files import INDEX, read_page, wants_page
from service.operators.problems import of_error, refusal_reply
from service.operators.rounds import Rounds
from service.operators.state import Health, InstanceState, readiness

log = logging.getLogger("forecast.operators")

_METRICS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_READABLE = (
    "/health/live",
    "/health/ready",
    "/metrics",
    "/overview",
    "/history",
    "/events",
    "/requests/REQUEST_ID",
)
# Enough for balancers, scrapers and people. One more replaces the connection that has been idle longest.
MOST_CONNECTIONS = 100
_WRITABLE = ("POST /log/sampling", "POST /keys/KEY_ID/revoke", "POST /releases/rollback", "POST /caches/purge")


class WatchedInstance(Protocol):
    """What the application asks of its instance."""

    broadcast: Broadcast
    events: EventBoard

    def state(self) -> InstanceState:
        """What is known now."""
        ...

    async def sums(self) -> Snapshot:
        """Asks every worker for its newest figures; returns the sums."""
        ...

    async def overview_now(self) -> Overview | None:
        """The overview, looked at anew if workers say something else by now."""
        ...

    def history(self, span: Span) -> History: ...

    async def find(self, request_id: str) -> list[LoggedRequest]:
        """Asks every worker what it knows of a request."""
        ...

    def sample(self, share: float) -> None:
        """Logs so large a share of requests from now on."""
        ...


class OperatorsApp:
    """The ASGI application of one instance; its `OperatorsListener` owns it. The server omits the body of a HEAD."""

    most_connections = MOST_CONNECTIONS
    connection_age = 0.0

    def __init__(self, endpoints: list[Endpoint], tokens: Tokens, hosts: Hosts | None) -> None:
        self._endpoints = endpoints
        self._tokens = tokens
        self._hosts = hosts

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        head = read_head(scope["headers"], time.perf_counter())
        try:
            reply: Answer = await self._answer(scope, receive)
        except Exception as error:
            if not isinstance(error, ApiError):  # without the path: a key may have been put there by mistake
                log.exception("request failed", extra={"request_id": head.request_id})
            reply = of_error(error, head.request_id)
        request_id = (b"x-request-id", head.request_id.encode())
        if isinstance(reply, Reply):
            reply = msgspec.structs.replace(reply, headers=(*reply.headers, request_id))
        await reply(scope, receive, send)

    def rejected(self, code: str) -> None:
        """The connection refused a request. Logged at debug, so that strangers cannot fill the log."""
        log.debug("refused: %s", code)

    def refusal(
        self,
        code: str,
        request_id: str,
        address: str | None,  # noqa: ARG002 - never logged
        detail: str | None = None,
    ) -> Reply:
        return refusal_reply(code, request_id, detail)

    async def _answer(self, scope: Any, receive: Any) -> Answer:
        endpoint, part = self._found(scope["path"])
        if scope["method"] not in endpoint.methods:
            raise ApiError("method_not_allowed", headers=((b"allow", ", ".join(endpoint.methods).encode()),))
        headers = scope["headers"]
        refusal = self._refusal(endpoint.needs, headers)
        if refusal is not None:
            raise ApiError(refusal)
        call = EndpointCall(
            part=part,
            query=scope["query_string"].decode("latin-1"),
            headers=headers,
            body=await read_body(headers, receive) if endpoint.needs is Right.WRITE else b"",
            remote=scope["client"][0] if scope["client"] else "unknown",
            may_read=self._refusal(Right.READ, headers) is None,
            may_write=self._refusal(Right.WRITE, headers) is None,
        )
        return await endpoint.answer(call)

    def _refusal(self, needed: Right, headers: list[Header]) -> str | None:
        """The error code for a request with `headers`; None if it has the right that is `needed`."""
        if needed is Right.NONE:
            return None  # probes come under any name
        if self._hosts is not None and not self._hosts.know(headers):
            return "misdirected_request"
        if needed is Right.WRITE and is_cross_site(headers):
            return "cross_site"
        return self._tokens.refusal(needed, headers)

    def _found(self, path: str) -> tuple[Endpoint, str]:
        for endpoint in self._endpoints:
            match = endpoint.path.fullmatch(path)
            if match is not None:
                return endpoint, "".join(match.groups())
        raise ApiError("not_found")


def build_operators_app(
    instance: WatchedInstance,
    tokens: Tokens | None = None,
    changes: Actions | None = None,
    hosts: Hosts | None = None,
) -> OperatorsApp:
    """The application. The endpoints for `changes` exist only if there is a write token.

    `hosts`: names under which it may be asked for what takes a right; None: any.
    """
    tokens = tokens or Tokens()
    offered = changes if tokens.writable else None
    endpoints = _readable(instance, () if offered is None else _WRITABLE)
    if offered is not None:
        endpoints += _writable(instance, offered)
    return OperatorsApp(endpoints, tokens, hosts)


def _readable(instance: WatchedInstance, writable: tuple[str, ...]) -> list[Endpoint]:
    page = read_page()

    async def index(call: EndpointCall) -> Reply:
        if wants_page(call.headers):
            return page[INDEX].reply(call.headers)
        there = (*_READABLE, *writable) if call.may_write else _READABLE
        return json_reply({"endpoints": there})

    async def page_file(call: EndpointCall) -> Reply:
        if call.part not in page:
            raise ApiError("not_found")
        return page[call.part].reply(call.headers)

    async def live(_: EndpointCall) -> Reply:
        return json_reply({"status": "live"})

    async def ready(call: EndpointCall) -> Reply:
        found = readiness(instance.state())
        shown = found if call.may_read else Health(found.status)
        return json_reply(shown, 503 if found.status == "unavailable" else 200)

    async def rendered() -> bytes:
        figures = await instance.sums()
        return render_metrics(instance.state(), figures, instance.events.counted)

    scrapes = Rounds(rendered)  # each takes milliseconds, here and in every worker

    async def metrics(_: EndpointCall) -> Reply:
        return Reply(200, (_METRICS, NO_STORE), await scrapes.get(), "answered")

    return [
        Endpoint(re.compile("/"), Right.NONE, index),
        Endpoint(re.compile("/page/(.+)"), Right.NONE, page_file),
        Endpoint(re.compile("/health/live/?"), Right.NONE, live),
        Endpoint(re.compile("/health/ready/?"), Right.NONE, ready),
        Endpoint(re.compile("/metrics/?"), Right.READ, metrics),
        *live_endpoints(instance.overview_now, instance.history, instance.broadcast, instance.find),
    ]


def _writable(instance: WatchedInstance, changes: Actions) -> list[Endpoint]:
    async def revoke(call: EndpointCall) -> Reply:
        decoded(call.body, NoOrder)
        return json_reply(await changes.revoke(call.part, call.remote))

    async def roll_back(call: EndpointCall) -> Reply:
        order = decoded(call.body, RollbackOrder)
        return json_reply(await changes.roll_back(order.release, call.remote))

    async def purge(call: EndpointCall) -> Reply:
        decoded(call.body, NoOrder)
        return json_reply(await changes.purge(call.remote))

    async def sample(call: EndpointCall) -> Reply:
        order = decoded(call.body, Sampling)
        if not 0 <= order.rate <= 1:
            raise ApiError("invalid_body", "rate is a share, from 0 to 1.")
        instance.sample(order.rate)
        log.info("%g of the requests are logged now, as %s asked", order.rate, call.remote)
        return json_reply(order)

    return [
        Endpoint(re.compile("/log/sampling/?"), Right.WRITE, sample),
        Endpoint(re.compile("/keys/([^/]*)/revoke/?"), Right.WRITE, revoke),
        Endpoint(re.compile("/releases/rollback/?"), Right.WRITE, roll_back),
        Endpoint(re.compile("/caches/purge/?"), Right.WRITE, purge),
    ]
