"""Where the documentation is. It contains no data, so everybody may have it, without a key."""

from importlib import resources

import msgspec
from litestar import asgi
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from service.http.documentation.guide import render_guide
from service.http.documentation.reference import render_reference
from service.http.openapi import About, describe_api
from service.http.paths import GUIDE_PATH
from service.http.static_file import StaticFile, static_file

GUIDE = GUIDE_PATH.rstrip("/")
REFERENCE = "/docs/reference"

# The guide loads its stylesheet and nothing else.
_GUIDE_POLICY = b"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# Swagger UI writes styles into the page, has its pictures inline, and sends the requests that are tried.
_REFERENCE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src data:; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_CACHE_CONTROL = b"public, max-age=300"


def read_documentation(about: About) -> dict[str, StaticFile]:
    """Every file by its path. Swagger UI's are absent where it could not be brought in."""
    root = resources.files("service.http.documentation")
    swagger = root.joinpath("swagger")
    brought = [file for file in swagger.iterdir() if file.is_file()] if swagger.is_dir() else []
    document = describe_api(about)
    texts = {
        GUIDE: ("guide.html", render_guide(about).encode(), _GUIDE_POLICY),
        REFERENCE: (
            "reference.html",
            render_reference(document, with_swagger=bool(brought)).encode(),
            _REFERENCE_POLICY,
        ),
        "/docs/openapi.json": ("openapi.json", msgspec.json.encode(document), _GUIDE_POLICY),
    }
    own = [root.joinpath("pages", name) for name in ("style.css", "reference.js")]
    texts |= {f"/docs/{file.name}": (file.name, file.read_bytes(), _GUIDE_POLICY) for file in (*own, *brought)}
    return {path: static_file(name, body, policy, _CACHE_CONTROL) for path, (name, body, policy) in texts.items()}


def documentation_routes(about: About) -> dict[str, ASGIRouteHandler]:
    """A GET for each file, by its path."""
    return {path: _route(path, file) for path, file in read_documentation(about).items()}


def _route(path: str, file: StaticFile) -> ASGIRouteHandler:
    @asgi(path, copy_scope=False)
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await file.reply(scope["headers"])(scope, receive, send)  # type: ignore[arg-type]  # bytes, as ASGI says

    return answer
