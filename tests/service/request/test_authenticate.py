"""Which key a request was sent with, and whether that is good."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from service.base.telemetry import KEY_CHECKS
from service.keys.verdict import INVALID, KeyVerdict, Rejected, Unknown
from service.request.request import Request
from service.request.response import Response
from tests.support.pipeline import KEY, OPEN, TEST_KEY, Steps, refused, request_for

SINCE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


async def authenticated(steps: Steps, request: Request) -> Response | None:
    outcome = steps.authenticator.authenticate(steps.begin(request))
    return outcome if outcome is None or isinstance(outcome, Response) else await outcome


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("verdict", "status", "code", "counted", "key_id"),
    [
        (INVALID, 401, "invalid_api_key", "invalid", None),
        (Rejected("expired", "K1", SINCE), 401, "expired_api_key", "expired", "K1"),
        (Rejected("revoked", "K1", SINCE), 401, "revoked_api_key", "revoked", "K1"),
        (Rejected("pending", "K1", SINCE), 401, "pending_api_key", "pending", "K1"),
        (Rejected("suspended", "K1", SINCE), 403, "suspended_api_key", "suspended", "K1"),
        (Unknown("away"), 503, "unavailable", "unknown", None),
    ],
)
async def test_a_verdict_has_a_documented_code(
    steps: Steps, waits: bool, verdict: KeyVerdict, status: int, code: str, counted: str, key_id: str | None
) -> None:
    """A store that cannot be asked is our fault (503), never the key's (401). Nothing of it is kept here."""
    steps.keys.verdict, steps.keys.waits = verdict, waits
    for _ in range(2):
        request = request_for(key="another")
        refusal = refused(await authenticated(steps, request))
        assert (refusal.status, refusal.outcome, request.key, request.key_id) == (status, code, None, key_id)
    assert steps.telemetry.sum(KEY_CHECKS, outcome=counted) == 2
    assert steps.keys.judged == 2


@pytest.mark.parametrize(
    ("reason", "detail"),
    [
        ("expired", "expired on 2026-01-02 at 03:04 UTC"),
        ("suspended", "was suspended on 2026-01-02 at 03:04 UTC"),
        ("pending", "is valid from 2026-01-02 at 03:04 UTC"),
    ],
)
async def test_an_inactive_key_gets_the_time(steps: Steps, reason: Any, detail: str) -> None:
    steps.keys.verdict = Rejected(reason, "K1", SINCE)
    refusal = refused(await authenticated(steps, request_for(key="another")))
    assert detail in msgspec.json.decode(refusal.whole(b"r1")[1])["detail"]


@pytest.mark.parametrize("waits", [False, True])
async def test_a_good_key_is_the_request_s(steps: Steps, waits: bool) -> None:
    steps.keys.waits = waits
    for _ in range(3):
        request = request_for()
        assert await authenticated(steps, request) is None
        assert (request.key, request.key_id, request.is_test) == (steps.keys.keys[KEY], "a", False)
    assert steps.telemetry.sum(KEY_CHECKS, outcome="accepted") == 3
    assert steps.keys.judged == 1, "the header's value was verified a moment ago"


async def test_a_key_that_may_have_ended_is_judged_again(steps: Steps) -> None:
    """A verified key is good for seconds; who revokes it is heard at once."""
    steps.keys.good_for = 0.0
    assert await authenticated(steps, request_for()) is None
    del steps.keys.keys[KEY]
    refusal = refused(await authenticated(steps, request_for()))
    assert refusal.outcome == "invalid_api_key"


async def test_a_key_is_trimmed_and_an_empty_one_is_missing(steps: Steps) -> None:
    assert await authenticated(steps, request_for(key=f" \t{KEY} ")) is None
    for key in (None, "", "  "):
        refusal = refused(await authenticated(steps, request_for(key=key)))
        assert refusal.outcome == "missing_api_key"
        assert (b"www-authenticate", b"ApiKey") in refusal.headers


async def test_a_fault_of_syntax_comes_before_the_key(steps: Steps) -> None:
    assert await authenticated(steps, request_for()) is None
    refusal = refused(await authenticated(steps, request_for(headers=((b"x-api-key", KEY.encode()),))))
    assert (refusal.status, refusal.outcome) == (400, "bad_request")


async def test_a_public_path_needs_no_key(steps: Steps) -> None:
    for key in (None, "another"):
        assert await authenticated(steps, request_for(OPEN, key=key)) is None


async def test_a_test_key_s_request_has_no_live_target(steps: Steps) -> None:
    assert await steps.pipeline.run(steps.begin(request_for()))  # type: ignore[misc]
    for _ in range(2):
        request = request_for(key=TEST_KEY)
        assert await authenticated(steps, request) is None
        assert request.is_test
        assert request.target is None
    assert steps.keys.judged == 3
