"""Keys that are suspended, resumed, or not valid yet; beside an earlier version, after a loss, and in backups."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from service.keys import audit, changes
from service.keys.errors import KeyStoreError
from service.keys.record import KeyRecord, MoreOfKey, more_name, record_name
from tests.support.key_store import HeldKeyStore, dumped, found, imported
from tests.support.verifying import Scene, with_secret_of_another

REASON = "invoice 4711 is overdue"
WEEK = timedelta(days=7)


async def first_record(store: HeldKeyStore, key_id: str) -> KeyRecord:
    """What an earlier version knows of the key."""
    raw = await store.client.get(record_name(key_id))
    assert raw is not None
    return msgspec.json.decode(raw, type=KeyRecord)


def has_ended(record: KeyRecord) -> bool:
    return record.expires_at is not None and record.expires_at <= datetime.now(UTC)


async def test_a_suspended_key_is_rejected_only_with_its_secret_until_it_is_resumed(scene: Scene) -> None:
    await scene.verified()
    for pushed_name in (record_name(scene.key.key_id), more_name(scene.key.key_id)):
        await changes.suspend(scene.store, scene.key.key_id, REASON)
        scene.verifier.invalidate(pushed_name)
        assert await scene.outcome() == "suspended"
        assert await scene.outcome(with_secret_of_another(scene.key.key_id)) == "invalid"
        await changes.resume(scene.store, scene.key.key_id)
        scene.verifier.invalidate(pushed_name)
        assert await scene.outcome() == "accepted"


async def test_a_suspension_without_a_push_is_found_within_the_bound_of_a_revocation(scene: Scene) -> None:
    await scene.verified()
    await changes.suspend(scene.store, scene.key.key_id, REASON)
    assert await scene.outcome() == "accepted"
    scene.clock.now += 5
    assert await scene.outcome() == "suspended"


@pytest.mark.parametrize("ends", [None, datetime.now(UTC) + WEEK])
async def test_an_earlier_version_rejects_a_suspended_key_and_keeps_the_suspension(
    scene: Scene, ends: datetime | None
) -> None:
    key_id = scene.key.key_id
    await changes.extend(scene.store, key_id, ends)
    await changes.suspend(scene.store, key_id, REASON)
    record = await first_record(scene.store, key_id)
    assert has_ended(record)
    rewritten = msgspec.structs.replace(record, revision=record.revision + 1)
    await scene.store.client.set(record_name(key_id), msgspec.json.encode(rewritten))
    assert await scene.outcome() == "suspended"
    key = await changes.resume(scene.store, key_id)
    assert (key.expires_at, key.status(), key.record) == (ends, "active", await first_record(scene.store, key_id))


async def test_what_was_shortened_by_a_rotation_is_restored_too(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)
    _, _, before = await changes.rotate(store, key.key_id, WEEK)
    await changes.suspend(store, key.key_id, REASON)
    after = await changes.resume(store, key.key_id)
    assert (after.expires_at, after.unrotated) == (before.expires_at, before.unrotated)


async def test_a_suspension_keeps_its_first_reason_and_refuses_other_changes_of_the_end(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)
    first = await changes.suspend(store, key.key_id, REASON)
    again = await changes.suspend(store, key.key_id, "another")
    assert again == first
    for refused in (
        changes.extend(store, key.key_id, None),
        changes.rotate(store, key.key_id, WEEK),
    ):
        with pytest.raises(KeyStoreError, match="resume it first"):
            await refused
    assert (await store.revoke(key.key_id)).status() == "revoked"
    with pytest.raises(KeyStoreError, match="revoked, and stays so"):
        await changes.resume(store, key.key_id)


async def test_the_trail_has_suspension_reason_and_resumption(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)
    await changes.suspend(store, key.key_id, REASON)
    await changes.resume(store, key.key_id)
    await changes.resume(store, key.key_id)
    lines = [line.change async for line in audit.oldest_first(store.redis) if line.change]
    assert [line.what for line in lines] == ["issued", "suspended", "resumed"]
    assert [line.revision for line in lines] == [0, 1, 2]
    suspended = lines[1].after and lines[1].after.more.suspended
    assert suspended is not None
    assert lines[1].after is not None
    suspended = lines[1].after.more.suspended
    assert suspended is not None
    assert (suspended.reason, suspended.by) == (REASON, lines[1].by)


async def test_a_key_is_pending_until_it_begins(store: HeldKeyStore) -> None:
    begins = datetime.now(UTC) + WEEK
    presented, key = await store.issue("acme", "", None, more=MoreOfKey(not_before=begins))
    scene = Scene(store, presented, key)
    assert await scene.outcome() == "pending"
    scene.verifier._time_of_day = begins.timestamp
    assert await scene.outcome() == "accepted"


async def test_a_lost_suspension_holds_where_it_was_seen(scene: Scene) -> None:
    key_id = scene.key.key_id
    await scene.verified()
    before = await scene.store.client.get(record_name(key_id))
    await changes.suspend(scene.store, key_id, REASON)
    scene.clock.now += 5
    assert await scene.outcome() == "suspended"
    assert before is not None
    await scene.store.client.set(record_name(key_id), before)
    await scene.store.client.delete(more_name(key_id))
    for _ in range(2):
        scene.clock.now += 5
        assert await scene.outcome() == "suspended"
    assert scene.verifier.lost_writes.problem is not None


async def test_only_a_key_with_a_damaged_second_record_is_unknown(scene: Scene) -> None:
    await scene.store.client.set(more_name(scene.key.key_id), b"{")
    assert await scene.outcome() == "unknown"
    other, _ = await scene.store.issue("acme", "", None)
    assert await scene.outcome(other) == "accepted"


async def test_a_backup_restores_suspensions_and_repairs_a_damaged_record(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None, more=MoreOfKey(not_before=datetime.now(UTC) + WEEK))
    suspended = await changes.suspend(store, key.key_id, REASON)
    lines = await dumped(store)
    await store.client.flushall()
    await imported(store, lines)
    assert await found(store, key.key_id) == suspended
    await store.client.set(more_name(key.key_id), b"{")
    await imported(store, lines)
    assert await found(store, key.key_id) == suspended


async def test_an_import_suspends_what_was_suspended_later_and_not_what_was_resumed_later(store: HeldKeyStore) -> None:
    keys = [(await store.issue("acme", "", None))[1].key_id for _ in range(2)]
    await changes.suspend(store, keys[1], REASON)
    lines = await dumped(store)
    await changes.suspend(store, keys[0], REASON)
    await changes.resume(store, keys[1])
    for lost in (False, True):  # the records, but not the trail
        if lost:
            for key_id in keys:
                await store.client.delete(record_name(key_id), more_name(key_id))
        await imported(store, lines)
        assert [(await found(store, key_id)).status() for key_id in keys] == ["suspended", "active"], lost


async def test_a_change_by_an_earlier_version_loses_no_suspension_in_an_import(store: HeldKeyStore) -> None:
    """Its record is newer, and has no end."""
    _, key = await store.issue("acme", "", None)
    await changes.suspend(store, key.key_id, REASON)
    lines = await dumped(store)
    newer = msgspec.structs.replace(key.record, revision=7)
    await store.client.set(record_name(key.key_id), msgspec.json.encode(newer))
    await store.client.delete(more_name(key.key_id))
    await imported(store, lines)
    assert (await found(store, key.key_id)).status() == "suspended"
    assert has_ended(await first_record(store, key.key_id))
