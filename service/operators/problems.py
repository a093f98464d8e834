"""Errors as operators see them: the same members as partners', with codes of their own."""

from service.base.masking import masked
from service.http.errors import ApiError, error_reply
from service.http.reply import Header, Reply

# code -> (status, what to do)
CODES: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The request is not valid HTTP/1.1."),
    "invalid_body": (400, "The body is not what this endpoint takes."),
    "invalid_key_id": (400, "This is no key id: `forecast keys list` shows them."),
    "missing_token": (401, "Send a token of the operators' once, as Authorization: Bearer TOKEN."),
    "invalid_token": (
        401,
        "The token is not known. Check that it is the one in FORECAST_OPERATOR_READ_TOKEN or _WRITE_TOKEN.",
    ),
    "not_permitted": (403, "This token may only read. Use the one in FORECAST_OPERATOR_WRITE_TOKEN."),
    "not_found": (404, "There is nothing at this path. GET / lists what there is."),
    "no_such_key": (404, "There is no such key: `forecast keys list` shows those there are."),
    "no_such_release": (404, "There is no such release: `forecast extracts list` shows those there are."),
    "method_not_allowed": (405, "The method is not allowed here. Use one that Allow names."),
    "request_timeout": (408, "The request did not arrive in time. Send head and body within 10 s."),
    "busy": (409, "Somebody else is changing the same. Try again."),
    "rollback_refused": (409, "The release cannot be made current. Nothing was changed."),
    "body_too_large": (413, "The body is too large. Send at most 4 KiB."),
    "uri_too_long": (414, "The address is too long. Nothing here needs more than 8 KiB."),
    "not_json": (415, "Send the body with Content-Type: application/json, or none."),
    "headers_too_large": (431, "The request headers are too many or too large. Send at most 100, 16 KiB together."),
    "internal": (500, "Something went wrong on our side. The log has more under the request_id."),
    "unavailable": (503, "The key store does not answer. Try again."),
}

_BEARER: Header = (b"www-authenticate", b"Bearer")
# what is left of the body is not waited for
_CLOSE: Header = (b"connection", b"close")


def refused(code: str, request_id: str, detail: str | None = None, headers: tuple[Header, ...] = ()) -> Reply:
    """The answer for `code`, with the headers that its status calls for, unless `headers` bring them."""
    status, advice = CODES[code]
    if status == 401:
        headers = (*headers, _BEARER)
    if status == 413:
        headers = (*headers, _CLOSE)
    return error_reply(code, status, masked(detail or advice), request_id, headers=headers)


def of_error(error: Exception, request_id: str) -> Reply:
    """The answer for an exception: an ApiError says what it is; of anything else nothing is shown."""
    if isinstance(error, ApiError):
        return refused(error.code, request_id, error.detail, error.headers)
    return refused("internal", request_id)
