"""What operators see of the instance now and lately: the overview, once or live, its history, and single requests."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, get_args
from urllib.parse import parse_qs

import msgspec

from service.base.seen import LoggedRequest
from service.http.errors import NO_STORE, ApiError
from service.http.head import valid_request_id
from service.http.reply import Send
from service.operators.access import Right
from service.operators.endpoint import Answer, Endpoint, EndpointCall, json_reply
from service.operators.history import Span
from service.operators.overview import History, Overview

_SPANS: tuple[Span, ...] = get_args(Span)
_STREAM = ((b"content-type", b"text/event-stream"), NO_STORE)
# A stream is told of something at least this often, so that neither end takes silence for a lost connection.
_HEARTBEAT_SECONDS = 5.0


class Broadcast:
    """The newest overview, for everybody who listens. The instance's supervisor owns it, and publishes once a second.

    It is encoded once for all, and not at all while nobody listens.
    """

    def __init__(self, overview: Callable[[], Overview | None]) -> None:
        self._overview = overview
        self._waiting: list[asyncio.Future[bytes | None]] = []
        self._is_closed = False

    def publish(self) -> None:
        if self._waiting:
            self._tell(self._encoded())

    def close(self) -> None:
        """Ends every stream."""
        self._is_closed = True
        self._tell(None)

    def newest(self) -> bytes | None:
        """The overview as it is; None before the first, and at the end."""
        return None if self._is_closed else self._encoded()

    async def next(self) -> bytes | None:
        """The next overview; None at the end."""
        if self._is_closed:
            return None
        waiter: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return await waiter

    def _encoded(self) -> bytes | None:
        found = self._overview()
        return msgspec.json.encode(found) if found is not None else None

    def _tell(self, encoded: bytes | None) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(encoded)


class EventStream:
    """Server-sent events (HTML standard, 9.2): `overview` once a second. One per request; an ASGI application."""

    def __init__(self, broadcast: Broadcast) -> None:
        self._broadcast = broadcast

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(_STREAM)})
        if scope["method"] != "HEAD":
            gone = asyncio.create_task(_gone(receive))
            try:
                await self._tell(send, gone)
            finally:
                gone.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send, gone: "asyncio.Task[None]") -> None:
        encoded = self._broadcast.newest()
        while not gone.done():
            message = b"event: overview\ndata: %b\n\n" % encoded if encoded is not None else b": wait\n\n"
            await send({"type": "http.response.body", "body": message, "more_body": True})
            coming = asyncio.ensure_future(self._broadcast.next())
            await asyncio.wait([coming, gone], timeout=_HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            encoded = coming.result() if coming.done() else None
            if coming.done() and encoded is None:
                return
            coming.cancel()


async def _gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


class Sampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request to change the request log's sample, and of its answer."""

    rate: float  # share of the requests that are neither errors nor slow


def live_endpoints(
    overview: Callable[[], Awaitable[Overview | None]],
    history: Callable[[Span], History],
    broadcast: Broadcast,
    find: Callable[[str], Awaitable[list[LoggedRequest]]],
) -> list[Endpoint]:
    """`find` asks every worker what it knows of a request."""

    async def now(_: EndpointCall) -> Answer:
        found = await overview()
        if found is None:
            raise ApiError("unavailable", "The instance is starting. Try again.")
        return json_reply(found)

    async def past(call: EndpointCall) -> Answer:
        span = parse_qs(call.query).get("span", ["10m"])[-1]
        if span not in _SPANS:
            raise ApiError("bad_request", f"span is one of {', '.join(_SPANS)}.")
        return json_reply(history(span))

    async def stream(_: EndpointCall) -> Answer:
        return EventStream(broadcast)

    async def request(call: EndpointCall) -> Answer:
        found = await find(call.part) if valid_request_id(call.part.encode()) else []
        if not found:
            raise ApiError("no_such_request")
        return json_reply(found)

    return [
        Endpoint(re.compile("/overview/?"), Right.READ, now),
        Endpoint(re.compile("/history/?"), Right.READ, past),
        Endpoint(re.compile("/events/?"), Right.READ, stream),
        Endpoint(re.compile("/requests/([^/]+)/?"), Right.READ, request),
    ]
