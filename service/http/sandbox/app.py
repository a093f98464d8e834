"""The application for test keys: the handlers of the live one, on the release of test keys."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec

from service.cache.entry import CacheEntry
from service.cache.key import CacheKey
from service.cache.near import NearCache
from service.cache.read_through import ReadThrough
from service.cache.shared import SharedCache, SharedLookup
from service.http.app import OPENAPI_PATH, build_litestar
from service.http.area import handler_of, routes_of
from service.http.areas import AREAS
from service.http.forecast import samples
from service.http.index import INDEX_PATH, IndexAnswer, get_index
from service.http.live_examples import LiveExample
from service.http.openapi import About, describe_api
from service.http.openapi_headers import Document
from service.http.openapi_route import Description, get_openapi
from service.http.own_usage.controller import PATHS as USAGE_PATHS
from service.http.own_usage.controller import OwnUsageController
from service.http.own_usage.errors import ErrorReader, errors_for_tests
from service.http.own_usage.usage import OwnUsage
from service.http.releases.listing import PATH as RELEASES_PATH
from service.http.sandbox.errors import error_on_purpose
from service.http.sandbox.release import RELEASE_ID, sandbox_follower
from service.request.look_up import LookUps
from service.request.lookup_watch import LookupWatch
from service.request.pipeline import Answers
from service.request.request import request_of
from service.request.resolve import Resolver
from service.request.respond import CachePolicy
from service.request.response import Send
from service.request.route import Router
from warehouse.areas.paging import Cursors
from warehouse.following import ReleaseFollower

_NEAR_BYTES = 1 << 20
_NEAR_SECONDS = 3600.0


class Sandbox(msgspec.Struct, frozen=True):
    """Answers test keys at `paths`. `app` takes a scope that has a verified key, like the live application."""

    app: Callable[[Any, Any, Send], Awaitable[None]]
    paths: frozenset[str]


class _NoSharedCache:
    """The part of a SharedCache that a read-through uses: requests of test keys leave no trace outside the worker."""

    is_unreachable = False

    async def get(self, _: CacheKey) -> SharedLookup:
        return SharedLookup("miss")

    def put(self, _: CacheKey, __: CacheEntry) -> None:
        return None


def build_sandbox(policy: CachePolicy, cursors: Cursors, about: About, own_usage: OwnUsage) -> Sandbox:
    """Builds the sandbox of one worker. `own_usage` counts test keys too."""
    follower = sandbox_follower()
    near, shared = NearCache(_NEAR_BYTES, _NEAR_SECONDS, policy.prepare), cast("SharedCache", _NoSharedCache())
    near.switch(RELEASE_ID)
    watch = LookupWatch(follower, near, shared, samples, fall_back=False)
    resolver = Resolver(follower)
    areas = [msgspec.structs.replace(area, coverage=_name_places(follower, area.name)) for area in AREAS]
    routes = {path: route for area in areas for path, route in routes_of(area, cursors, policy).items()}
    answers = Answers(Router(routes), resolver, LookUps(follower, resolver, ReadThrough(near, shared), watch), policy)
    endpoints = [endpoint for area in AREAS for endpoint in area.endpoints]
    litestar = build_litestar(
        [*map(handler_of, endpoints), get_index, get_openapi, OwnUsageController],
        answers=answers,
        index=IndexAnswer(follower, policy, guide=about.guide),
        description=Description(follower, answers, policy, about, describe_sandbox),
        own_usage=own_usage,
        own_errors=ErrorReader(errors_for_tests),
    )

    async def app(scope: Any, receive: Any, send: Any) -> None:
        request = request_of(scope)
        answers.place(request)  # in the routes of test data
        if request.key is not None:
            error = error_on_purpose(scope, request, request.key, policy, RELEASE_ID)
            if error is not None:
                await error(scope, receive, send)
                return
        await litestar(scope, receive, send)

    paths = frozenset((*(endpoint.path for endpoint in endpoints), INDEX_PATH, OPENAPI_PATH, *USAGE_PATHS))
    return Sandbox(app, paths)


def _name_places(follower: ReleaseFollower, area: str) -> str:
    """Returns the remedy for a place that test keys do not know."""
    known = follower.current.keys[area].some(100) if follower.current is not None else []
    zip_codes = ", ".join(sorted(match.keys[0] for match in known))
    return f"This is a test key. It knows only the ZIP codes {zip_codes}, their cities and counties."


_ON_PURPOSE = "The error that X-Test-Error names, or that a zip_code of the guide's list stands for."


def describe_sandbox(about: About, examples: Mapping[str, LiveExample]) -> Document:
    """Returns the document. `examples` are of the release of test keys."""
    document = describe_api(about, examples)
    document["paths"] = {path: one for path, one in document["paths"].items() if not path.startswith(RELEASES_PATH)}
    document["tags"] = [tag for tag in document["tags"] if tag["name"] != "releases"]
    for one in document["paths"].values():
        problem = one["get"]["responses"]["400"]["content"]
        one["get"]["responses"]["default"] = {"description": _ON_PURPOSE, "content": problem}
    return document
