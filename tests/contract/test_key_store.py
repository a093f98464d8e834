"""KeyStore over every server: what is issued is found, what is revoked stays revoked, and both survive."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from service.embedded.runtime import server_program
from service.keys import audit, changes, form
from service.keys import store as key_store
from service.keys.errors import KeyStoreError
from service.keys.reader import every_key
from service.keys.record import IDENTITY, ApiKey, KeyState, record_name
from service.keys.store import KeyStore
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.errors import StoreUnavailable
from tests.contract.conftest import Backend
from tests.support.key_store import PEPPER
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import eventually


@pytest.fixture
def keys(redis: RedisStore, tmp_path: Path) -> KeyStore:
    return KeyStore(redis, PEPPER, tmp_path)


async def _listed(keys: KeyStore) -> list[ApiKey]:
    return [key async for key in every_key(keys) if isinstance(key, ApiKey)]


async def test_an_issued_key_is_found_by_its_id(keys: KeyStore) -> None:
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(days=90)
    presented, key = await keys.issue("acme", "batch", expires)
    found = await keys.find(key.key_id)
    assert found.key == key
    assert (key.partner, key.label, key.expires_at, key.revoked_at) == ("acme", "batch", expires, None)
    parts = form.parse(presented)
    assert parts is not None
    assert (parts.key_id, form.digest(parts.secret, PEPPER)) == (key.key_id, key.digest)
    keys.check_identity(found.identity)


async def test_a_revoked_key_is_revoked_once(keys: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    (_, key), (_, other) = await keys.issue("acme", "", None), await keys.issue("acme", "", None)
    revoked = await keys.revoke(key.key_id)
    assert revoked.revoked_at is not None
    monkeypatch.setattr(key_store, "now", lambda: datetime.now(UTC) + timedelta(days=1))
    assert await keys.revoke(key.key_id) == revoked
    assert (await keys.find(key.key_id)).key == revoked
    assert (await keys.find(other.key_id)).key == other


async def test_revoking_from_two_places_at_once_loses_nothing(backend: Backend, keys: KeyStore, tmp_path: Path) -> None:
    """Both are told the same, and the record is whole."""
    _, key = await keys.issue("acme", "", None)
    second = backend.store(timeout=5)
    both = await asyncio.gather(
        *(store.revoke(key.key_id) for store in (keys, KeyStore(second, PEPPER, tmp_path)) for _ in range(5))
    )
    assert {msgspec.structs.replace(one, revoked_at=None, revision=0) for one in both} == {key}
    assert {one.revision for one in both} == {1}
    assert (await keys.find(key.key_id)).key in both
    await second.stop()


async def test_all_keys_are_listed_once(redis: RedisStore, keys: KeyStore) -> None:
    _, key = await keys.issue("acme", "", None)
    records = {
        record_name(f"{number:012}"): msgspec.json.encode(msgspec.structs.replace(key, key_id=f"{number:012}"))
        for number in range(2500)
    }
    await redis.call(lambda client: client.mset(records))
    await redis.call(lambda client: client.set("something else", "x"))
    listed = [one.key_id for one in await _listed(keys)]
    assert sorted(listed) == sorted([key.key_id, *(f"{number:012}" for number in range(2500))])


async def test_the_identity_is_set_once_however_many_begin(backend: Backend, tmp_path: Path) -> None:
    """Keys that are issued at the same time agree on it."""
    stores = [backend.store(timeout=5) for _ in range(4)]
    await asyncio.gather(*(KeyStore(store, PEPPER, tmp_path).issue("acme", "", None) for store in stores))
    keys = KeyStore(stores[0], PEPPER, tmp_path)
    keys.check_identity((await keys.find("0" * 12)).identity)
    assert len(await _listed(keys)) == 4
    for store in stores:
        await store.stop()


async def test_every_change_has_its_line_however_many_change_at_once(
    backend: Backend, keys: KeyStore, tmp_path: Path
) -> None:
    """Five extend, one revokes, from two places: as many lines as changes, each from where the last one ended."""
    _, key = await keys.issue("acme", "", None)
    second = backend.store(timeout=5)
    ends = [datetime.now(UTC).replace(microsecond=0) + timedelta(days=number) for number in range(1, 6)]
    stores = [keys, KeyStore(second, PEPPER, tmp_path)]
    work = [changes.extend(stores[number % 2], key.key_id, end) for number, end in enumerate(ends)]
    done = await asyncio.gather(*work, stores[1].revoke(key.key_id), return_exceptions=True)
    assert all(not isinstance(one, BaseException) or isinstance(one, KeyStoreError) for one in done)
    reported = [line.change async for line in audit.oldest_first(keys.redis) if line.change]
    assert [one.revision for one in reported] == list(range(len(reported)))
    assert all(earlier.after == later.before for earlier, later in pairwise(reported))
    record = (await keys.find(key.key_id)).key
    assert record is not None
    assert (record.status(), record.revision, KeyState.of(record)) == ("revoked", len(reported) - 1, reported[-1].after)
    await second.stop()


async def test_without_a_trail_nothing_is_changed(redis: RedisStore, keys: KeyStore) -> None:
    """Something else lies in its place."""
    _, key = await keys.issue("acme", "", None)
    await redis.call(lambda client: client.delete(audit.AUDIT))
    await redis.call(lambda client: client.set(audit.AUDIT, "x"))
    with pytest.raises(StoreUnavailable, match="WRONGTYPE"):
        await changes.rotate(keys, key.key_id, timedelta(0))
    assert await _listed(keys) == [key]


async def test_a_full_store_takes_nothing_but_revocations_and_rotations(real: Backend, tmp_path: Path) -> None:
    """What it refuses is not done in part; a leaked key can be stopped and replaced all the same, with its lines."""
    store = real.store(timeout=5)
    keys = KeyStore(store, PEPPER, tmp_path)
    _, key = await keys.issue("acme", "", None)
    real.command("CONFIG", "SET", "maxmemory", "1")
    try:
        for attempt in (
            keys.issue("acme", "", None),
            changes.extend(keys, key.key_id, datetime.now(UTC) + timedelta(days=1)),
        ):
            with pytest.raises(StoreUnavailable, match="full"):
                await attempt
        assert await _listed(keys) == [key]
        _, new, _ = await changes.rotate(keys, key.key_id, timedelta(days=1))
        assert (await keys.revoke(key.key_id)).status() == "revoked"
    finally:
        real.command("CONFIG", "SET", "maxmemory", "0")
    reported = [line.change.what async for line in audit.oldest_first(store) if line.change]
    assert reported == ["issued", "rotated", "issued", "revoked"]
    assert (await keys.find(new.key_id)).key == new
    assert (await keys.find(key.key_id)).key == await keys.revoke(key.key_id)
    await store.stop()


@pytest.mark.parametrize("change", ["issue", "revoke"])
async def test_what_was_issued_or_revoked_survives_a_killed_server(short_folder: Path, change: str) -> None:
    """It is on disk when the call returns: the server is killed in the same moment."""
    server = ValkeyProcess(short_folder / f"killed-{change}", appendonly=True, program=server_program()).start()
    store = RedisStore("key store", server.url, open_client(server.url, timeout=5, retries=1))
    keys = KeyStore(store, PEPPER, short_folder / f"killed-{change}-data")
    try:
        _, key = await keys.issue("acme", "", None)
        if change == "revoke":
            key = await keys.revoke(key.key_id)
        server.kill()
        server.start()
        await eventually(lambda: not store.line.is_open)
        assert (await keys.find(key.key_id)).key == key
        reported = [line.change.what async for line in audit.oldest_first(store) if line.change]
        assert reported == ["issued", "revoked"][: 1 + (change == "revoke")]
    finally:
        await store.stop()
        server.kill()


async def test_a_change_that_the_disk_does_not_confirm_is_not_called_done(short_folder: Path) -> None:
    """WAITAOF says so: here a server that never writes its file to the disk."""
    folder = short_folder / "unsynced"
    server = ValkeyProcess(folder, appendonly=True, program=server_program()).start()
    store = RedisStore("key store", server.url, open_client(server.url, timeout=5))
    keys = KeyStore(store, PEPPER, folder / "data")
    try:
        await store.call(lambda client: client.config_set("appendfsync", "no"))
        with pytest.raises(StoreUnavailable, match="disk"):
            await keys.issue("acme", "", None)
        assert await store.call(lambda client: client.exists(IDENTITY))
    finally:
        await store.stop()
        server.kill()
