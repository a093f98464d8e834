"""GET /v1/usage/errors: the last errors of the key that asks, with their request ids."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp
from msgspec import Meta

from service.http.openapi_headers import json_body, parameter
from service.http.query import read_limit, read_strictly
from service.keys.record import ApiKey
from service.quota.last_errors import MOST_KEPT, OwnError
from service.redis.errors import StoreUnavailable
from service.request.errors import ApiError
from service.request.response import JSON, NO_STORE, Response

PATH = "/v1/usage/errors"
DEFAULT_LIMIT = 20
# With half a second until a worker stores an error, and the time of a read, it is seen within about a second.
REUSE_SECONDS = 0.4
_MOST_KEYS = 256  # whose errors are used again; some 10 MB if all have as many as are kept
_UNREADABLE = (
    "Your last errors cannot be read at the moment. Other requests are answered. Try again as Retry-After says."
)

# What test keys get, and the example of the description.
EXAMPLES = (
    OwnError(
        *("2026-11-20T09:14:03.215Z", "7a2b20d6f4e1ee5a60420fd0af726001", "GET", 400, "invalid_parameter"),
        "/v1/population-housing-forecast?zip_code=501",
    ),
    OwnError(
        *("2026-11-20T09:12:41.006Z", "b1946ac92492d2347c6235b4d2611184", "GET", 429, "rate_limited"),
        "/v1/population-housing-forecast?zip_code=36436",
    ),
)

# The errors of a key id, newest first. May raise StoreUnavailable.
ReadErrors = Callable[[str], Awaitable[tuple[OwnError, ...]]]


class OwnErrors(msgspec.Struct, frozen=True):
    """The last errors of a key, and of no other."""

    key_id: Annotated[str, Meta(description="Names the key, and is no secret.")]
    total_results: Annotated[int, Meta(description="The length of the list.")]
    errors: Annotated[tuple[OwnError, ...], Meta(description="Newest first.")]


class _Read(msgspec.Struct, frozen=True):
    at: float
    task: "asyncio.Task[tuple[OwnError, ...]]"


class RecentErrors:
    """Errors that one worker read a moment ago, or reads: of a key, once at a time. `clock` gives monotonic seconds.

    No terms of a key limit how often it asks, so what it costs the store is bounded here.
    """

    def __init__(self, read: ReadErrors, clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._reads: OrderedDict[str, _Read] = OrderedDict()

    async def of_key(self, key_id: str) -> tuple[OwnError, ...]:
        """Raises what the read raises, which is tried again the next time."""
        known = self._reads.get(key_id)
        if known is None or self._is_over(known):
            known = self._begin(key_id)
        return await asyncio.shield(known.task)  # others wait for it too

    def _begin(self, key_id: str) -> _Read:
        self._reads.pop(key_id, None)
        while self._reads:
            oldest, first = next(iter(self._reads.items()))
            if len(self._reads) < _MOST_KEYS and not self._is_over(first):
                break
            del self._reads[oldest]
        begun = _Read(self._clock(), asyncio.create_task(self._run(key_id), name="read errors"))
        begun.task.add_done_callback(_look_at)
        self._reads[key_id] = begun
        return begun

    def _is_over(self, one: _Read) -> bool:
        if not one.task.done():
            return False
        failed = one.task.cancelled() or one.task.exception() is not None
        return failed or self._clock() - one.at >= REUSE_SECONDS

    async def _run(self, key_id: str) -> tuple[OwnError, ...]:
        return await self._read(key_id)


def errors_route(read: ReadErrors, who: Callable[[Any], ApiKey]) -> HTTPRouteHandler:
    """`who` gives the key of an ASGI scope (`request.key_of`)."""

    @get(PATH)
    async def errors(request: Request[Any, Any, Any]) -> ASGIApp:
        key = who(request.scope)
        values = read_strictly(request.scope["query_string"], ("limit",))
        limit = read_limit(values.get("limit"), MOST_KEPT, DEFAULT_LIMIT)
        try:
            found = (await read(key.key_id))[:limit]
        except StoreUnavailable as error:
            raise ApiError("unavailable", _UNREADABLE) from error
        body = msgspec.json.encode(OwnErrors(key.key_id, len(found), found))
        return Response.of(200, (JSON, NO_STORE), body, "answered")

    return errors


async def errors_for_tests(_: str) -> tuple[OwnError, ...]:
    """Of a test key nothing is kept."""
    return EXAMPLES


def errors_operation() -> dict[str, Any]:
    """As `usage_operation`; its schema is that of `OwnErrors`, named ``OwnErrors``."""
    example = OwnErrors("0B1zQmX4ktLw", len(EXAMPLES), EXAMPLES)
    return {
        "operationId": "getOwnErrors",
        "summary": "The last errors of your key",
        "description": f"Answers with status 400 and above to the key that asks, newest first, also 429 and 5xx: the "
        f"last {MOST_KEPT} at most, until seven days pass without a new one, about a second after they were sent. They "
        "help to find a mistake, and are no record: some may be missing. What ends before the key check (401, 408, "
        "414, 431, bad_request, body_not_allowed) is in no list, a batch only if it failed as a whole. Asking is "
        "neither counted nor limited by the key's terms.",
        "parameters": [
            parameter(
                "limit",
                "The most that are wanted.",
                {"type": "integer", "minimum": 1, "maximum": MOST_KEPT, "default": DEFAULT_LIMIT},
                DEFAULT_LIMIT,
            )
        ],
        "responses": {
            "200": {
                "description": "None if nothing went wrong, or nothing is kept of it any more.",
                "content": json_body("OwnErrors", {"errors": msgspec.json.decode(msgspec.json.encode(example))}),
            }
        },
    }


def _look_at(done: "asyncio.Task[Any]") -> None:
    if not done.cancelled():
        done.exception()  # whoever asked may have gone
