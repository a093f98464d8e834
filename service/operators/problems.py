"""Errors on the operators' listener: the same members as partners' errors, with codes of their own."""

from service.request.errors import error_response
from service.request.response import Header, Response

# code -> (status, what to do)
OPERATOR_CODES: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The request is not valid HTTP/1.1."),
    "invalid_body": (400, "The body is not what this endpoint takes."),
    "invalid_key_id": (400, "This is not a key id. `forecast keys list` shows the ids."),
    "missing_token": (401, "Send an operators' token, once, as Authorization: Bearer TOKEN."),
    "invalid_token": (
        401,
        "The token is unknown. Send the one in FORECAST_OPERATOR_READ_TOKEN or FORECAST_OPERATOR_WRITE_TOKEN.",
    ),
    "token_not_set": (
        401,
        "Beyond loopback, reading takes a token, and none is set. Set FORECAST_OPERATOR_READ_TOKEN_FILE, and restart.",
    ),
    "cross_site": (403, "A browser sent this for a page of another site. Nothing was changed."),
    "not_permitted": (403, "This token may only read. Use the one in FORECAST_OPERATOR_WRITE_TOKEN."),
    "not_found": (404, "There is nothing at this path. GET / lists the endpoints."),
    "no_such_request": (
        404,
        "No worker knows this request: it was not logged (FORECAST_ACCESS_LOG), is long ago, or its worker has ended.",
    ),
    "no_such_key": (404, "There is no such key. `forecast keys list` shows all keys."),
    "no_such_release": (404, "There is no such release. `forecast extracts list` shows all releases."),
    "method_not_allowed": (405, "The method is not allowed here. Use one that the Allow header names."),
    "request_timeout": (408, "The request did not arrive in time. Send head and body within 10 s."),
    "busy": (409, "The same thing is being changed by somebody else. Try again."),
    "rollback_refused": (409, "The release cannot be made current. Nothing was changed."),
    "precondition_failed": (412, "The file is not the one that If-Match names. Get it without If-Match."),
    "body_too_large": (413, "The body is too large. Send at most 4 KiB."),
    "uri_too_long": (414, "The address is too long. Keep it under 8 KiB."),
    "not_json": (415, "Send the body with Content-Type: application/json, or send no body."),
    "misdirected_request": (
        421,
        "The Host is none of this listener's. Use localhost, or add the name to FORECAST_OPERATOR_ALLOWED_HOSTS.",
    ),
    "headers_too_large": (431, "The headers are too many or too large. Send at most 100, 16 KiB together."),
    "internal": (500, "Something went wrong on our side. The log has more under the request_id."),
    "unavailable": (503, "The key store does not answer. Try again."),
}

_BEARER: Header = (b"www-authenticate", b"Bearer")


def refusal_response(code: str, detail: str | None = None, headers: tuple[Header, ...] = ()) -> Response:
    """The answer for `code`, with `headers` and those that its status requires."""
    status, advice = OPERATOR_CODES[code]
    if status == 401:
        headers = (*headers, _BEARER)
    return error_response(code, status, detail or advice, headers=headers)
