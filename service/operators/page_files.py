"""The operators' page as it is served: static files, which contain no data, so everybody may have them."""

import gzip
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

from service.http.caching import accepts_gzip, matches
from service.http.reply import Header, Reply

INDEX = "index.html"

_TYPES = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
}
# Nothing from elsewhere, nothing inline. Data: the empty icon, which spares a request for one.
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SAFE: tuple[Header, ...] = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
    (b"vary", b"accept, accept-encoding"),
)


class PageFile(msgspec.Struct, frozen=True):
    """One file in memory; it lives as long as the application."""

    content_type: bytes
    body: bytes
    gzipped: bytes
    digest: bytes

    def reply(self, headers: list[Header]) -> Reply:
        """200 in the coding that a request with `headers` accepts, or 304 if it has these bytes."""
        compressed = accepts_gzip(joined(headers, b"accept-encoding"))
        etag = b'"%s%s"' % (self.digest, b"-gzip" if compressed else b"")
        always = (*_SAFE, (b"etag", etag))
        if matches(joined(headers, b"if-none-match"), etag):
            return Reply(304, always, b"", "not_modified")
        coding = ((b"content-encoding", b"gzip"),) if compressed else ()
        body = self.gzipped if compressed else self.body
        return Reply(200, ((b"content-type", self.content_type), *coding, *always), body, "answered")


def read_page() -> dict[str, PageFile]:
    """Every file of the page by its path below `page/`. uPlot's are absent where it could not be brought in."""
    root = resources.files("service.operators").joinpath("page")
    brought = root.joinpath("uplot")
    files = {file.name: file for file in root.iterdir() if file.is_file()}
    if brought.is_dir():
        files |= {f"uplot/{file.name}": file for file in brought.iterdir()}
    return {path: _read(file) for path, file in files.items()}


def wants_page(headers: list[Header]) -> bool:
    """Whether a browser asks, and not a program, which gets JSON."""
    return b"text/html" in joined(headers, b"accept").lower()


def joined(headers: list[Header], name: bytes) -> bytes:
    return b",".join(value for header, value in headers if header == name)


def _read(file: Traversable) -> PageFile:
    body = file.read_bytes()
    return PageFile(
        _TYPES.get(file.name.rpartition(".")[2], b"text/plain; charset=utf-8"),
        body,
        gzip.compress(body, mtime=0),
        sha256(body).hexdigest()[:32].encode(),
    )
