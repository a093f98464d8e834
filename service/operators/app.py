"""The operators' application: health and metrics of the whole instance, and what may be changed with a write token.

It runs in the supervisor. A few fixed paths need no router; a framework's would answer HEAD, OPTIONS and errors its own
way.
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
from service.operators.body import decoded, read_body
from service.operators.changes import Changes, NoOrder, RollbackOrder
from service.operators.metrics import render
from service.operators.problems import of_error, refused
from service.operators.rounds import Rounds
from service.operators.state import Health, InstanceState, readiness

log = logging.getLogger("forecast.operators")

_METRICS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_READABLE = ("/health/live", "/health/ready", "/metrics")
# Balancers, scrapers and people; whoever comes beyond that takes the place of whoever was idle longest.
MOST_CONNECTIONS = 100
_WRITABLE = ("POST /keys/KEY_ID/revoke", "POST /releases/rollback", "POST /caches/purge")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint is given: the part of the path that varies, the body, who asks, and what they may."""

    part: str
    body: bytes
    remote: str
    may_read: bool
    may_write: bool


class Endpoint(msgspec.Struct, frozen=True):
    """`path` has at most one group, the part that varies. What needs the right to write is a POST, all else a GET."""

    path: re.Pattern[str]
    needs: Right
    answer: Callable[[Call], Awaitable[Reply]]

    @property
    def methods(self) -> tuple[str, ...]:
        return ("POST",) if self.needs is Right.WRITE else ("GET", "HEAD")


class OperatorsApp:
    """The ASGI application. HEAD is answered as GET; the server leaves the body out."""

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
        """The connection refused something; said at a level at which strangers do not fill the log."""
        log.debug("refused: %s", code)

    def refusal(self, code: str, request_id: str) -> Reply:
        return refused(code, request_id)

    async def _answer(self, scope: Any, receive: Any) -> Reply:
        endpoint, part = self._found(scope["path"])
        if scope["method"] not in endpoint.methods:
            raise ApiError("method_not_allowed", headers=((b"allow", ", ".join(endpoint.methods).encode()),))
        headers = scope["headers"]
        refusal = self._tokens.refusal(endpoint.needs, headers)
        if refusal is not None:
            raise ApiError(refusal)
        call = Call(
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
    changes: Changes | None = None,
) -> OperatorsApp:
    """`state` is what is known at once; `sums` asks every worker for its newest figures.

    What `changes` offers is there if one of the `tokens` may write.
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
    async def index(call: Call) -> Reply:
        there = (*_READABLE, *writable) if call.may_write else _READABLE
        return _json(msgspec.json.encode({"endpoints": there}))

    async def live(_: Call) -> Reply:
        return _json(b'{"status":"live"}')

    async def ready(call: Call) -> Reply:
        found = readiness(state())
        shown = found if call.may_read else Health(found.status)
        return _json(msgspec.json.encode(shown), 503 if found.status == "unavailable" else 200)

    async def rendered() -> bytes:
        figures = await sums()
        return render(state(), figures)

    scrapes = Rounds(rendered)  # it takes milliseconds here, and in every worker

    async def metrics(_: Call) -> Reply:
        return Reply(200, (_METRICS, NO_STORE), await scrapes.get(), "answered")

    return [
        Endpoint(re.compile("/"), Right.NONE, index),
        Endpoint(re.compile("/health/live/?"), Right.NONE, live),
        Endpoint(re.compile("/health/ready/?"), Right.NONE, ready),
        Endpoint(re.compile("/metrics/?"), Right.READ, metrics),
    ]


def _writable(changes: Changes) -> list[Endpoint]:
    async def revoke(call: Call) -> Reply:
        decoded(call.body, NoOrder)
        return _json(msgspec.json.encode(await changes.revoke(call.part, call.remote)))

    async def roll_back(call: Call) -> Reply:
        order = decoded(call.body, RollbackOrder)
        return _json(msgspec.json.encode(await changes.roll_back(order.release, call.remote)))

    async def purge(call: Call) -> Reply:
        decoded(call.body, NoOrder)
        return _json(msgspec.json.encode(await changes.purge(call.remote)))

    return [
        Endpoint(re.compile("/keys/([^/]*)/revoke/?"), Right.WRITE, revoke),
        Endpoint(re.compile("/releases/rollback/?"), Right.WRITE, roll_back),
        Endpoint(re.compile("/caches/purge/?"), Right.WRITE, purge),
    ]


def _json(body: bytes, status: int = 200) -> Reply:
    return Reply(status, (JSON, NO_STORE), body, "answered")
