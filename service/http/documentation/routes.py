"""GET /docs/ and the files that it loads. The documentation contains no data, so it needs no key."""

from importlib import resources

import msgspec
from litestar import get
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from service.http.app import GUIDE_PATH, Checked
from service.http.documentation.guide import render_guide
from service.http.documentation.reference import render_reference
from service.http.openapi import About, describe_api
from service.http.static_file import StaticFile, static_file
from service.request.response import Response

GUIDE = GUIDE_PATH.rstrip("/")
REFERENCE = "/docs/reference"

# The guide loads only its stylesheet.
_GUIDE_POLICY = b"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# Swagger UI writes styles into the page, has inline pictures, and sends trial requests.
_REFERENCE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src data:; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_CACHE_CONTROL = b"public, max-age=300"


def read_documentation(about: About) -> dict[str, StaticFile]:
    """Returns every file by its path. Swagger UI's are absent where they could not be downloaded."""
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


@get([GUIDE, f"{GUIDE}/{{file:str}}"])
async def get_page(checked: Checked, documentation: NamedDependency[SkipValidation[dict[str, StaticFile]]]) -> Response:
    """Returns a page of the documentation, or a file that it loads."""
    return documentation[checked.path].reply(list(checked.headers))
