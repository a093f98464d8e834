"""Importing a backup: newer records stay, revocations are never undone, an emptied store is ours again."""

import time
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from service.base.terms import Terms
from service.keys import audit, changes, restore
from service.keys.audit import AUDIT, TrailLine, confirmed
from service.keys.changes import adopt
from service.keys.edits import RawKey
from service.keys.errors import ForeignStoreError
from service.keys.record import IDENTITY, record_name
from service.redis.errors import StoreUnavailable
from tests.support.key_store import HeldKeyStore, dumped, found, imported
from tests.support.waiting import eventually

TERMS = Terms(areas=("forecast",))
WEEK = timedelta(days=7)


async def content(store: HeldKeyStore) -> dict[str, object]:
    """Everything in the store but the lists of partners' keys (test_plans.py)."""
    names = [name.decode() for name in await store.client.keys("*")]  # type: ignore[union-attr]
    texts: dict[str, object] = {
        name: await store.client.get(name) for name in names if name != AUDIT and not name.startswith("u:")
    }
    return texts | {AUDIT: await store.client.execute_command("XRANGE", AUDIT, "-", "+")}  # type: ignore[no-untyped-call]


def records(content: dict[str, object]) -> dict[str, object]:
    return {name: data for name, data in content.items() if name not in (AUDIT, IDENTITY)}


async def trail(store: HeldKeyStore) -> list[TrailLine]:
    return [line async for line in audit.oldest_first(store.redis)]


async def test_an_emptied_store_is_as_it_was_and_a_second_import_changes_nothing(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "batch", None, TERMS)
    await changes.rotate(store, key.key_id, WEEK)
    before, lines = await content(store), await dumped(store)
    old = await trail(store)
    await store.client.flushall()
    done = await imported(store, lines)
    after = await content(store)
    assert (done.added, done.lines, done.made_ours) == (2, 3, True)
    assert records(after) == records(before)
    new = await trail(store)
    assert new[:3] == old
    assert [line.change.what for line in new[3:] if line.change] == ["imported"] * 3
    again = await imported(store, lines)
    assert (again.added, again.updated, again.kept, again.lines, again.made_ours) == (0, 0, 2, 0, False)
    assert await content(store) == after
    await store.issue("acme", "", None)


async def test_an_interrupted_import_is_finished_by_the_next(
    store: HeldKeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it ended; and until then the store is not ours, so that nobody is told 401."""
    monkeypatch.setattr(restore, "_BATCH", 1)
    for _ in range(3):
        await store.issue("acme", "", None)
    lines = await dumped(store)
    whole = await content(store)
    for allowed in range(4):
        await store.client.flushall()
        left = allowed

        async def failing(*words: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise ConnectionError("gone")
            return await confirmed(*words)  # type: ignore[arg-type]

        monkeypatch.setattr(audit, "confirmed", failing)
        with pytest.raises(StoreUnavailable):
            await imported(store, lines)
        assert await store.client.get(IDENTITY) is None
        monkeypatch.setattr(audit, "confirmed", confirmed)
        store.redis.succeeded()
        await imported(store, lines)
        assert records(await content(store)) == records(whole)


async def test_the_newer_record_of_store_and_file_stays(store: HeldKeyStore) -> None:
    """The file is newer if the server was restored from an even older copy of its own files."""
    _, key = await store.issue("acme", "", None)
    older = await dumped(store)
    old = await store.client.get(record_name(key.key_id))
    assert old is not None
    _, changed = await changes.change_terms(store, key.key_id, lambda _: TERMS)
    done = await imported(store, older)
    assert (done.kept, done.updated) == (1, 0)
    assert await found(store, key.key_id) == changed
    newer = await dumped(store)
    await store.client.set(record_name(key.key_id), old)
    done = await imported(store, newer)
    assert (done.kept, done.updated) == (0, 1)
    assert await found(store, key.key_id) == changed


async def test_a_revocation_after_the_backup_is_not_undone(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)
    lines = await dumped(store)
    revoked = await store.revoke(key.key_id)
    await store.client.delete(record_name(key.key_id), IDENTITY)
    done = await imported(store, lines)
    assert (done.added, done.revoked) == (1, 1)
    assert await found(store, key.key_id) == revoked


async def test_a_revocation_that_only_the_file_knows_counts(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)
    record = await store.client.get(record_name(key.key_id))
    assert record is not None
    await store.revoke(key.key_id)
    lines = await dumped(store)
    await store.client.set(record_name(key.key_id), record)
    await store.client.delete(AUDIT)
    assert (await imported(store, lines)).revoked == 1
    assert (await found(store, key.key_id)).status() == "revoked"
    await store.client.delete(record_name(key.key_id))
    without = await dumped(store)
    await store.client.set(record_name(key.key_id), record)
    await store.client.delete(AUDIT)
    for dry_run in (True, False):
        assert (await imported(store, without, dry_run=dry_run)).revoked == 1
    assert (await found(store, key.key_id)).status() == "revoked"


async def test_a_damaged_record_is_repaired(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)
    lines = await dumped(store)
    await store.client.set(record_name(key.key_id), "{")
    assert (await imported(store, lines)).updated == 1
    assert await found(store, key.key_id) == key


async def test_a_rehearsal_says_the_same_and_does_nothing(store: HeldKeyStore) -> None:
    _, first = await store.issue("acme", "", None)
    _, second = await store.issue("acme", "", None)
    await store.revoke(second.key_id)
    lines = await dumped(store)
    await store.client.flushall()
    for step in range(2):
        if step:
            _, third = await store.issue("acme", "", None)
            await store.client.delete(record_name(first.key_id))
        before = await content(store)
        rehearsed = await imported(store, lines, dry_run=True)
        assert await content(store) == before
        assert await imported(store, lines) == rehearsed
    assert (await found(store, third.key_id)) == third


async def test_lines_that_come_too_late_keep_their_time(store: HeldKeyStore) -> None:
    await store.issue("acme", "", None)
    lines, (old,) = await dumped(store), await trail(store)
    await store.client.flushall()
    # lines are named by the millisecond, and an emptied store would give the same name again
    await eventually(lambda: int(time.time() * 1000) > int(old.id.partition("-")[0]))
    await adopt(store)
    await store.issue("other", "", None)
    for count in (1, 0):
        assert (await imported(store, lines)).lines == count
    restored = [line for line in await trail(store) if line.change and line.change.restored]
    assert [(line.origin, line.at) for line in restored] == [(old.id, old.at)]
    again = await dumped(store)
    await store.client.flushall()
    await imported(store, again)
    assert (await imported(store, lines)).lines == 0, "known by where it came from"


async def test_a_store_of_another_pepper_is_refused(store: HeldKeyStore, tmp_path: Path) -> None:
    await store.issue("acme", "", None)
    lines = await dumped(store)
    await store.client.flushall()
    other = HeldKeyStore(tmp_path / "other", b"another pepper of ours")
    await other.issue("acme", "", None)
    control = await other.client.get(IDENTITY)
    assert control is not None
    await store.client.set(IDENTITY, control)
    with pytest.raises(ForeignStoreError):
        await imported(store, lines)
    assert await store.client.keys("*") == [IDENTITY.encode()]
    await other.client.aclose()


async def test_damaged_lines_are_passed_over_and_counted(store: HeldKeyStore) -> None:
    await store.issue("acme", "", None)
    await store.client.xadd(AUDIT, {"line": "{"})
    lines = await dumped(store)
    assert (await imported(store, lines)).damaged_lines == 1
    await store.client.flushall()
    done = await imported(store, lines)
    assert (done.lines, done.damaged_lines) == (1, 1)


async def test_a_key_that_is_changed_meanwhile_is_looked_at_again(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)
    lines = await dumped(store)
    await store.client.delete(record_name(key.key_id))
    revoked = msgspec.structs.replace(key, revoked_at=key.created_at, revision=1)
    read = store.raw

    async def raw(key_ids: list[str]) -> list[RawKey]:
        records = await read(key_ids)
        await store.client.set(record_name(key.key_id), msgspec.json.encode(revoked), nx=True)
        return records

    store.raw = raw  # type: ignore[method-assign]
    assert (await imported(store, lines)).kept == 1
    assert await found(store, key.key_id) == revoked
