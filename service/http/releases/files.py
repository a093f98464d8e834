"""Files of a release: each has a whole area. Parts of them can be requested."""

import time
from email.utils import formatdate

from litestar.types import ASGIApp

from service.base.terms import PARTNER_USAGE
from service.http.areas import AREAS
from service.http.query import read_strictly
from service.http.releases.downloads import Downloads
from service.http.releases.ranges import Part, Unsatisfiable, requested_part
from service.http.releases.shelf import ReleaseShelf
from service.keys.record import ApiKey
from service.request.errors import ApiError
from service.request.preconditions import conditions_in, is_unchanged
from service.request.request import Request, key_of
from service.request.respond import CachePolicy
from service.request.response import Header, Response
from warehouse.releases.catalog import FileInfo, Manifest
from warehouse.releases.files import FORMATS, flat_file

# The entitlement that a key needs besides the area itself.
BULK = "bulk"
# All that a key can be entitled to.
AREA_NAMES = (*(area.name for area in AREAS), BULK, PARTNER_USAGE)
CONTENT_TYPES = {"parquet": b"application/vnd.apache.parquet", "csv.gz": b"application/gzip"}
# by the name in the path: the area, and the format
FILES = {f"{area.name}.{form}": (area.name, form) for area in AREAS for form in FORMATS}
_RANGES: Header = (b"accept-ranges", b"bytes")


async def send_file(
    release: str, file: str, request: Request, shelf: ReleaseShelf, policy: CachePolicy, downloads: Downloads
) -> ASGIApp:
    """Returns the answer with a file of FILES, or the part of it that the request names.

    Raises:
        ApiError: 400, 403, 404, 412, 416, 503.
    """
    area, form = FILES[file]
    key = key_of(request)
    _check_area(key, area)
    read_strictly(request.query, ())
    manifest, modified = await shelf.release(release)
    name = flat_file(area, form)
    info = _info(manifest, name, area)
    etag = b'"%s"' % info.checksum.encode()
    kept = ((b"etag", etag), *policy.headers(manifest.id), _RANGES)
    fields = list(request.headers)
    if is_unchanged(conditions_in(fields), etag, modified):
        return Response.of(304, kept, b"", "not_modified")
    is_get = request.method == "GET"
    status, part, said = _part(fields if is_get else [], etag, info.bytes, modified)
    headers = (
        (b"content-type", CONTENT_TYPES[form]),
        (b"content-disposition", f'attachment; filename="{manifest.id}-{area}.{form}"'.encode()),
        (b"content-length", b"%d" % (part.end - part.first)),
        *said,
        *_last_modified(modified),
        *kept,
    )
    sent = part if is_get else Part(0, 0)
    return downloads.of(key.key_id, shelf.folder(manifest) / name, info.bytes, sent, (status, headers))


def _check_area(key: ApiKey, area: str) -> None:
    """Raises ApiError if the key may not use the file's area: admission has checked `BULK` only."""
    if key.terms.areas is not None and area not in key.terms.areas:
        detail = f"The API key does not include {area}, which this file holds. Ask for it to be added."
        raise ApiError("not_entitled", detail)


def _info(manifest: Manifest, name: str, area: str) -> FileInfo:
    info = manifest.files.get(name)
    if info is not None:
        return info
    if area in manifest.areas:
        detail = f"Release {manifest.id} was published before there were files. The next release will have them."
    else:
        detail = f"Release {manifest.id} has no {area}. GET /v1/releases lists what each release has."
    raise ApiError("not_found", detail)


def _last_modified(modified: int | None) -> tuple[Header, ...]:
    """Returns Last-Modified, except within its second, when `current` may change again: so it is a strong validator."""
    if modified is None or time.time() < modified + 1:
        return ()
    return ((b"last-modified", formatdate(modified, usegmt=True).encode()),)


def _part(fields: list[Header], etag: bytes, size: int, modified: int | None) -> tuple[int, Part, tuple[Header, ...]]:
    """Returns status, part and header of an answer. Raises ApiError (416)."""
    try:
        part = requested_part(fields, etag, size, modified)
    except Unsatisfiable:
        detail = f"The range begins behind the end of the file, which has {size} bytes. Ask for one within it."
        at_all = (b"content-range", b"bytes */%d" % size)
        raise ApiError("range_not_satisfiable", detail, headers=(at_all, _RANGES)) from None
    if part is None:
        return 200, Part(0, size), ()
    return 206, part, ((b"content-range", b"bytes %d-%d/%d" % (part.first, part.end - 1, size)),)
