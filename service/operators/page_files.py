"""The operators' page as it is served: static files without data, so they need no token."""

from importlib import resources

from service.http.static_file import StaticFile, joined, static_file
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
