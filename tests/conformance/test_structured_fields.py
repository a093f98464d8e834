"""The header fields that claim to be structured (RFC 9651) are, says a parser that is not ours."""

from typing import Any

import pytest

from service.base.terms import Quota, Rate
from service.quota.gcra import allowed, refused
from service.quota.quota_state import QuotaState
from service.request.ratelimit import limit_headers, quota_exhausted_headers, rate_limited_headers
from tests.service.request.test_ratelimit import passed_with
from tests.support.served import Served

http_sf = pytest.importorskip("http_sf", reason="http-sf is not installed (pip install '.[conformance]')")

RATE, QUOTA = Rate(500, 1, 100), Quota(5_000_000, "month")
STANDING = QuotaState(0, 4_999_999, 86_400, 30 * 86_400, exhausted=False, warn_from=4_000_000)
USED_UP = QuotaState(5_000_000, 0, 70_863, 86_400, exhausted=True, warn_from=4_000_000)
ANSWERS = (
    limit_headers(passed_with(RATE, allowed(RATE, 99), QUOTA, STANDING)),
    rate_limited_headers(passed_with(RATE, refused(0.2), QUOTA, STANDING), 0),
    quota_exhausted_headers(passed_with(RATE, None, QUOTA, USED_UP), 0),
)


def parsed(value: bytes) -> Any:
    return http_sf.parse(value, tltype="list")


@pytest.mark.parametrize("headers", ANSWERS)
def test_limits_are_lists_of_strings_with_whole_numbers(headers: tuple[tuple[bytes, bytes], ...]) -> None:
    """Each tells of policies that it names, and what is left is never more than the policy has."""
    fields = dict(headers)
    policies = dict(parsed(fields[b"ratelimit-policy"]))
    for name, left in parsed(fields[b"ratelimit"]):
        assert type(name) is str
        assert {type(number) for number in (*left.values(), *policies[name].values())} == {int}
        assert left["r"] <= policies[name]["q"]
        assert left["t"] <= policies[name]["w"]


def test_the_cache_status_names_one_cache(worker: Served) -> None:
    """RFC 9211: a Token with parameters, of which `hit` and `fwd` exclude each other."""
    for _ in range(3):
        value = worker.forecast(zip_code="36436").header("cache-status") or ""
        ((name, parameters),) = parsed(value.encode())
        assert str(name) == "forecast"
        assert ("hit" in parameters) != ("fwd" in parameters)
        assert str(parameters["detail"]) in ("near", "shared", "warehouse")
