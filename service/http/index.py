"""GET /v1/: which release is served, from which sources, and which areas there are."""

from datetime import datetime
from typing import Annotated

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp
from msgspec import Meta

from service.http.answering import NOTHING_PUBLISHED
from service.http.area import AreaDescription
from service.http.areas import AREAS
from service.http.errors import NO_STORE, ApiError
from service.http.releases.listing import PATH as RELEASES_PATH
from service.http.reply import JSON, Reply
from warehouse.following import ReleaseFollower


class ReleaseSummary(msgspec.Struct, frozen=True):
    """`illustrative`: the figures are made up, for demonstration."""

    id: Annotated[str, Meta(description="As in X-Data-Release.")]
    published_at: Annotated[datetime, Meta(description="When it was built.")]
    illustrative: Annotated[bool, Meta(description="Whether its figures are made up.")]


class Index(msgspec.Struct, frozen=True):
    """The current release, its sources, the data areas, and the path that lists releases with their files."""

    version: Annotated[str, Meta(description="Of the API.")]
    release: ReleaseSummary
    attribution: Annotated[tuple[str, ...], Meta(description="Show these lines beside figures that you publish.")]
    areas: Annotated[tuple[AreaDescription, ...], Meta(description="Those that the release has.")]
    releases: Annotated[str, Meta(description="The path that lists releases.")]


def index_route(follower: ReleaseFollower) -> HTTPRouteHandler:
    @get("/v1")
    async def index() -> ASGIApp:
        release = follower.current
        if release is None:
            raise ApiError("unavailable", NOTHING_PUBLISHED)
        manifest = release.manifest
        body = Index(
            "v1",
            ReleaseSummary(manifest.id, manifest.published_at, manifest.illustrative),
            manifest.attribution,
            tuple(area.listed for area in AREAS if area.name in release.keys),
            RELEASES_PATH,
        )
        headers = (JSON, NO_STORE, (b"x-data-release", manifest.id.encode()))
        return Reply(200, headers, msgspec.json.encode(body), "answered")

    return index
