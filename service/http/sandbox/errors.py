"""Errors on request of a test key, so that a partner can test each of them before production."""

import re
import time
from datetime import UTC, datetime
from typing import Any

from service.base.terms import Quota, Rate, period_of
from service.http.examples import example_problem
from service.keys.record import ApiKey
from service.quota.gcra import refused
from service.quota.quota_state import QuotaState
from service.request.errors import CODES, problem
from service.request.limits import OF_KEY, Limit, Passed
from service.request.ratelimit import quota_exhausted_headers, rate_limited_headers
from service.request.request import Request
from service.request.respond import CachePolicy
from service.request.response import Header, Response

# Names the code of an error, on any path.
ERROR_HEADER = b"x-test-error"
# For clients that cannot send the header: ZIP codes that do not exist, 00 and a status.
ERROR_ZIPS = {
    "00400": "invalid_parameter",
    "00401": "invalid_api_key",
    "00403": "not_entitled",
    "00408": "request_timeout",
    "00429": "rate_limited",
    "00500": "internal",
    "00503": "unavailable",
}
_ZIP = re.compile(rb"(?:^|&)zip_code=(00[0-9]{3})(?:-[0-9]{4})?(?:&|$)")
# These precede the check of a key's limits, or end a request that its limits admit.
_WITH_LIMITS = (404, 412, 416, 500, 503)
_RATE, _QUOTA = Rate(10, 1, 10), Quota(1000, "day")  # of a key that has none
# After these, the rest of the request may be anything.
_LAST = ("request_timeout", "uri_too_long", "headers_too_large")


def error_on_purpose(scope: Any, request: Request, key: ApiKey, policy: CachePolicy, release: str) -> Response | None:
    """Returns the error that the request names, with the headers of the real error; None if it names none."""
    code = _asked(scope)
    if code is None:
        return None
    if code not in CODES:
        detail = (
            "X-Test-Error names no error. Send one of the codes that the documentation lists, such as rate_limited."
        )
        return problem("bad_request", detail)
    status, _ = CODES[code]
    if status not in _WITH_LIMITS and "parameter" not in code:
        request.allowance = None
    example = example_problem(code)
    headers = _headers(code, key, policy, release)
    return problem(code, example["detail"], example.get("parameter"), headers)


def _asked(scope: Any) -> str | None:
    for name, value in scope["headers"]:
        if name == ERROR_HEADER:
            text: str = value.decode("latin-1").strip()
            return text
    found = _ZIP.search(scope["query_string"])
    return ERROR_ZIPS.get(found[1].decode()) if found else None


def _headers(code: str, key: ApiKey, policy: CachePolicy, release: str) -> tuple[Header, ...]:
    rate, quota = key.terms.rate, key.terms.quota
    if code == "rate_limited":
        return rate_limited_headers([Passed(Limit(key.key_id, OF_KEY, rate or _RATE, None), refused(1))], 0)
    if code == "quota_exhausted":
        limit = Limit(key.key_id, OF_KEY, rate, quota or _QUOTA)
        return quota_exhausted_headers([Passed(limit, None, _used_up(quota or _QUOTA))], 0)
    if code == "no_matching_records":
        return policy.headers(release)
    if code == "range_not_satisfiable":
        return ((b"content-range", b"bytes */1000"), (b"accept-ranges", b"bytes"))
    return ((b"connection", b"close"),) if code in _LAST else ()


def _used_up(quota: Quota) -> QuotaState:
    now = datetime.fromtimestamp(time.time(), UTC)
    begins, ends = period_of(quota.period, now)
    resets_in, window = int((ends - now).total_seconds()), int((ends - begins).total_seconds())
    return QuotaState(quota.requests, 0, max(1, resets_in), window, exhausted=True, warn_from=quota.warn_from)
