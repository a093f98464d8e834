"""Verdicts on keys become errors of the contract."""

import pytest
from service.connection.verdicts import refusal_of_key

from service.keys.verdict import INVALID, Rejected, Unknown
from service.request.errors import CODES


@pytest.mark.parametrize(
    ("verdict", "refusal"),
    [
        (INVALID, ("invalid_api_key", "invalid", None)),
        (Rejected("expired", "K1"), ("expired_api_key", "expired", "K1")),
        (Rejected("revoked", "K1"), ("revoked_api_key", "revoked", "K1")),
        (Unknown("away"), ("unavailable", "unknown", None)),
    ],
)
def test_a_verdict_has_a_documented_code(verdict: Rejected | Unknown, refusal: tuple[str, str, str | None]) -> None:
    """A store that cannot be asked is our fault (503), never the key's (401)."""
    assert refusal_of_key(verdict) == refusal
    assert CODES[refusal[0]][0] == (503 if isinstance(verdict, Unknown) else 401)
