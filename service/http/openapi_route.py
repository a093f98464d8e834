"""GET /v1/openapi.json: the description, with examples from the release that is current."""

import asyncio
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

import msgspec
from litestar import get
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from service.base.single_flight import SingleFlight
from service.cache.entry import CacheEntry
from service.http.app import OPENAPI_PATH, Checked
from service.http.live_examples import LiveExample, live_examples
from service.http.openapi import About, describe_api
from service.http.openapi_headers import Document
from service.http.query import read_strictly
from service.request.errors import ApiError
from service.request.pipeline import Answers
from service.request.request import Request
from service.request.respond import CachePolicy
from service.request.response import JSON, NO_STORE, Response
from warehouse.following import OpenRelease, ReleaseFollower

# Makes the document. The second are examples by operation id.
Describe = Callable[[About, Mapping[str, LiveExample]], Document]


class Description:
    """The description of one worker's service. `describe` makes it at the first request after a switch."""

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
        self._made: SingleFlight[CacheEntry] = SingleFlight(math.inf, most=1)  # by release

    async def answer(self, request: Request) -> Response:
        """Returns the answer to a checked request. Raises ApiError (400)."""
        read_strictly(request.query, ())
        release = self._follower.current
        if release is not None:
            with suppress(ApiError):  # look-ups fail now: the next request tries again
                entry = await self._made.run(release.id, partial(self._make, release))
                return self._policy.own_response(request, entry, release.id)
        return Response.of(200, (JSON, NO_STORE), msgspec.json.encode(self._describe(self._about, {})), "answered")

    async def _make(self, release: OpenRelease) -> CacheEntry:
        examples = await live_examples(self._answers, release)
        if release is not self._follower.current:  # they may be from the next release
            raise ApiError("unavailable")
        return await asyncio.to_thread(self._encoded, examples)

    def _encoded(self, examples: dict[str, LiveExample]) -> CacheEntry:
        return CacheEntry.of(msgspec.json.encode(self._describe(self._about, examples)))


@get(OPENAPI_PATH)
async def get_openapi(checked: Checked, description: NamedDependency[SkipValidation[Description]]) -> Response:
    """Returns the OpenAPI description of the service."""
    return await description.answer(checked)
