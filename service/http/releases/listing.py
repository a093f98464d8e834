"""The list of releases: the current one and those that led to it."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from service.http.releases.files import FILES
from service.http.releases.shelf import ReleaseHistory
from warehouse.releases.catalog import Manifest
from warehouse.releases.files import flat_file

PATH = "/v1/releases"
FEED_PATH = "/v1/releases.atom"


class ReleaseFile(msgspec.Struct, frozen=True):
    """A file of an area: its path and size."""

    path: Annotated[str, Meta(description="Where it is, on this host; the area bulk is needed.")]
    bytes: Annotated[int, Meta(description="Its size.")]


class ReleaseArea(msgspec.Struct, frozen=True):
    """The contents of a release in one area. `rows` are ZIP codes, or projects; `changed` of them differ from the
    previous release, were added or removed. Both are null if the release was published before they were recorded.
    """

    name: Annotated[str, Meta(description="As keys are entitled to it.")]
    rows: Annotated[int | None, Meta(description="How many records it has.")]
    changed: Annotated[int | None, Meta(description="How many records differ from the release before.")]
    files: Annotated[tuple[ReleaseFile, ...], Meta(description="The whole area, in two forms.")]


class ListedRelease(msgspec.Struct, frozen=True):
    """One release. `illustrative`: the figures are made up, for demonstration."""

    id: Annotated[str, Meta(description="As in X-Data-Release; do not compare ids by order.")]
    published_at: Annotated[datetime, Meta(description="When it was built.")]
    current: Annotated[bool, Meta(description="Whether answers come from it.")]
    illustrative: Annotated[bool, Meta(description="Whether its figures are made up.")]
    areas: Annotated[tuple[ReleaseArea, ...], Meta(description="Its areas.")]


class Releases(msgspec.Struct, frozen=True):
    """The current release and those before it that are kept, newest first."""

    releases: Annotated[tuple[ListedRelease, ...], Meta(description="Newest first.")]


def listed(history: ReleaseHistory) -> bytes:
    """Returns encoded Releases."""
    current = history.current.id
    releases = (
        ListedRelease(
            release.id,
            release.published_at,
            release.id == current,
            release.illustrative,
            tuple(_area(release, name) for name in release.areas),
        )
        for release in history.releases
    )
    return msgspec.json.encode(Releases(tuple(releases)))


def _area(release: Manifest, name: str) -> ReleaseArea:
    held = release.contents.get(name)
    files = tuple(
        ReleaseFile(f"{PATH}/{release.id}/{file}", info.bytes)
        for file, (area, form) in FILES.items()
        if area == name and (info := release.files.get(flat_file(area, form))) is not None
    )
    return ReleaseArea(name, held.rows if held else None, held.changed if held else None, files)
