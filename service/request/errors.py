"""Errors as partners see them: RFC 9457 members, a stable code, and a sentence with the remedy.

ApiError
└── raised by steps and handlers; `problem` makes its answer
"""

import logging
from functools import lru_cache
from http import HTTPStatus
from typing import Annotated

import msgspec
from msgspec import Meta

from service.base.masking import masked
from service.request.response import JSON, NO_STORE, Header, Response, lines_of

log = logging.getLogger("forecast.http")

# code -> (status, what to do). Stable: partners branch on the code.
CODES: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The request is not valid HTTP/1.1. Check how your client builds it."),
    "missing_parameter": (400, "Give zip_code, or city_name and state_code."),
    "invalid_parameter": (400, "A parameter's value is not valid. Correct it and try again."),
    "duplicate_parameter": (400, "A parameter was given twice. Give it once."),
    "unknown_parameter": (400, "A parameter is not known here. Correct its name, or leave it out."),
    "invalid_cursor": (
        400,
        "The cursor belongs to another query or was changed. Send next_cursor as it came, or none.",
    ),
    "body_not_allowed": (400, "These endpoints take no request body. Send the GET without one."),
    "missing_api_key": (401, "Send your API key in the x-api-key header."),
    "invalid_api_key": (401, "The API key is not known. Check that it was copied whole, or ask for a new one."),
    "expired_api_key": (401, "The API key has expired. Ask for a new one."),
    "revoked_api_key": (401, "The API key was revoked. Ask for a new one."),
    "pending_api_key": (401, "The API key is not valid yet. Wait until then."),
    "suspended_api_key": (403, "The API key is suspended. Ask us to resume it; you keep the key."),
    "not_entitled": (403, "The API key does not include this data area. Ask for it to be added."),
    "no_matching_records": (404, "Nothing matches the query."),
    "not_found": (404, "There is nothing at this path. GET /v1/ lists what there is."),
    "method_not_allowed": (405, "Only GET and HEAD are allowed here."),
    "request_timeout": (408, "The request did not arrive in time. Send it again on a new connection."),
    "precondition_failed": (
        412,
        "The answer is not the one that If-Match or If-Unmodified-Since names. Get it from the start, without them.",
    ),
    "uri_too_long": (414, "The address is too long. Queries need no more than 8 KiB."),
    "range_not_satisfiable": (416, "The range begins behind the end of the file. Ask for one within it."),
    "rate_limited": (429, "Too many requests. Wait as long as Retry-After says."),
    "quota_exhausted": (429, "The quota of this period is used up. Wait for the next, or ask for more."),
    "headers_too_large": (431, "The request headers are too many or too large. Send at most 100, 16 KiB together."),
    "internal": (500, "Something went wrong on our side. Try again; if it stays so, tell us the request_id."),
    "unavailable": (503, "The service cannot answer at the moment. Try again as Retry-After says."),
}

RETRY_AFTER_SECONDS = 1
ALLOW = "GET, HEAD"


class Problem(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The body of every error. `parameter` is present if one is wrong."""

    type: Annotated[str, Meta(description="Always about:blank (RFC 9457).")]
    title: Annotated[str, Meta(description="The status in words.")]
    status: Annotated[int, Meta(description="The HTTP status.")]
    detail: Annotated[str, Meta(description="The error and its remedy; for people, so it may change.")]
    code: Annotated[str, Meta(description="The kind of error, for programs; it never changes.")]
    request_id: Annotated[str, Meta(description="Name it when you ask us about the request.")]
    parameter: Annotated[str | None, Meta(description="The wrong parameter.")] = None


class ApiError(Exception):
    """Ends a request with the error of `code`. A Cache-Control among `headers` replaces ``no-store``."""

    def __init__(
        self,
        code: str,
        detail: str | None = None,
        parameter: str | None = None,
        headers: tuple[Header, ...] = (),
        remedy: str = "",  # added to the detail; corrections replace it
    ) -> None:
        self.problem = detail
        self.detail = f"{detail} {remedy}" if detail and remedy else detail or remedy or None
        super().__init__(code, self.detail)
        self.remedy = remedy
        self.code = code
        self.parameter = parameter
        self.headers = headers


_NEWER_TITLES = {413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable"}
_encoder = msgspec.json.Encoder()


def problem(
    code: str, detail: str | None = None, parameter: str | None = None, headers: tuple[Header, ...] = ()
) -> Response:
    """Returns the answer for `code`, with the headers that its status needs, unless `headers` have them."""
    status, advice = CODES[code]
    return error_response(code, status, detail or advice, parameter, headers)


@lru_cache(maxsize=1_000)
def error_response(
    code: str, status: int, detail: str, parameter: str | None = None, headers: tuple[Header, ...] = ()
) -> Response:
    """Returns the response for a code of another listener than the partners'.

    The text of every error is written here: any part of a request that it repeats has its keys masked.
    """
    detail, parameter = masked(detail), masked(parameter) if parameter is not None else None
    bare = Problem(type="about:blank", title=title_of(status), status=status, detail=detail, code=code, request_id="")
    body = _encoder.encode(bare).removesuffix(b'"}')
    whole = _encoder.encode(msgspec.structs.replace(bare, parameter=parameter))
    given = {name for name, _ in headers}
    # application/json and not application/problem+json (contract 10)
    required = (header for header in (JSON, NO_STORE, *_required(status)) if header[0] not in given)
    return Response(status, lines_of((*required, *headers)), body, code, whole.removeprefix(body))


def title_of(status: int) -> str:
    """Returns the status's phrase in RFC 9110; Python before 3.13 has older ones for some."""
    return _NEWER_TITLES.get(status) or HTTPStatus(status).phrase


def problem_of(error: Exception) -> Response:
    """Returns the answer for an exception: of an ApiError, or a generic one that reveals no details."""
    if isinstance(error, ApiError):
        return problem(error.code, error.detail, error.parameter, error.headers)
    if 400 <= getattr(error, "status_code", 500) < 500:  # the framework's own error for a client's mistake
        return problem("bad_request")
    return problem("internal")


def failure_of(error: Exception, request_id: bytes) -> Response:
    """Returns the response for a failed step or endpoint; logs the failure if it is ours."""
    extra = {"request_id": request_id.decode()}
    if not isinstance(error, ApiError):
        log.error("handler failed", exc_info=error, extra=extra)
    elif error.__cause__ is not None:
        log.warning("%s: %s", error.code, error.__cause__, extra=extra)
    return problem_of(error)


def _required(status: int) -> tuple[Header, ...]:
    if status == 401:
        return ((b"www-authenticate", b"ApiKey"),)
    if status == 405:
        return ((b"allow", ALLOW.encode()),)
    if status in (429, 503):
        return ((b"retry-after", str(RETRY_AFTER_SECONDS).encode()),)
    return ()
