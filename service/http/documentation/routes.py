"""GET /docs/ on the partners' listener. The documentation contains no data, so it needs no key."""

from collections.abc import Sequence

from litestar import get
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from service.http.app import GUIDE_PATH, Checked
from service.http.documentation.site import INDEX, Site
from service.http.static_file import joined
from service.request.errors import ApiError
from service.request.response import Header, Response

GUIDE = GUIDE_PATH.rstrip("/")


def public_paths(site: Site) -> list[str]:
    """Returns the paths that need no key: those of the site, and the root, which leads browsers there."""
    return [GUIDE, *(f"{GUIDE_PATH}{path}" for path in site.paths), "/"]


def serve_page(site: Site, path: str, headers: Sequence[Header]) -> Response:
    """Returns the page of `site` at `path`, or a file that it loads. Raises ApiError."""
    if path == GUIDE:  # links are relative to the folder
        return _redirect(308)
    found = site.file(path.removeprefix(GUIDE_PATH) or INDEX)
    if found is None:
        raise ApiError("not_found")
    return found.reply(list(headers))


def _redirect(status: int) -> Response:
    return Response.of(status, ((b"location", GUIDE_PATH.encode()),), b"", "answered")


@get([GUIDE, f"{GUIDE_PATH}{{file:path}}"])
async def get_page(checked: Checked, documentation: NamedDependency[SkipValidation[Site]]) -> Response:
    return serve_page(documentation, checked.sent_path, checked.headers)


@get("/")
async def get_root(checked: Checked) -> Response:
    """Leads a browser to the documentation."""
    if b"text/html" not in joined(list(checked.headers), b"accept"):
        raise ApiError("not_found")
    return _redirect(303)
