"""GET /v1/openapi.json: the description, with examples from the release that is current."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
from litestar import asgi
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from service.cache.entry import CacheEntry
from service.http.live_examples import LiveExample, live_examples
from service.http.openapi import About, describe_api
from service.http.openapi_headers import Document
from service.http.paths import OPENAPI_PATH
from service.http.query import read_strictly
from service.request.errors import ApiError
from service.request.pipeline import Answers
from service.request.request import request_of
from service.request.respond import CachePolicy
from service.request.response import JSON, NO_STORE, Response
from warehouse.following import OpenRelease, ReleaseFollower

# Makes the document. The second are examples by operation id.
Describe = Callable[[About, Mapping[str, LiveExample]], Document]


class _Kept(msgspec.Struct, frozen=True):
    release: str
    entry: CacheEntry


class Description:
    """The description of one worker's service. It is made by `describe` when the first asks for it after a switch,
    and kept."""

    def __init__(
        self,
        follower: ReleaseFollower,
        answers: Answers,
        policy: CachePolicy,
        about: About,
        describe: Describe = describe_api,
    ) -> None:
        self._follower = follower
        self._answers = answers
        self._policy = policy
        self._about = about
        self._describe = describe
        self._kept: _Kept | None = None
        self._making = asyncio.Lock()

    def route(self) -> ASGIRouteHandler:
        @asgi(OPENAPI_PATH, copy_scope=False)
        async def openapi(scope: Scope, receive: Receive, send: Send) -> None:
            read_strictly(scope["query_string"], ())
            await (await self._answer(scope))(scope, receive, send)

        return openapi

    async def _answer(self, scope: Scope) -> Response:
        release = self._follower.current
        entry = await self._of(release) if release is not None else None
        if release is None or entry is None:  # nothing can be looked up now: the next request tries again
            return Response.of(200, (JSON, NO_STORE), msgspec.json.encode(self._describe(self._about, {})), "answered")
        return self._policy.own_response(request_of(scope), entry, release.id)

    async def _of(self, release: OpenRelease) -> CacheEntry | None:
        """None if the examples cannot be looked up."""
        async with self._making:
            kept = self._kept
            if kept is None or kept.release != release.id:
                try:
                    examples = await live_examples(self._answers, release)
                except ApiError:
                    return None
                kept = _Kept(release.id, await asyncio.to_thread(self._encoded, examples))
                if release is self._follower.current:  # else the examples may be of the next
                    self._kept = kept
            return kept.entry

    def _encoded(self, examples: dict[str, LiveExample]) -> CacheEntry:
        return CacheEntry.of(msgspec.json.encode(self._describe(self._about, examples)))
