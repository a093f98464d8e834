"""GET /v1/: the current release, its sources, the data areas, and the entitlements of the key."""

from datetime import datetime
from typing import Annotated

import msgspec
from litestar import get
from litestar.di import NamedDependency
from litestar.params import SkipValidation
from msgspec import Meta

from service.cache.entry import CacheEntry
from service.http.app import GUIDE_PATH, OPENAPI_PATH, Checked
from service.http.area import ListedArea
from service.http.areas import AREAS
from service.http.own_usage.controller import PATH as USAGE_PATH
from service.http.query import read_strictly
from service.http.releases.files import BULK
from service.http.releases.listing import PATH as RELEASES_PATH
from service.keys.record import ApiKey
from service.request.request import Request
from service.request.resolve import no_release
from service.request.respond import CachePolicy
from service.request.response import Response
from warehouse.following import OpenRelease, ReleaseFollower

INDEX_PATH = "/v1"
_MOST_KEPT = 1_000  # answers; some 2 KB each


class ReleaseSummary(msgspec.Struct, frozen=True):
    """`illustrative`: the figures are made up, for demonstration."""

    id: Annotated[str, Meta(description="As in X-Data-Release.")]
    published_at: Annotated[datetime, Meta(description="When it was built.")]
    illustrative: Annotated[bool, Meta(description="Whether its figures are made up.")]


class AskingKey(msgspec.Struct, frozen=True):
    """The API key of the request, and its entitlements."""

    key_id: Annotated[str, Meta(description="Identifies the key; not a secret.")]
    areas: Annotated[
        tuple[str, ...], Meta(description="Its areas; bulk: whole releases as files; partner-usage: usage of all keys.")
    ]
    rate: Annotated[str | None, Meta(description="Requests in a period; null without a limit.")]
    quota: Annotated[str | None, Meta(description="Requests in a UTC day or month; null without one.")]
    expires_at: Annotated[datetime | None, Meta(description="When it stops working; null: never.")]


class Index(msgspec.Struct, frozen=True):
    """The current release, its sources, the data areas, the key's entitlements, and further paths."""

    version: Annotated[str, Meta(description="Version of the API.")]
    release: Annotated[ReleaseSummary, Meta(description="The release that answers come from.")]
    attribution: Annotated[tuple[str, ...], Meta(description="Show these lines beside figures that you publish.")]
    areas: Annotated[tuple[ListedArea, ...], Meta(description="The areas of the release.")]
    releases: Annotated[str, Meta(description="The path that lists releases.")]
    key: Annotated[AskingKey, Meta(description="Your key, and what it opens.")]
    usage: Annotated[str, Meta(description="The path of the key's usage.")]
    openapi: Annotated[str, Meta(description="The path of the OpenAPI description.")]
    documentation: Annotated[str | None, Meta(description="The path of the guide; null if there is none.")]


class IndexAnswer:
    """Answers the index. One per application: live, and for test keys. It caches the last answer to each key."""

    def __init__(self, follower: ReleaseFollower, policy: CachePolicy, *, guide: bool) -> None:
        self._follower = follower
        self._policy = policy
        self._guide = guide
        self._kept: dict[str, tuple[str, ApiKey, CacheEntry]] = {}  # by key id; of a release, by its id

    def __call__(self, request: Request) -> Response:
        """Returns the answer to a request with a valid key. Raises ApiError."""
        read_strictly(request.query, ())
        release, key = self._follower.current, request.key
        if release is None or key is None:
            raise no_release(self._follower)
        kept = self._kept.get(key.key_id)
        if kept is None or kept[0] != release.id or kept[1] is not key:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            entry = CacheEntry.of(msgspec.json.encode(_index(release, key, guide=self._guide)))
            kept = self._kept[key.key_id] = (release.id, key, entry)
        return self._policy.own_response(request, kept[2], release.id)


@get(INDEX_PATH)
async def get_index(checked: Checked, index: NamedDependency[SkipValidation[IndexAnswer]]) -> Response:
    """Returns the index of what the request's key may use."""
    return index(checked)


def _index(release: OpenRelease, key: ApiKey, *, guide: bool) -> Index:
    manifest = release.manifest
    areas = [area for area in AREAS if area.name in release.keys]
    return Index(
        "v1",
        ReleaseSummary(manifest.id, manifest.published_at, manifest.illustrative),
        manifest.attribution,
        tuple(area.listed(release.keys[area.name].own_cities) for area in areas),
        RELEASES_PATH,
        _asking(key),
        USAGE_PATH,
        OPENAPI_PATH,
        GUIDE_PATH if guide else None,
    )


def _asking(key: ApiKey) -> AskingKey:
    terms = key.terms
    areas = terms.areas if terms.areas is not None else (*(area.name for area in AREAS), BULK)
    rate, quota = (str(limit) if limit is not None else None for limit in (terms.rate, terms.quota))
    return AskingKey(key.key_id, areas, rate, quota, key.expires_at)
