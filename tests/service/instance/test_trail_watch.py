"""An instance follows the audit trail: it tells of changes, and notices a key store that lost some."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from service.instance.trail_watch import TrailWatch
from service.keys import audit, changes
from service.keys.audit import AUDIT, Change
from service.keys.record import ApiKey
from service.redis.errors import StoreRefused
from tests.support.key_store import HeldKeyStore

Happened = list[tuple[str, str]]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[HeldKeyStore]:
    made = HeldKeyStore(tmp_path)
    yield made
    await made.redis.stop()


@pytest.fixture
def happened() -> Happened:
    return []


@pytest.fixture
async def watch(store: HeldKeyStore, happened: Happened) -> TrailWatch:
    """It has looked once, after a key was issued."""
    await store.issue("acme", "", None)
    made = TrailWatch(store, lambda kind, text: happened.append((kind, text)))
    await made.look()
    return made


async def issued(store: HeldKeyStore) -> ApiKey:
    return (await store.issue("acme", "", None))[1]


async def is_revoked(store: HeldKeyStore, key: ApiKey) -> bool:
    return (await store.read(key.key_id))[1].revoked_at is not None


async def went_back(store: HeldKeyStore, to: dict[Any, Any]) -> None:
    """All that was changed since `to` was taken is lost, and something else was changed since."""
    for name, content in to.items():
        await store.client.restore(name, 0, content, replace=True)
    await issued(store)


async def taken(store: HeldKeyStore) -> dict[Any, Any]:
    return {name: await store.client.dump(name) for name in await store.client.keys("*")}


async def test_switches_of_releases_and_purges_are_not_reported_twice(
    store: HeldKeyStore, watch: TrailWatch, happened: Happened
) -> None:
    for what in (*audit.OF_RELEASES, audit.PURGED):
        await audit.note(store.redis, Change(what=what, by="me", release="r1"))
    await watch.look()
    assert (happened, watch.changed.is_set()) == ([], False)


async def test_changes_are_reported_once_and_in_order(
    store: HeldKeyStore, watch: TrailWatch, happened: Happened
) -> None:
    key = await issued(store)
    await store.revoke(key.key_id)
    await watch.look()
    await watch.look()
    assert [(kind, text.split(" by ")[0]) for kind, text in happened] == [
        ("key", f"key {key.key_id} was issued"),
        ("key", f"key {key.key_id} was revoked"),
    ]
    assert (watch.problem, watch.changed.is_set()) == (None, True)


async def test_a_trail_that_lost_lines_is_a_problem_until_an_operator_decides(
    store: HeldKeyStore, watch: TrailWatch, happened: Happened
) -> None:
    """By adopting the store, or by an import. It is reported once; later changes are reported as usual."""
    before = await taken(store)
    await issued(store)
    await watch.look()
    await went_back(store, before)
    await watch.look()
    assert watch.problem is not None
    assert "the key store went back" in watch.problem
    await watch.look()
    assert [kind for kind, _ in happened] == ["key", "store", "key"]
    await changes.adopt(store)
    await watch.look()
    assert watch.problem is None


async def test_what_was_seen_revoked_is_revoked_again(store: HeldKeyStore, watch: TrailWatch) -> None:
    key = await issued(store)
    before = await taken(store)
    await store.revoke(key.key_id)
    await watch.look()
    await went_back(store, before)
    assert not await is_revoked(store, key)
    await watch.look()
    assert await is_revoked(store, key)
    said = [line.change async for line in audit.newest_first(store.redis) if line.change]
    assert (said[0].what, said[0].key_id) == ("revoked", key.key_id)
    assert "seen revoked before the key store went back" in said[0].by
    other = await issued(store)
    watch.revoke_again([other.key_id, "0" * 12])  # as a worker reports it
    await watch.look()
    assert await is_revoked(store, other)


async def test_a_loss_that_was_accepted_at_once_is_no_problem(store: HeldKeyStore, watch: TrailWatch) -> None:
    """An import between two looks. But a revocation that was seen is made again, whatever the backup has."""
    key = await issued(store)
    before = await taken(store)
    await store.revoke(key.key_id)
    await watch.look()
    await went_back(store, before)
    await changes.adopt(store)
    await watch.look()
    assert watch.problem is None
    assert await is_revoked(store, key)


async def test_without_the_rights_the_key_is_named_once(
    store: HeldKeyStore, watch: TrailWatch, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = await issued(store)

    async def refused(*_: object, **__: object) -> None:
        raise StoreRefused("no permission", "other")

    monkeypatch.setattr(store, "revoke", refused)
    for _ in range(2):
        watch.revoke_again([key.key_id])
        await watch.look()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        f"key {key.key_id} is no longer revoked: revoke it again: no permission"
    ]


async def test_an_empty_trail_at_the_beginning_is_no_loss(store: HeldKeyStore, happened: Happened) -> None:
    watch = TrailWatch(store, lambda kind, text: happened.append((kind, text)))
    await watch.look()
    await issued(store)
    await watch.look()
    assert (watch.problem, len(happened)) == (None, 1)
    assert await store.client.exists(AUDIT)
