"""Evaluates the preconditions of a GET or HEAD (RFC 9110, section 13), for every answer that has a validator.

A resource without a modification date ignores conditions on dates.
"""

import calendar
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from service.request.errors import ApiError
from service.request.response import Header

# RFC 9110, 5.6.7: the preferred form, and the two obsolete ones that a recipient must accept.
_DATE_FORMS = ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y")
_LONGEST_DATE = 40  # characters
_NAMES = (b"if-match", b"if-none-match", b"if-unmodified-since", b"if-modified-since")


# The precondition fields of a request, by their names. Repeated fields are one list.
Conditions = Mapping[bytes, bytes | None]


def conditions_in(headers: Iterable[Header]) -> Conditions:
    """Returns the conditions among lower-case `headers`."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _NAMES:
            found[name] = found[name] + b"," + value if name in found else value
    return found


def is_unchanged(conditions: Conditions, etag: bytes, modified: int | None = None) -> bool:
    """Returns whether the answer is a 304, in the order of RFC 9110, 13.2.2.

    `etag` is the strong tag of the selected representation, `modified` its date in seconds since 1970, if it has one.

    Raises:
        ApiError: 412 if If-Match or If-Unmodified-Since fails.
    """
    wanted, known = conditions.get(b"if-match"), conditions.get(b"if-none-match")
    if wanted is not None:
        if not matches(wanted, etag, strongly=True):
            advice = "A weak ETag (W/) never matches in If-Match. Send the ETag as it came, without W/."
            raise ApiError("precondition_failed", advice if matches(wanted, etag) else None)
    elif modified is not None:
        since = read_date(conditions.get(b"if-unmodified-since"))
        if since is not None and modified > since:
            raise ApiError("precondition_failed")
    if known is not None:
        return matches(known, etag)
    since = read_date(conditions.get(b"if-modified-since"))
    return modified is not None and since is not None and modified <= since


def matches(tags: bytes, etag: bytes, *, strongly: bool = False) -> bool:
    """Returns whether a list of entity tags has `etag`, which is strong, or is `*`.

    Weak tags match in a weak comparison only (RFC 9110, 8.8.3.2). An invalid tag matches none.
    """
    if tags.strip() == b"*":
        return True
    candidates = (tag.strip() for tag in tags.split(b","))
    return any((tag if strongly else tag.removeprefix(b"W/")) == etag for tag in candidates)


def is_same(if_range: bytes, etag: bytes, modified: int | None) -> bool:
    """Returns whether an If-Range value names this representation: by strong tag or exact date (RFC 9110, 13.1.5)."""
    return if_range == etag or (modified is not None and read_date(if_range) == modified)


def read_date(value: bytes | None) -> int | None:
    """Returns the seconds since 1970 of an HTTP date; None if it is absent or invalid: its condition is ignored."""
    text = value.decode("latin-1").strip() if value is not None else ""
    if len(text) <= _LONGEST_DATE:
        for form in _DATE_FORMS:
            with suppress(ValueError, OverflowError):
                return calendar.timegm(time.strptime(text, form))
    return None
