"""Makes the answer from an entry: validators (RFC 9110), Cache-Control, Cache-Status (RFC 9211), coding."""

import re
from functools import lru_cache

from service.cache.entry import CacheEntry, Found, PreparedHeads
from service.request.errors import ApiError, problem_of
from service.request.preconditions import is_unchanged, matches
from service.request.request import Request
from service.request.response import JSON, STATUS_LINES, Header, Response, fields_in, lines_of

VARY: Header = (b"vary", b"accept, accept-encoding, x-api-key")
# On every answer to a test key.
TEST_ANSWER: Header = (b"x-test-answer", b"true")
CLOSE: Header = (b"connection", b"close")
_GZIP: Header = (b"content-encoding", b"gzip")
_WEIGHT = re.compile(rb"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")  # RFC 9110 12.4.2
# A hit has no `Age`: it would mean that the origin has not confirmed the answer for this request (RFC 9111, 5.1), and
# callers would subtract it from `max-age`. We are the origin, and an entry of the current release equals the
# warehouse's answer now.
NEAR, SHARED = b"forecast; hit; detail=near", b"forecast; hit; detail=shared"
_MISS, _BYPASS = b"forecast; fwd=uri-miss; detail=warehouse", b"forecast; fwd=bypass; detail=warehouse"
_MOST_TEMPLATES = 64
# Stands in a template for an entry's digest. No other part of a head has 16 such bytes.
_ANY_DIGEST = b"\xa5" * 16
# After the request's id, which ends the header lines of an answer without limits.
_NO_LIMITS = b"\r\n\r\n"
_ID = b"x-request-id: "


class CachePolicy:
    """Makes answers that callers may cache for `max_age` seconds. One per worker."""

    def __init__(self, max_age: int) -> None:
        self._control: Header = (b"cache-control", b"private, max-age=%d" % max_age)
        # by release, Cache-Status, content type and whether it is compressed
        self._templates: dict[tuple[str, bytes, Header, bool], _Template] = {}

    def headers(self, release: str) -> tuple[Header, ...]:
        """Returns headers of an answer without a validator: a 404 without a match."""
        return (self._control, VARY, (b"x-data-release", release.encode()))

    def prepare(self, release: str, entry: CacheEntry) -> PreparedHeads:
        """Returns the header lines that the near cache keeps with an entry: of the plain form, then of the gzip one."""

        def lines(body: bytes, *, zipped: bool) -> bytes:
            return self._template(release, NEAR, JSON, zipped=zipped).whole(entry.etag_digest, len(body))

        plain = lines(entry.body, zipped=False)
        return (plain, lines(entry.gzipped, zipped=True)) if entry.gzipped else (plain,)

    def respond(self, request: Request) -> Response:
        """Returns the answer from the entry found: a 200 in the coding that the request accepts, a 304, or a 412."""
        found, target = request.found, request.target
        if found is None or target is None:
            raise LookupError("the request was not looked up")
        if not found.heads or target.headers or request.if_none_match or request.if_match is not None:
            return self.found_response(request, found, target.outcome, target.headers)
        if _zips(request, found.entry):
            return Response(200, found.heads[1], found.entry.gzipped, target.outcome)
        return Response(200, found.heads[0], found.entry.body, target.outcome)

    def found_response(
        self, request: Request, found: Found, outcome: str = "answered", headers: tuple[Header, ...] = ()
    ) -> Response:
        """Returns the same for an entry that may combine others. A 412 has none of these `headers`."""
        response = self._response(request, found.entry, found.release, outcome, _cache_status(found), JSON)
        if found.stale_for is not None:
            headers = (*headers, (b"age", b"%d" % found.stale_for))
        if not headers or response.status >= 400:
            return response
        return Response(response.status, response.lines + lines_of(headers), response.body, response.outcome)

    def own_response(self, request: Request, entry: CacheEntry, release: str, content_type: Header = JSON) -> Response:
        """Returns the same for an entry that is not cached."""
        return self._response(request, entry, release, "answered", b"", content_type)

    def _response(
        self, request: Request, entry: CacheEntry, release: str, outcome: str, status: bytes, content_type: Header
    ) -> Response:
        zipped = _zips(request, entry)
        template = self._template(release, status, content_type, zipped=zipped)
        if request.if_none_match or request.if_match is not None:
            try:
                unchanged = template.unchanged(entry.etag_digest, request)
            except ApiError as error:
                return problem_of(error)
            if unchanged is not None:
                return Response(304, unchanged, b"", "not_modified")
        body = entry.gzipped if zipped else entry.body
        return Response(200, template.whole(entry.etag_digest, len(body)), body, outcome)

    def _template(self, release: str, status: bytes, content_type: Header, *, zipped: bool) -> "_Template":
        key = (release, status, content_type, zipped)
        template = self._templates.get(key)
        if template is None:
            if len(self._templates) >= _MOST_TEMPLATES:
                self._templates.clear()
            shared = (*self.headers(release), (b"cache-status", status)) if status else self.headers(release)
            template = self._templates[key] = _Template(shared, content_type, zipped=zipped)
        return template


class _Template:
    """The header lines of one release, coding and Cache-Status, without the digest in the ETag and the length."""

    def __init__(self, shared: tuple[Header, ...], content_type: Header, *, zipped: bool) -> None:
        hole = _ANY_DIGEST.hex().encode()
        etag = b'"%b%b"' % (hole, b"-gzip" if zipped else b"")
        unchanged = lines_of(((b"etag", etag), *shared))
        own = lines_of((content_type, _GZIP) if zipped else (content_type,))
        self._etag = etag.split(hole)
        self._unchanged = unchanged.split(hole)
        self._before, behind = (own + unchanged).split(hole)
        self._behind = behind + b"content-length: "

    def whole(self, digest: bytes, length: int) -> bytes:
        """Returns the header lines of a 200."""
        return b"%b%b%b%d\r\n" % (self._before, digest.hex().encode(), self._behind, length)

    def unchanged(self, digest: bytes, request: Request) -> bytes | None:
        """Returns the header lines of a 304; None if the caller has other bytes. Raises ApiError (412)."""
        text = digest.hex().encode()
        etag, sent = text.join(self._etag), request.if_none_match
        if request.if_match is not None:
            same = is_unchanged({b"if-match": request.if_match, b"if-none-match": sent or None}, etag)
        else:
            same = sent is not None and (sent == etag or matches(sent, etag))
        return text.join(self._unchanged) if same else None


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: bytes) -> bool:
    """Returns whether gzip, or everything not named, is accepted, and the plain bytes are not preferred to it."""
    weights: dict[bytes, float] = {}
    for part in accept_encoding.lower().split(b","):
        coding, *parameters = part.split(b";")
        weights[coding.strip()] = min(map(_weight, parameters), default=1.0)
    weight = weights.get(b"gzip", weights.get(b"x-gzip", weights.get(b"*", 0.0)))
    return weight > 0 and weight >= weights.get(b"identity", 0.0)


def _weight(parameter: bytes) -> float:
    """Returns the weight. An invalid one is 0: every client can read plain bytes."""
    if parameter.partition(b"=")[0].strip() != b"q":
        return 1.0
    valid = _WEIGHT.fullmatch(parameter.strip())
    return float(valid[1]) if valid else 0.0


def _zips(request: Request, entry: CacheEntry) -> bool:
    return bool(entry.gzipped and request.accept_encoding and accepts_gzip(request.accept_encoding))


def _cache_status(found: Found) -> bytes:
    """Returns the field of RFC 9211; for a stale answer see RFC 9111 5.1 and RFC 9211 2.3."""
    if found.stale_for is not None:
        return b"forecast; hit; ttl=-%d; detail=previous-release" % found.stale_for
    if found.tier == "warehouse":
        return _BYPASS if found.bypassed else _MISS
    return SHARED if found.tier == "shared" else NEAR


def limits_of(request: Request, status: int) -> bytes:
    """Returns the end of the header lines, after the request's id: what is left of the key's limits."""
    allowance = request.allowance
    if allowance is None:
        return _NO_LIMITS
    if request.counted:
        return allowance.tail_after(sum(one.number for one in request.counted if one.status < 400))
    return allowance.tail if status < 400 else allowance.unbilled


def fields_behind(request: Request, status: int) -> list[Header]:
    """Returns the fields that every answer has after its own."""
    fields = [(b"x-request-id", request.request_id), *fields_in(limits_of(request, status)[2:-2])]
    return [*fields, TEST_ANSWER] if request.is_test else fields


def written(request: Request, response: Response, dates: bytes) -> tuple[bytes, bytes]:
    """Returns head and body as they are sent. `dates` are the server's own header lines."""
    lines, body, status, allowance = response.lines, response.body, response.status, request.allowance
    if response.rest:
        lines, body = response.whole(request.request_id)
    tail = allowance.tail if status < 400 and allowance is not None else limits_of(request, status)
    if request.closes or request.is_test:
        more = [*([TEST_ANSWER] if request.is_test else []), *([CLOSE] if request.closes else [])]
        tail = b"%b%b\r\n" % (tail[:-2], lines_of(tuple(more)))
    head = b"".join((STATUS_LINES[status], dates, lines, _ID, request.request_id, tail))
    return head, body if request.method != "HEAD" else b""
