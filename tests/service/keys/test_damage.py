"""Whatever lies in the key store: a record, or an error that names it. What passes for a record can be used as one."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.keys import audit
from service.keys.changes import adopt
from service.keys.errors import DamagedRecordError, ForeignStoreError
from service.keys.record import (
    IDENTITY,
    ApiKey,
    KeyState,
    KeyView,
    StoreIdentity,
    decode_record,
    decoded_key,
    record_name,
)
from service.keys.restore import merged
from service.keys.store_identity import KnownStore
from service.quota.gcra import pace_of
from service.redis.errors import StoreUnavailable
from tests.support.key_store import HeldKeyStore
from tests.support.verifying import Scene

KEY_ID = "0B1zQmX4ktLw"
NOW = datetime(2026, 11, 5, 12, tzinfo=UTC)
KEY = ApiKey(key_id=KEY_ID, partner="acme", digest="d" * 64, created_at=NOW)

_moments = st.datetimes(timezones=st.none() | st.just(UTC)).map(lambda moment: moment.isoformat())
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | _moments
    | st.sampled_from(["d" * 64, KEY_ID]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
_rates = st.fixed_dictionaries({"requests": st.integers(), "seconds": st.integers(), "burst": st.integers()})


def records(sound: object, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[object]:
    """Replies where `sound` was asked for: any bytes, no bytes at all, and almost the record."""
    base = msgspec.to_builtins(sound)
    names = st.sampled_from([*base, *members])
    changed = st.dictionaries(names, st.one_of(_values, *members.values()), max_size=3)
    almost = changed.map(lambda change: msgspec.json.encode({**base, **change}))
    cut = st.integers(0, 300).map(lambda end: msgspec.json.encode(sound)[:end])
    replaced = st.tuples(almost, st.integers(0, 300), st.binary(max_size=3)).map(
        lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + len(parts[2]) :]
    )
    return st.one_of(st.binary(), almost, cut, replaced, st.integers(), st.lists(st.binary()), st.just(b"[" * 2_000))


@given(records(KEY, revoked_at=_moments, expires_at=_moments, terms=_rates.map(lambda rate: {"rate": rate})))
def test_any_reply_is_a_key_or_a_damaged_record(reply: object) -> None:
    try:
        key = decoded_key(reply, KEY_ID)
    except DamagedRecordError as error:
        damage = str(error)
    else:
        assert key is not None
        use(key)
        return
    assert record_name(KEY_ID) in damage


def use(key: ApiKey) -> None:
    """All that is done with a key."""
    view = KeyView.of(key, StoreIdentity(pepper_fingerprint="ours", created_at=NOW, adopted_at=NOW))
    assert view.status in ("active", "expired", "revoked", "void")
    assert sorted([key.created_at, NOW])
    assert key.digest.isascii()
    if key.terms.rate is not None:
        pace_of(key.terms.rate).cost(1)
        assert key.terms.rate.per_second > 0
    msgspec.json.encode(merged(KEY, key))
    msgspec.json.encode(KeyState.of(key))
    msgspec.json.encode(msgspec.structs.replace(key, revision=key.revision + 1))


@given(records(StoreIdentity(pepper_fingerprint="ours", created_at=NOW), accepted_at=_moments, adopted_at=_moments))
def test_any_reply_is_an_identity_or_a_damaged_record(tmp_path_factory: pytest.TempPathFactory, reply: object) -> None:
    memory = KnownStore(tmp_path_factory.getbasetemp() / "of nobody", "ours")
    try:
        control = decode_record(reply, StoreIdentity, IDENTITY)
    except DamagedRecordError as error:
        damage = str(error)
    else:
        assert control is not None
        assert memory.problem(control) is None or control.pepper_fingerprint != "ours"
        assert memory.decision(control) > control.since
        return
    assert IDENTITY in damage


@given(
    st.integers() | st.binary() | st.text() | st.none() | st.sampled_from([b"1-1", b"18446744073709551615-1"]),
    records(KEY),
)
def test_any_line_of_the_trail_can_be_shown(line_id: object, said: object) -> None:
    try:
        line = audit._line((line_id, {b"line": said}))
    except StoreUnavailable:
        return
    assert line.at is None or line.at.tzinfo is UTC
    assert line.origin


@pytest.mark.parametrize("damage", [b"\xff", b"", b'{"key_id":1}', None])
async def test_a_damaged_key_is_unknown_and_hurts_no_other(
    scene: Scene, damage: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Never invalid: it goes on for its minute, and then is unknown until its record is mended. Said once."""
    await scene.verified()
    other, _ = await scene.store.issue("other", "", None)
    name = record_name(scene.key.key_id)
    sound = await scene.store.client.get(name)
    assert isinstance(sound, bytes)
    await scene.store.client.delete(name)
    await (scene.store.client.rpush(name, "x") if damage is None else scene.store.client.set(name, damage))
    scene.verifier.invalidate(name)
    for seconds in (0, 10, 40):
        scene.clock.now += seconds
        assert await scene.outcome() == "accepted"
    scene.clock.now += 20
    assert await scene.outcome() == "unknown"
    assert await scene.outcome(other) == "accepted"
    assert scene.verifier.store_watch.problem is None
    assert [scene.key.key_id in record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        True
    ]
    await scene.store.client.delete(name)
    await scene.store.client.set(name, sound)
    assert await scene.outcome() == "accepted"


async def test_a_damaged_identity_is_an_alarm_and_can_be_replaced(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)
    for damage in (b"\xff", b"", None):
        await store.client.delete(IDENTITY)
        await (store.client.rpush(IDENTITY, "x") if damage is None else store.client.set(IDENTITY, damage))
        with pytest.raises(ForeignStoreError, match=f"{IDENTITY}.*adopt-store"):
            await store.issue("acme", "", None)
        assert IDENTITY in (await store.loss() or "")
        assert (await store.revoke(key.key_id)).status() == "revoked"
        await adopt(store)
        assert await store.loss() is None
