"""The changes of a release in an area, as found when it was published."""

from typing import Annotated

import msgspec
from msgspec import Meta

from service.http.areas import AREAS
from service.http.pages import page_of, read_page
from service.http.query import read_strictly
from service.http.releases.downloads import Downloads
from service.http.releases.shelf import ReleaseShelf
from service.request.errors import ApiError
from warehouse.areas.paging import Cursors
from warehouse.releases.catalog import Manifest
from warehouse.releases.files import ChangesPage, changes_file, read_changes

PARAMETERS = ("area", "limit", "cursor")
AREA_NAMES = tuple(area.name for area in AREAS)


class Changes(msgspec.Struct, frozen=True):
    """The common members of every page of changes; `previous` is null if no release came before."""

    release: Annotated[str, Meta(description="The release with these changes.")]
    previous: Annotated[str | None, Meta(description="The previous release, which it is compared with.")]
    total_results: Annotated[int, Meta(description="How many there are on this page.")]
    total_matching: Annotated[int, Meta(description="How many there are on all pages together.")]
    next_cursor: Annotated[str | None, Meta(description="Null on the last page.")]


class ForecastChanges(Changes, frozen=True):
    """One page of the ZIP codes whose answer differs from that of the release before, ascending; also those that came
    or went."""

    zip_codes: Annotated[tuple[str, ...], Meta(description="Ascending.")]


class ProjectChanges(Changes, frozen=True):
    """One page of the ids of projects that differ from the release before, ascending; also those that came or went."""

    project_ids: Annotated[tuple[str, ...], Meta(description="Ascending.")]


_BODIES: dict[str, type[ForecastChanges | ProjectChanges]] = {"forecast": ForecastChanges, "projects": ProjectChanges}


async def read_changes_of(
    release: str, query: bytes, shelf: ReleaseShelf, cursors: Cursors, downloads: Downloads
) -> tuple[Manifest, bytes]:
    """Returns the release and one encoded page of its changes. Raises ApiError (400, 404, 503)."""
    values = read_strictly(query, PARAMETERS)
    area, wanted = _area(values.get("area")), read_page(values)
    manifest, _ = await shelf.release(release)
    changed = _changed(manifest, area)
    path = shelf.folder(manifest) / changes_file(area)
    # cursors are positions in the list
    page = page_of(_scope(manifest, area), wanted, cursors)
    try:
        read = await downloads.run(read_changes, path, int(page.after or 0), page.limit)
    except (OSError, msgspec.DecodeError) as error:
        raise ApiError("unavailable") from error
    return manifest, msgspec.json.encode(_body(manifest, area, changed, read, cursors))


def changed_area(query: bytes) -> str | None:
    """Returns the area that a query names, whose entitlement and limits apply; None if it names none."""
    try:
        return _area(read_strictly(query, PARAMETERS).get("area"))
    except ApiError:
        return None


def _area(text: str | None) -> str:
    if text is None:
        raise ApiError("missing_parameter", f"Give area={' or area='.join(AREA_NAMES)}.", "area")
    if text not in AREA_NAMES:
        raise ApiError("invalid_parameter", f"There is no such area. Give {' or '.join(AREA_NAMES)}.", "area")
    return text


def _changed(manifest: Manifest, area: str) -> int:
    contents = manifest.contents.get(area)
    if contents is not None and contents.changed is not None:
        return contents.changed
    if area not in manifest.areas:
        detail = f"Release {manifest.id} has no {area}. GET /v1/releases lists what each release has."
    elif contents is None:
        detail = f"Release {manifest.id} was published before changes were kept. Take its whole answer as new."
    else:
        detail = f"The changes of release {manifest.id} are unknown. Take its whole answer as new."
    raise ApiError("not_found", detail)


def _scope(manifest: Manifest, area: str) -> str:
    return f"changes\n{manifest.id}\n{area}"


def _body(
    manifest: Manifest, area: str, changed: int, read: ChangesPage, cursors: Cursors
) -> ForecastChanges | ProjectChanges:
    following = None if read.following is None else cursors.encode(_scope(manifest, area), str(read.following))
    return _BODIES[area](manifest.id, manifest.previous, len(read.ids), changed, following, read.ids)
