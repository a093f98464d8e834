"""Records of keys: their status, and what operators and later versions see of them."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from service.keys.record import ApiKey, KeyView

NOW = datetime(2026, 11, 5, 12, tzinfo=UTC)
KEY = ApiKey(key_id="0B1zQmX4ktLw", partner="acme", digest="d" * 64, created_at=NOW)


@pytest.mark.parametrize(
    ("expires", "revoked", "status"),
    [
        (None, None, "active"),
        (timedelta(seconds=1), None, "active"),
        (timedelta(0), None, "expired"),
        (timedelta(seconds=-1), None, "expired"),
        (timedelta(seconds=1), timedelta(0), "revoked"),
        (timedelta(seconds=-1), timedelta(0), "revoked"),
    ],
)
def test_the_status_follows_from_the_record(expires: timedelta | None, revoked: timedelta | None, status: str) -> None:
    """A key expires at its instant; a revoked one stays revoked."""
    key = msgspec.structs.replace(
        KEY,
        expires_at=None if expires is None else NOW + expires,
        revoked_at=None if revoked is None else NOW + revoked,
    )
    assert key.status(NOW) == status


def test_a_record_with_members_of_a_later_version_is_read() -> None:
    """Two versions may share a store while one replaces the other."""
    data = msgspec.json.decode(msgspec.json.encode(KEY))
    assert msgspec.json.decode(msgspec.json.encode({**data, "areas": ["forecast"]}), type=ApiKey) == KEY


def test_an_operator_never_sees_the_digest() -> None:
    """Everything else of the record is shown."""
    view = msgspec.to_builtins(KeyView.of(KEY))
    assert set(view) == (set(KEY.__struct_fields__) - {"digest"}) | {"status"}
    assert KEY.digest not in view.values()
