"""Records of keys: their status, and what operators and later versions see of them."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from service.base.terms import Terms
from service.keys.record import NEVER_USED, ApiKey, KeyRecord, KeyView, StoreIdentity, decoded_key
from service.redis.errors import StoreUnavailable

NOW = datetime(2026, 11, 5, 12, tzinfo=UTC)
HIDDEN, SHOWN = (
    {"digest", "pepper", "revision", "unrotated"},
    {"status", "not_before", "suspended", "plan", "last_used"},
)
KEY = ApiKey(key_id="0B1zQmX4ktLw", partner="acme", digest="d" * 64, created_at=NOW)


@pytest.mark.parametrize(
    ("expires_at", "revoked_at", "status"),
    [
        (None, None, "active"),
        (NOW + timedelta(seconds=1), None, "active"),
        (NOW, None, "expired"),
        (NOW - timedelta(seconds=1), None, "expired"),
        (NOW + timedelta(seconds=1), NOW, "revoked"),
        (NOW - timedelta(seconds=1), NOW, "revoked"),
    ],
)
def test_the_status_follows_from_the_record(
    expires_at: datetime | None, revoked_at: datetime | None, status: str
) -> None:
    key = msgspec.structs.replace(KEY, expires_at=expires_at, revoked_at=revoked_at)
    assert key.status(NOW) == status


def test_a_record_with_members_of_a_later_version_is_read() -> None:
    """Two versions may share a store while one replaces the other."""
    data = msgspec.json.decode(msgspec.json.encode(KEY))
    assert msgspec.json.decode(msgspec.json.encode({**data, "areas": ["forecast"]}), type=ApiKey) == KEY


def test_a_record_of_the_first_version_is_read() -> None:
    first = b'{"key_id":"0B1zQmX4ktLw","partner":"acme","digest":"%s","created_at":"2026-11-05T12:00:00Z"}' % (
        b"d" * 64
    )
    key = msgspec.json.decode(first, type=ApiKey)
    assert (key.terms, key.revision, key.pepper) == (Terms(), 0, "")
    assert KeyView.of(key, StoreIdentity(pepper_fingerprint="ours", created_at=NOW)).status == "active"


@pytest.mark.parametrize(
    ("made_with", "adopted", "void"),
    [
        ("ours", None, False),
        ("ours", NOW + timedelta(days=1), False),
        ("other", None, True),
        ("", None, False),
        ("", NOW - timedelta(days=1), False),
        ("", NOW + timedelta(days=1), True),
    ],
)
def test_a_key_of_another_pepper_is_void(made_with: str, adopted: datetime | None, void: bool) -> None:
    """By its pepper; a record that has none was made before the store was adopted, or not."""
    control = StoreIdentity(pepper_fingerprint="ours", created_at=NOW, adopted_at=adopted)
    key = msgspec.structs.replace(KEY, pepper=made_with)
    assert KeyView.of(key, control).status == ("void" if void else "active")
    assert KeyView.of(msgspec.structs.replace(key, revoked_at=NOW), control).status == "revoked"


def test_a_record_of_another_key_is_no_answer() -> None:
    with pytest.raises(StoreUnavailable, match="another record"):
        decoded_key(msgspec.json.encode(KEY), "another")
    assert decoded_key(msgspec.json.encode(KEY), KEY.key_id) == KEY


def test_an_operator_never_sees_the_digest() -> None:
    view = msgspec.to_builtins(KeyView.of(KEY, last_used=NEVER_USED))
    assert set(view) == (set(KeyRecord.__struct_fields__) - HIDDEN) | SHOWN
    assert KEY.digest not in view.values()
