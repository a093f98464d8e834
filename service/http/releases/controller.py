"""GET /v1/releases, its feed, and the changes and files of one release."""

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import FromPath, SkipValidation
from litestar.types import ASGIApp

from service.cache.entry import CacheEntry
from service.http.app import Checked
from service.http.query import read_strictly
from service.http.releases.changes import changed_area, read_changes_of
from service.http.releases.downloads import Downloads
from service.http.releases.feed import feed_of
from service.http.releases.files import BULK, FILES, send_file
from service.http.releases.listing import FEED_PATH, PATH, listed
from service.http.releases.shelf import ReleaseShelf
from service.request.respond import CachePolicy
from service.request.response import JSON, Header, Response
from service.request.targets import Route
from warehouse.areas.paging import Cursors

# Counted under this name, and neither limited nor billed: frequent checks for a new release are welcome.
RELEASES = "releases"
PATHS = {PATH: RELEASES, FEED_PATH: RELEASES}
# Paths to suggest for wrong ones.
OF_CURRENT = tuple(f"{PATH}/current/{leaf}" for leaf in (*FILES, "changes"))
_ATOM: Header = (b"content-type", b"application/atom+xml")

Shelf = NamedDependency[SkipValidation[ReleaseShelf]]
Policy = NamedDependency[SkipValidation[CachePolicy]]
Files = NamedDependency[SkipValidation[Downloads]]
Pages = NamedDependency[SkipValidation[Cursors]]


class ReleasesController(Controller):
    """The releases, their changes, and whole ones as files."""

    path = PATH

    @get()
    async def releases(self, checked: Checked, shelf: Shelf, policy: Policy) -> Response:
        """Returns the current release and those that led to it."""
        read_strictly(checked.query, ())
        history = await shelf.history()
        entry = CacheEntry.of(listed(history))
        return policy.own_response(checked, entry, history.current.id, JSON)

    @get("/{release:str}/changes")
    async def changes(
        self, release: FromPath[str], checked: Checked, shelf: Shelf, policy: Policy, cursors: Pages, downloads: Files
    ) -> Response:
        """Returns one page of what a release changed in an area."""
        manifest, body = await read_changes_of(release, checked.query, shelf, cursors, downloads)
        return policy.own_response(checked, CacheEntry.of(body), manifest.id)

    @get("/{release:str}/{file:str}")
    async def file(
        self,
        release: FromPath[str],
        file: FromPath[str],
        checked: Checked,
        shelf: Shelf,
        policy: Policy,
        downloads: Files,
    ) -> ASGIApp:
        """Returns a whole area of a release, or a part of the file."""
        return await send_file(release, file, checked, shelf, policy, downloads)


@get(FEED_PATH)
async def get_feed(checked: Checked, shelf: Shelf, policy: Policy) -> Response:
    """Returns the releases as an Atom feed."""
    read_strictly(checked.query, ())
    history = await shelf.history()
    return policy.own_response(checked, CacheEntry.of(feed_of(history, FEED_PATH)), history.current.id, _ATOM)


def find_route(path: str, query: bytes) -> Route | None:
    """Returns the route of a path below one release. Changes belong to the area that the query names."""
    before, _, rest = path.partition(f"{PATH}/")
    release, _, leaf = rest.partition("/")
    if before or not release:
        return None
    if leaf == "changes":
        return Route(area=changed_area(query) or RELEASES)
    return Route(area=BULK) if leaf in FILES else None
