"""The operators' page: static files without data, so they need no token. Programs get the list of endpoints instead."""

from functools import reduce
from importlib import resources
from operator import or_
from pathlib import Path
from typing import Any

from litestar import Controller, Response, route
from litestar.di import NamedDependency
from litestar.params import FromPath, SkipValidation

from service.http.app import GUIDE_PATH, FinishedResponse
from service.http.documentation.routes import GUIDE, serve_page
from service.http.documentation.site import Site
from service.http.static_file import StaticFile, joined, static_file
from service.operators.access import Right
from service.operators.guards import READ, AnyRequest, has_right, headers_of, needing
from service.request import response
from service.request.errors import ApiError
from service.request.request import request_of
from service.request.response import Header

INDEX = "index.html"

# The files of the page by their paths below `page/`.
Page = dict[str, StaticFile]

# Allows no other origin and no inline code. `data:` is for the empty icon, which avoids a request for one.
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def read_page_files() -> Page:
    """Returns every file of the page. uPlot's are absent if the build could not include it."""
    root = resources.files("service.operators").joinpath("page")
    brought = root.joinpath("uplot")
    files = {file.name: file for file in root.iterdir() if file.is_file()}
    if brought.is_dir():
        files |= {f"uplot/{file.name}": file for file in brought.iterdir()}
    return {path: static_file(file.name, file.read_bytes(), _POLICY) for path, file in files.items()}


def wants_page(headers: list[Header]) -> bool:
    """Whether a browser sent the request, and not a program, which gets JSON."""
    return b"text/html" in joined(headers, b"accept").lower()


# The rights that endpoints with these tags need; reading is listed for everyone.
_RIGHTS = {"changes": Right.WRITE, "keys": Right.KEYS}
DESCRIPTION = "/openapi.json"

Files = NamedDependency[SkipValidation[Page]]
Documentation = NamedDependency[SkipValidation[Site]]


class PageController(Controller):
    """The page for a browser, and the list of endpoints for a program."""

    include_in_schema = False

    @route("/", http_method=READ)
    async def index(self, request: AnyRequest, page: Files) -> Response[Any]:
        if wants_page(headers_of(request)):
            return FinishedResponse(page[INDEX].reply(headers_of(request)))
        return Response({"endpoints": _endpoints(request)})

    @route(DESCRIPTION, http_method=READ, guards=[needing(Right.READ | Right.KEYS)])
    async def description(self, request: AnyRequest) -> dict[str, Any]:
        return request.app.openapi_schema.to_schema()

    @route("/page/{name:path}", http_method=READ)
    async def file(self, request: AnyRequest, name: FromPath[Path], page: Files) -> response.Response:
        found = page.get(str(name).removeprefix("/"))
        if found is None:
            raise ApiError("not_found")
        return found.reply(headers_of(request))

    @route([GUIDE, f"{GUIDE_PATH}{{file:path}}"], http_method=READ)
    async def documentation(self, request: AnyRequest, documentation: Documentation) -> response.Response:
        return serve_page(documentation, request_of(request.scope).sent_path, headers_of(request))


def _endpoints(request: AnyRequest) -> list[str]:
    """Returns the paths that the caller may call; those of changes begin with their method."""
    endpoints = []
    for path, item in (request.app.openapi_schema.paths or {}).items():
        for method in ("get", "post", "put", "patch", "delete"):
            operation = getattr(item, method)
            if operation is None:
                continue
            needed = reduce(or_, (_RIGHTS.get(tag, Right.NONE) for tag in operation.tags or ()), Right.NONE)
            if has_right(request, needed):
                endpoints.append(path if method == "get" else f"{method.upper()} {path}")
    return [*endpoints, DESCRIPTION]
