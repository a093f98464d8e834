"""Evaluates the preconditions of a GET or HEAD (RFC 9110, section 13), for every answer that has a validator.

A resource without a modification date ignores conditions on dates.
"""

import calendar
import time
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from service.http.errors import ApiError
from service.http.reply import Header

# RFC 9110, 5.6.7: the preferred form, and the two obsolete ones that a recipient must accept.
_DATE_FORMS = ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y")
_LONGEST_DATE = 40  # characters
_NAMES = (b"if-match", b"if-none-match", b"if-unmodified-since", b"if-modified-since")


class Conditions(msgspec.Struct, frozen=True):
    """The precondition fields of a request; None if absent. Repeated fields are one list."""

    if_match: bytes | None = None
    if_none_match: bytes | None = None
    if_unmodified_since: bytes | None = None
    if_modified_since: bytes | None = None


def conditions_in(headers: Iterable[Header]) -> Conditions:
    """The conditions among lower-case `headers`."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _NAMES:
            found[name] = found[name] + b"," + value if name in found else value
    return Conditions(*map(found.get, _NAMES))


def is_unchanged(conditions: Conditions, etag: bytes, modified: int | None = None) -> bool:
    """Whether the answer is a 304, in the order of RFC 9110, 13.2.2.

    `etag` is the strong tag of the selected representation, `modified` its date in seconds since 1970, if it has one.

    Raises:
        ApiError: 412 if If-Match or If-Unmodified-Since fails.
    """
    if conditions.if_match is not None:
        if not matches(conditions.if_match, etag, strongly=True):
            detail = None
            if matches(conditions.if_match, etag):
                detail = "A weak ETag (W/) never matches in If-Match. Send the ETag as it came, without W/."
            raise ApiError("precondition_failed", detail)
    elif modified is not None:
        unmodified_since = read_date(conditions.if_unmodified_since)
        if unmodified_since is not None and modified > unmodified_since:
            raise ApiError("precondition_failed")
    if conditions.if_none_match is not None:
        return matches(conditions.if_none_match, etag)
    modified_since = read_date(conditions.if_modified_since) if modified is not None else None
    return modified_since is not None and modified is not None and modified <= modified_since


def matches(tags: bytes, etag: bytes, *, strongly: bool = False) -> bool:
    """Whether a list of entity tags has `etag`, which is strong, or is `*`. Weak tags match in a weak comparison only
    (RFC 9110, 8.8.3.2). What is no tag matches nothing."""
    if tags.strip() == b"*":
        return True
    candidates = (tag.strip() for tag in tags.split(b","))
    return any((tag if strongly else tag.removeprefix(b"W/")) == etag for tag in candidates)


def is_same(if_range: bytes, etag: bytes, modified: int | None) -> bool:
    """Whether the representation is the one that a value of If-Range names: by its strong tag, or by its exact date
    (RFC 9110, 13.1.5)."""
    return if_range == etag or (modified is not None and read_date(if_range) == modified)


def read_date(value: bytes | None) -> int | None:
    """The seconds since 1970 of an HTTP date; None if it is absent or no date, so that its condition is ignored."""
    text = value.decode("latin-1").strip() if value is not None else ""
    if len(text) <= _LONGEST_DATE:
        for form in _DATE_FORMS:
            with suppress(ValueError, OverflowError):
                return calendar.timegm(time.strptime(text, form))
    return None
