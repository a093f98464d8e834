"""Which store is ours: another one is believed only if an operator decided so later, and then by everybody."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from service.keys.changes import adopt
from service.keys.errors import ForeignStoreError
from service.keys.record import IDENTITY, StoreIdentity
from service.keys.store_identity import SEEN
from tests.support.key_store import HeldKeyStore, dumped, imported


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[HeldKeyStore]:
    """It has seen a store with a key in it."""
    made = HeldKeyStore(tmp_path / "worker")
    await made.issue("acme", "", None)
    yield made
    await made.client.aclose()


def beside(worker: HeldKeyStore, data: Path) -> HeldKeyStore:
    """The same Redis, seen from another data folder."""
    other = HeldKeyStore(data)
    other.redis = worker.redis
    return other


async def is_ours(store: HeldKeyStore) -> bool:
    try:
        store.check_identity(await store.identity())
    except ForeignStoreError:
        return False
    return True


async def test_an_emptied_and_recreated_store_is_not_ours(worker: HeldKeyStore, tmp_path: Path) -> None:
    await worker.client.flushall()
    newcomer = beside(worker, tmp_path / "newcomer")
    await newcomer.issue("newbie", "", None)
    assert await is_ours(newcomer)
    for knowing in (worker, beside(worker, tmp_path / "worker")):
        assert not await is_ours(knowing)
        with pytest.raises(ForeignStoreError, match="emptied and recreated"):
            await knowing.issue("acme", "", None)
        with pytest.raises(ForeignStoreError):
            await dumped(knowing)


async def test_a_second_data_folder_joins_the_store_that_there_is(worker: HeldKeyStore, tmp_path: Path) -> None:
    second = beside(worker, tmp_path / "second")
    await second.issue("acme", "", None)
    assert await is_ours(worker)
    await worker.client.flushall()
    assert not await is_ours(beside(worker, tmp_path / "second"))


@pytest.mark.parametrize("who", ["worker", "newcomer", "third"])
@pytest.mark.parametrize("how", ["import", "adopt"])
async def test_an_import_or_an_adoption_heals_every_worker(
    worker: HeldKeyStore, tmp_path: Path, who: str, how: str
) -> None:
    """From whatever data folder, and whatever each had seen; what was begun in between goes on."""
    lines = await dumped(worker)
    await worker.client.flushall()
    newcomer = beside(worker, tmp_path / "newcomer")
    _, key = await newcomer.issue("newbie", "", None)
    actor = {"worker": worker, "newcomer": newcomer, "third": beside(worker, tmp_path / "third")}[who]
    await (imported(actor, lines) if how == "import" else adopt(actor))
    for store in (worker, newcomer, beside(worker, tmp_path / "worker")):
        assert await is_ours(store)
    assert (await worker.find(key.key_id)).key == key


@pytest.mark.parametrize("how", ["import", "adopt"])
async def test_an_emptied_store_is_healed_for_everybody(worker: HeldKeyStore, tmp_path: Path, how: str) -> None:
    """The command ran where nothing was known of the store; the file is older than what the workers know."""
    lines = await dumped(worker)
    await adopt(worker)
    await worker.client.flushall()
    admin = beside(worker, tmp_path / "admin")
    await (imported(admin, lines) if how == "import" else adopt(admin))
    assert await is_ours(worker)


async def test_an_older_copy_of_the_store_is_not_believed(worker: HeldKeyStore) -> None:
    old = await worker.client.get(IDENTITY)
    assert isinstance(old, bytes)
    await adopt(worker)
    await worker.client.set(IDENTITY, old)
    assert not await is_ours(worker)
    await adopt(worker)
    assert await is_ours(worker)


async def test_a_decision_counts_whatever_the_clocks_say(worker: HeldKeyStore) -> None:
    control = await worker.identity()
    assert control is not None
    ahead = msgspec.structs.replace(control, accepted_at=control.created_at.replace(year=9000))
    await worker.client.set(IDENTITY, msgspec.json.encode(ahead))
    assert await is_ours(worker)
    await adopt(worker)
    assert await is_ours(worker)
    assert (await worker.identity() or control).since > ahead.since


@pytest.mark.parametrize("noted", [b"", b"\xff", b"soon", b"2026-10-05T00:00:00"])
async def test_a_data_folder_that_does_not_say_which_store_it_saw_believes_the_first(
    worker: HeldKeyStore, tmp_path: Path, noted: bytes
) -> None:
    (tmp_path / "worker" / SEEN).write_bytes(noted)
    later = beside(worker, tmp_path / "worker")
    with pytest.raises(ForeignStoreError, match="has lost its identity"):
        later.check_identity(None)
    control = await worker.identity()
    assert control is not None
    later.check_identity(control)
    again = beside(worker, tmp_path / "worker")
    with pytest.raises(ForeignStoreError):
        again.check_identity(
            StoreIdentity(pepper_fingerprint=worker.fingerprint, created_at=control.created_at.replace(year=9))
        )
