"""The operators' application: health and metrics of the whole instance, and, with a write token, a few changes.

It runs in the supervisor. A few fixed paths need no router, and a framework's would answer HEAD, OPTIONS and errors in
its own way.
"""

import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from service.base.telemetry import Snapshot
from service.http.errors import NO_STORE, ApiError
from service.http.head import read_head
from service.http.reply import JSON, Reply, Send
from service.operators.access import Right, Tokens
from service.operators.actions import Actions, NoOrder, RollbackOrder
from service.operators.body import decoded, read_body
from service.operators.metrics import render_metrics
from service.operators.problems import of_error, refusal_reply
from service.operators.rounds import Rounds
from service.operators.state import Health, InstanceState, readiness

log = logging.getLogger("forecast.operators")

_METRICS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_READABLE = ("/health/live", "/health/ready", "/metrics")
# Enough for balancers, scrapers and people. One more replaces the connection that has been idle longest.
MOST_CONNECTIONS = 100
_WRITABLE = ("POST /keys/KEY_ID/revoke", "POST /releases/rollback", "POST /caches/purge")


class EndpointCall(msgspec.Struct, frozen=True, kw_only=True):
    """One request as an endpoint gets it; it lives until the answer."""

    part: str  # the varying part of the path, empty if there is none
    body: bytes
    remote: str  # address of the caller
    may_read: bool
    may_write: bool


class Endpoint(msgspec.Struct, frozen=True):
    """One endpoint; it lives as long as the application. If it needs the right to write it is a POST, else a GET."""

    path: re.Pattern[str]  # its group, at most one, is the varying part
    needs: Right
    answer: Callable[[EndpointCall], Awaitable[Reply]]

    @property
    def methods(self) -> tuple[str, ...]:
        return ("POST",) if self.needs is Right.WRITE else ("GET", "HEAD")


class OperatorsApp:
    """The ASGI application of one instance; its `OperatorsListener` owns it. The server omits the body of a HEAD."""

    most_connections = MOST_CONNECTIONS

    def __init__(self, endpoints: list[Endpoint], tokens: Tokens) -> None:
        self._endpoints = endpoints
        self._tokens = tokens

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        head = read_head(scope["headers"], time.perf_counter())
        try:
            reply = await self._answer(scope, receive)
        except Exception as error:
            if not isinstance(error, ApiError):  # without the path: a key may have been put there by mistake
                log.exception("request failed", extra={"request_id": head.request_id})
            reply = of_error(error, head.request_id)
        request_id = (b"x-request-id", head.request_id.encode())
        await msgspec.structs.replace(reply, headers=(*reply.headers, request_id))(scope, receive, send)

    def rejected(self, code: str) -> None:
        """The connection refused a request. Logged at debug, so that strangers cannot fill the log."""
        log.debug("refused: %s", code)

    def refusal(self, code: str, request_id: str) -> Reply:
        return refusal_reply(code, request_id)

    async def _answer(self, scope: Any, receive: Any) -> Reply:
        endpoint, part = self._found(scope["path"])
        if scope["method"] not in endpoint.methods:
            raise ApiError("method_not_allowed", headers=((b"allow", ", ".join(endpoint.methods).encode()),))
        headers = scope["headers"]
        refusal = self._tokens.refusal(endpoint.needs, headers)
        if refusal is not None:
            raise ApiError(refusal)
        call = EndpointCall(
            part=part,
            body=await read_body(headers, receive) if endpoint.needs is Right.WRITE else b"",
            remote=scope["client"][0] if scope["client"] else "unknown",
            may_read=self._tokens.refusal(Right.READ, headers) is None,
            may_write=self._tokens.refusal(Right.WRITE, headers) is None,
        )
        return await endpoint.answer(call)

    def _found(self, path: str) -> tuple[Endpoint, str]:
        for endpoint in self._endpoints:
            match = endpoint.path.fullmatch(path)
            if match is not None:
                return endpoint, "".join(match.groups())
        raise ApiError("not_found")


def build_operators_app(
    state: Callable[[], InstanceState],
    sums: Callable[[], Awaitable[Snapshot]],
    tokens: Tokens | None = None,
    changes: Actions | None = None,
) -> OperatorsApp:
    """The application. `state` returns what is known now; `sums` asks every worker for its newest figures.

    The endpoints for `changes` exist only if there is a write token.
    """
    tokens = tokens or Tokens()
    offered = changes if tokens.writable else None
    endpoints = _readable(state, sums, () if offered is None else _WRITABLE)
    if offered is not None:
        endpoints += _writable(offered)
    return OperatorsApp(endpoints, tokens)


def _readable(
    state: Callable[[], InstanceState], sums: Callable[[], Awaitable[Snapshot]], writable: tuple[str, ...]
) -> list[Endpoint]:
    async def index(call: EndpointCall) -> Reply:
        there = (*_READABLE, *writable) if call.may_write else _READABLE
        return _json(msgspec.json.encode({"endpoints": there}))

    async def live(_: EndpointCall) -> Reply:
        return _json(b'{"status":"live"}')

    async def ready(call: EndpointCall) -> Reply:
        found = readiness(state())
        shown = found if call.may_read else Health(found.status)
        return _json(msgspec.json.encode(shown), 503 if found.status == "unavailable" else 200)

    async def rendered() -> bytes:
        figures = await sums()
        return render_metrics(state(), figures)

    scrapes = Rounds(rendered)  # each takes milliseconds, here and in every worker

    async def metrics(_: EndpointCall) -> Reply:
        return Reply(200, (_METRICS, NO_STORE), await scrapes.get(), "answered")

    return [
        Endpoint(re.compile("/"), Right.NONE, index),
        Endpoint(re.compile("/health/live/?"), Right.NONE, live),
        Endpoint(re.compile("/health/ready/?"), Right.NONE, ready),
        Endpoint(re.compile("/metrics/?"), Right.READ, metrics),
    ]


def _writable(changes: Actions) -> list[Endpoint]:
    async def revoke(call: EndpointCall) -> Reply:
        decoded(call.body, NoOrder)
        return _json(msgspec.json.encode(await changes.revoke(call.part, call.remote)))

    async def roll_back(call: EndpointCall) -> Reply:
        order = decoded(call.body, RollbackOrder)
        return _json(msgspec.json.encode(await changes.roll_back(order.release, call.remote)))

    async def purge(call: EndpointCall) -> Reply:
        decoded(call.body, NoOrder)
        return _json(msgspec.json.encode(await changes.purge(call.remote)))

    return [
        Endpoint(re.compile("/keys/([^/]*)/revoke/?"), Right.WRITE, revoke),
        Endpoint(re.compile("/releases/rollback/?"), Right.WRITE, roll_back),
        Endpoint(re.compile("/caches/purge/?"), Right.WRITE, purge),
    ]


def _json(body: bytes, status: int = 200) -> Reply:
    return Reply(status, (JSON, NO_STORE), body, "answered")
