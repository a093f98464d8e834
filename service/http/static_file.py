"""Static files, served from memory, with a validator, and compressed if the client accepts it."""

import gzip
from hashlib import sha256

import msgspec

from service.request.preconditions import conditions_in, is_unchanged
from service.request.respond import accepts_gzip
from service.request.response import Header, Response

_TYPES = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "json": b"application/json",
    "png": b"image/png",
    "svg": b"image/svg+xml",
    "xml": b"application/xml",
}
# The first makes browsers trust the content type.
_SAFE: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"vary", b"accept, accept-encoding"),
)


class StaticFile(msgspec.Struct, frozen=True):
    """One file in memory; it lives as long as the application. Each coding has a validator of its own."""

    content_type: bytes
    body: bytes
    gzipped: bytes
    digest: bytes
    headers: tuple[Header, ...]  # besides the content's own

    def reply(self, headers: list[Header]) -> Response:
        """Replies 200 in the coding that a request with `headers` accepts, or 304 if it has these bytes.

        Raises:
            ApiError: 412.
        """
        compressed = accepts_gzip(joined(headers, b"accept-encoding"))
        etag = b'"%s%s"' % (self.digest, b"-gzip" if compressed else b"")
        always = (*self.headers, (b"etag", etag))
        if is_unchanged(conditions_in(headers), etag):
            return Response.of(304, always, b"", "not_modified")
        coding = ((b"content-encoding", b"gzip"),) if compressed else ()
        body = self.gzipped if compressed else self.body
        return Response.of(200, ((b"content-type", self.content_type), *coding, *always), body, "answered")


def static_file(name: str, body: bytes, policy: bytes, cache_control: bytes = b"no-cache") -> StaticFile:
    """Returns the file called `name`, whose suffix gives its type. `policy` is its Content-Security-Policy."""
    return StaticFile(
        _TYPES.get(name.rpartition(".")[2], b"text/plain; charset=utf-8"),
        body,
        gzip.compress(body, 6, mtime=0),
        sha256(body).hexdigest()[:32].encode(),
        ((b"content-security-policy", policy), (b"cache-control", cache_control), *_SAFE),
    )


def joined(headers: list[Header], name: bytes) -> bytes:
    """Returns the values of the header `name`, as one list."""
    return b",".join(value for header, value in headers if header == name)
