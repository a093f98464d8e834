"""The key store's records and identity. What real servers do with them is in tests/contract."""

from pathlib import Path

import pytest

from service.keys.audit import AUDIT
from service.keys.errors import ForeignStoreError, KeyStoreError
from service.keys.record import IDENTITY, key_id_of, record_name
from service.keys.store_identity import SEEN
from tests.support.key_store import HeldKeyStore, parsed


def test_a_record_is_named_after_its_key_and_found_by_its_name() -> None:
    """With a hash tag, so that what belongs to a key can lie together in a cluster."""
    assert record_name("abc") == "k:{abc}"
    assert key_id_of("k:{abc}") == "abc"
    assert [key_id_of(name) for name in (IDENTITY, "k:abc", "x:{abc}", "")] == [None] * 4


async def test_the_secret_is_nowhere_in_the_store_and_nothing_expires(store: HeldKeyStore) -> None:
    presented, key = await store.issue("acme", "", None)
    parts = parsed(presented)
    await store.revoke(key.key_id)
    names = await store.client.keys("*")
    assert [await store.client.ttl(name) for name in names] == [-1] * 3
    assert set(names) == {record_name(key.key_id).encode(), IDENTITY.encode(), AUDIT.encode()}
    for name in names:
        content = repr(await (store.client.xrange(name) if name == AUDIT.encode() else store.client.get(name)))
        assert parts.secret not in content
        assert (key.digest in content) is (name == record_name(key.key_id).encode())
    assert parts.secret not in repr(key)


async def test_an_empty_store_is_a_beginning_until_keys_were_seen(store: HeldKeyStore, tmp_path: Path) -> None:
    store.check_identity((await store.find("0" * 12)).identity)
    await store.issue("acme", "", None)
    assert (tmp_path / SEEN).exists()
    await store.client.flushall()
    for later in (store, HeldKeyStore(tmp_path)):
        with pytest.raises(ForeignStoreError, match="restore its backup"):
            later.check_identity((await later.find("0" * 12)).identity)
        with pytest.raises(ForeignStoreError):
            await later.issue("acme", "", None)


async def test_keys_of_another_pepper_are_foreign(store: HeldKeyStore, tmp_path: Path) -> None:
    await store.issue("acme", "", None)
    other = HeldKeyStore(tmp_path, b"another pepper of ours")
    with pytest.raises(ForeignStoreError, match="another pepper"):
        other.check_identity((await store.find("0" * 12)).identity)


async def test_revoking_an_unknown_key_says_how_to_find_one(store: HeldKeyStore) -> None:
    with pytest.raises(KeyStoreError, match="keys list"):
        await store.revoke("0" * 12)
    assert await store.client.keys("*") == []


async def test_a_read_only_data_folder_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = HeldKeyStore(tmp_path / "file" / "data")
    await store.issue("acme", "", None)
    with pytest.raises(ForeignStoreError):
        store.check_identity(None)
    await store.client.aclose()
