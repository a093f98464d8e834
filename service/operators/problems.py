"""Errors of the operators' listener: the same members as partners' errors, with their own codes."""

from service.request.errors import error_response
from service.request.response import Header, Response

# code -> (status, what to do)
OPERATOR_CODES: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The request is not valid HTTP/1.1."),
    "invalid_body": (400, "This endpoint does not accept the body."),
    "invalid_parameter": (400, "A parameter's value is not valid. Correct it and try again."),
    "unknown_parameter": (400, "A parameter is not known here. Correct its name, or leave it out."),
    "duplicate_parameter": (400, "A parameter was given twice. Give it once."),
    "unknown_plan": (400, "There is no such plan. GET /plans lists them."),
    "invalid_key_id": (400, "This is not a key id. `forecast keys list` shows the ids."),
    "missing_token": (401, "Send one operators' token as Authorization: Bearer TOKEN."),
    "invalid_token": (
        401,
        "The token is unknown. Send one of FORECAST_OPERATOR_READ_TOKEN, _WRITE_TOKEN, _KEYS_TOKEN.",
    ),
    "token_not_set": (
        401,
        "Beyond loopback, reading needs a token, and none is set. Set FORECAST_OPERATOR_READ_TOKEN_FILE and restart.",
    ),
    "cross_site": (403, "A browser sent this for a page of another site. The request had no effect."),
    "not_permitted": (
        403,
        "This token may not. Changes need FORECAST_OPERATOR_WRITE_TOKEN, keys FORECAST_OPERATOR_KEYS_TOKEN.",
    ),
    "not_found": (404, "This path does not exist. GET / lists the endpoints."),
    "no_such_request": (
        404,
        "No worker knows this request: it was not logged (FORECAST_ACCESS_LOG), is too old, or its worker has ended.",
    ),
    "no_such_key": (404, "This key does not exist. `forecast keys list` shows all keys."),
    "no_such_plan": (404, "This plan does not exist. GET /plans lists all plans."),
    "no_such_partner": (404, "This partner has no limits. GET /partners lists those that have."),
    "no_such_release": (404, "This release does not exist. `forecast extracts list` shows all releases."),
    "method_not_allowed": (405, "The method is not allowed here. Use one from the Allow header."),
    "request_timeout": (408, "The request did not arrive in time. Send head and body within 10 s."),
    "busy": (409, "Another change of the same thing is under way. Try again."),
    "rollback_refused": (409, "The release cannot be made current. The current release stays."),
    "change_refused": (409, "The change is not possible. Nothing was changed."),
    "link_used": (
        410,
        "This link was opened before, or its 24 hours are over. Ask for a new key: a key is shown only once.",
    ),
    "precondition_failed": (
        412,
        "It does not match If-Match or If-None-Match. Get it again, and decide with its new ETag.",
    ),
    "body_too_large": (413, "The body is too large. Send at most 4 KiB."),
    "uri_too_long": (414, "The URL is too long. Keep it under 8 KiB."),
    "not_json": (415, "Send the body with Content-Type: application/json, or send no body."),
    "misdirected_request": (
        421,
        "This listener does not accept the Host. Use localhost, or add the name to FORECAST_OPERATOR_ALLOWED_HOSTS.",
    ),
    "idempotency_key_reused": (
        422,
        "Another request had this Idempotency-Key in the last 24 hours. Use a new one for each change.",
    ),
    "rate_limited": (429, "Too many requests. Wait as long as Retry-After says."),
    "headers_too_large": (431, "The headers are too many or too large. Send at most 100, 16 KiB together."),
    "internal": (500, "Internal error. Look up the request_id in the log."),
    "unavailable": (503, "The key store does not answer. Try again."),
}

_BEARER: Header = (b"www-authenticate", b"Bearer")


def refusal_response(
    code: str, detail: str | None = None, headers: tuple[Header, ...] = (), parameter: str | None = None
) -> Response:
    """Returns the answer for `code`, with `headers` and the headers that its status requires."""
    status, advice = OPERATOR_CODES[code]
    if status == 401:
        headers = (*headers, _BEARER)
    return error_response(code, status, detail or advice, parameter, headers)
