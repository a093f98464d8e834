"""Parts of the OpenAPI description: parameters, bodies, and the headers of each answer."""

from collections.abc import Mapping
from typing import Any

import msgspec

Document = dict[str, Any]
REF = "#/components/schemas/{name}"


def parameter(
    name: str, description: str, schema: Document, example: Any = None, *, place: str = "query", required: bool = False
) -> Document:
    """Returns a parameter of an operation; it has no example where that is None."""
    shown = {"example": example} if example is not None else {}
    return {"name": name, "in": place, "required": required, "description": description, "schema": schema, **shown}


def header(name: str, description: str, pattern: str | None = None) -> Document:
    """Returns a header of a request, with the pattern that its text has to match."""
    schema = {"type": "string", "pattern": pattern} if pattern is not None else {"type": "string"}
    return parameter(name, description, schema, place="header")


def json_body(schema: str | Document, samples: Mapping[str, Any], note: str | None = None) -> Document:
    """Returns a body, of a schema or the component of that name.

    `samples` by their names, structs or what they encode to; `note` is added to each.
    """
    reference = {"$ref": REF.format(name=schema)} if isinstance(schema, str) else schema
    summary = {"summary": note} if note is not None else {}
    shown = {name: {**summary, "value": _as_sent(value)} for name, value in samples.items()}
    return {"application/json": {"schema": reference, "examples": shown}}


def _as_sent(body: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body))


def header_refs(names: tuple[str, ...]) -> Document:
    """Returns the headers of one answer, by reference to `HEADERS`."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def error_headers(status: int, codes: list[str], *, limited: bool) -> tuple[str, ...]:
    """Returns the names of an error's headers. `limited`: the terms of a key apply."""
    kept = ("Vary", "X-Data-Release") if "no_matching_records" in codes else ()
    left = LIMITS if status == _TOO_MANY or (limited and status in _PASSED) else ()
    return (*ALWAYS, "Cache-Control", *kept, *left, *_OF_ERRORS.get(status, ()))


def _header(description: str, example: str) -> Document:
    return {"description": description, "schema": {"type": "string"}, "example": example}


LIMITS = ("RateLimit", "RateLimit-Policy")
_TOO_MANY = 429
# Statuses of errors after the check of a key's terms. They take a token, and have headers with what is left.
_PASSED = (400, 404, 412, 416, 500, 503)
ALWAYS = ("X-Request-Id", "X-Test-Answer")
KEPT = ("ETag", "Cache-Control", "Vary", "Cache-Status", "X-Data-Release", *ALWAYS, *LIMITS, "X-Quota-Warning")
MATCHED, IGNORED = "X-Matched-City", "X-Ignored-Parameters"
_OF_ERRORS: dict[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    416: ("Content-Range", "Accept-Ranges"),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
HEADERS = {
    "ETag": _header(
        "Strong validator of the bytes; a release that did not change them keeps it.", '"9f86d081884c7d65"'
    ),
    "Cache-Control": _header("How long your own cache may keep the answer.", "private, max-age=60"),
    "Vary": _header("Request headers that the answer depends on.", "accept, accept-encoding, x-api-key"),
    "Cache-Status": _header("The source of the answer (RFC 9211).", "forecast; hit; detail=shared"),
    "X-Data-Release": _header("The release that answered.", "20261105T120000Z-0123456789ab"),
    "X-Request-Id": _header("Yours if you sent a usable one; name it when you ask us about a request.", "a1b2c3"),
    "X-Test-Answer": _header("Sent to test keys only: fixed test data, or a requested error.", "true"),
    "RateLimit": _header(
        "What is left, and the seconds that it must last (draft-ietf-httpapi-ratelimit-headers-11), where your key "
        "has a limit.",
        '"rate";r=99;t=1, "quota";r=4999577;t=864000',
    ),
    "RateLimit-Policy": _header(
        "The limits of your key: requests in so many seconds.", '"rate";q=500;w=1, "quota";q=5000000;w=2592000'
    ),
    "X-Quota-Warning": _header("Your quota is nearly used up.", "4150000 of 5000000 used this month"),
    "Last-Modified": _header(
        "When the file of this path changed; absent for a second.", "Thu, 05 Nov 2026 12:00:00 GMT"
    ),
    "Accept-Ranges": _header("Parts of the file can be requested.", "bytes"),
    "Content-Range": _header("Which part of how many bytes this is.", "bytes 0-65535/3123300"),
    "Content-Disposition": _header("A name for the file, with its release.", 'attachment; filename="forecast.parquet"'),
    MATCHED: _header(
        "The city that a name other than its own stood for; several are separated by semicolons.", "New York, NY"
    ),
    IGNORED: _header("Parameters that the endpoint does not know and that changed nothing; at most ten.", "zip, page"),
    "Content-Encoding": _header("gzip, where you accept it and it is worth it.", "gzip"),
    "WWW-Authenticate": _header("The scheme that is missing.", "ApiKey"),
    "Allow": _header("The allowed methods.", "GET, HEAD"),
    "Retry-After": _header("Seconds to wait before the next try.", "1"),
}
