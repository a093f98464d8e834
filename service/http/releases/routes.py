"""The routes of releases, and which area their requests belong to."""

from pathlib import Path

from litestar.handlers import BaseRouteHandler

from service.http.releases.changes import changed_area, changes_route
from service.http.releases.downloads import Downloads
from service.http.releases.files import BULK, FILES, files_route
from service.http.releases.listing import FEED_PATH, PATH, releases_routes
from service.http.releases.shelf import ReleaseShelf
from service.request.respond import CachePolicy
from service.request.targets import Route
from warehouse.areas.paging import Cursors
from warehouse.following import ReleaseFollower

# Counted under this name, and neither limited nor billed: whoever looks often for a new release should.
RELEASES = "releases"
PATHS = {PATH: RELEASES, FEED_PATH: RELEASES}
# What a path may be meant for that is nearly one.
OF_CURRENT = tuple(f"{PATH}/current/{leaf}" for leaf in (*FILES, "changes"))


def release_routes(
    follower: ReleaseFollower, data: Path, policy: CachePolicy, cursors: Cursors, downloads: Downloads
) -> list[BaseRouteHandler]:
    shelf = ReleaseShelf(follower, data)
    return [
        *releases_routes(shelf, policy),
        changes_route(shelf, policy, cursors, downloads),
        files_route(shelf, policy, downloads),
    ]


def find_route(path: str, query: bytes) -> Route | None:
    """Returns the route of a path below one release. Changes belong to the area that is asked for."""
    before, _, rest = path.partition(f"{PATH}/")
    release, _, leaf = rest.partition("/")
    if before or not release:
        return None
    if leaf == "changes":
        return Route(area=changed_area(query) or RELEASES)
    return Route(area=BULK) if leaf in FILES else None
