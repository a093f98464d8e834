"""The requested part of a file: `Range` and `If-Range` of RFC 9110, 13.1.5 and 14.2."""

import re

import msgspec

from service.request.preconditions import is_same

# One range of bytes: from-to, from-, or -length. For anything else (other units, several ranges, invalid ones), a
# server may send the whole file; longer numbers are beyond the end of any file.
_ONE_RANGE = re.compile(rb"bytes=[ \t]*([0-9]{0,40})-([0-9]{0,40})[ \t]*", re.IGNORECASE)


class Part(msgspec.Struct, frozen=True):
    """Bytes `first` to before `end` of a file."""

    first: int
    end: int


class Unsatisfiable(Exception):  # noqa: N818 - named as the status
    """The range begins after the end of the file."""


def requested_part(
    headers: list[tuple[bytes, bytes]], etag: bytes, size: int, modified: int | None = None
) -> Part | None:
    """Returns the part of a file of `size` bytes that lower-case `headers` request; None: the whole file.

    It is the whole file, too, if `If-Range` names another one, by its strong `etag` or the exact date `modified`.

    Raises:
        Unsatisfiable
    """
    ranges = [value for name, value in headers if name == b"range"]
    conditions = [value.strip() for name, value in headers if name == b"if-range"]
    match = _ONE_RANGE.fullmatch(ranges[0].strip()) if len(ranges) == 1 else None
    if match is None or not all(is_same(condition, etag, modified) for condition in conditions):
        return None
    first, last = match.groups()
    if not first and not last:
        return None
    if not first:  # the last so many
        if int(last) == 0:
            raise Unsatisfiable
        return Part(max(0, size - int(last)), size)
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        raise Unsatisfiable
    return Part(int(first), min(int(last) + 1, size) if last else size)
