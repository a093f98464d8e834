"""A change of a key is reported done when the disk and as many replicas as asked for have it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from service.keys import audit
from service.keys.audit import confirmed
from service.keys.record import record_name
from service.keys.store import KeyStore
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.errors import StoreUnavailable
from tests.support.key_store import PEPPER
from tests.support.sentinels import PortServer, wait_until


class Pair:
    """A primary with one replica; both write their file on every change."""

    def __init__(self, folder: Path) -> None:
        always = ("--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0")
        self.primary = PortServer(folder / "primary", *always).start()
        self.replica = PortServer(
            folder / "replica", *always, "--replicaof", "127.0.0.1", str(self.primary.port)
        ).start()
        self.wait()

    def wait(self) -> None:
        wait_until(lambda: self.primary.command("WAIT", 1, 100) == 1, "a replica that follows")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(tmp_path_factory.mktemp("pair"))
    yield pair
    pair.primary.kill()
    pair.replica.kill()


@pytest.fixture
def pair(both: Pair) -> Iterator[Pair]:
    both.primary.command("FLUSHALL")
    yield both
    both.replica.go_on()
    both.wait()


@pytest.fixture
async def redis(pair: Pair) -> AsyncIterator[RedisStore]:
    store = RedisStore("key store", pair.primary.url, open_client(pair.primary.url, timeout=10, retries=1))
    yield store
    await store.stop()


def at_the_replica(pair: Pair, key_id: str) -> object:
    return pair.replica.command("GET", record_name(key_id))


async def test_what_is_done_is_at_the_replica(pair: Pair, redis: RedisStore, tmp_path: Path) -> None:
    """At the moment that the call returns: issued, revoked, and revoked again."""
    keys = KeyStore(redis, PEPPER, tmp_path, replicas=1)
    _, key = await keys.issue("acme", "", None)
    assert at_the_replica(pair, key.key_id)
    await keys.revoke(key.key_id)
    assert b'"revoked_at"' in at_the_replica(pair, key.key_id)  # type: ignore[operator]  # the record
    assert await keys.revoke(key.key_id) == (await keys.find(key.key_id)).key


async def test_a_revocation_that_no_replica_has_is_not_called_done(
    pair: Pair, redis: RedisStore, tmp_path: Path
) -> None:
    """The message says what is known. To revoke again asks again, and is done once the replica has it."""
    keys = KeyStore(redis, PEPPER, tmp_path, replicas=1)
    _, key = await keys.issue("acme", "", None)
    pair.replica.stall()
    known = "the change is made, but 0 of the 1 replicas that FORECAST_KEYS_REPLICAS asks for confirmed it"
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=known):
            await keys.revoke(key.key_id)
    found = (await keys.find(key.key_id)).key
    assert found is not None
    assert found.revoked_at is not None
    pair.replica.go_on()
    pair.wait()
    assert (await keys.revoke(key.key_id)).revoked_at == found.revoked_at
    assert [line.change.what async for line in audit.oldest_first(redis) if line.change] == ["issued", "revoked"]


async def test_no_replica_is_waited_for_unless_asked(pair: Pair, redis: RedisStore, tmp_path: Path) -> None:
    keys = KeyStore(redis, PEPPER, tmp_path)
    pair.replica.stall()
    _, key = await keys.issue("acme", "", None)
    assert (await keys.revoke(key.key_id)).revoked_at is not None


async def test_a_server_that_may_not_be_asked_confirms_nothing(pair: Pair, redis: RedisStore, tmp_path: Path) -> None:
    pair.primary.command("ACL", "SETUSER", "default", "-wait")
    try:
        with pytest.raises(StoreUnavailable, match=r"grant it \+wait"):
            await KeyStore(redis, PEPPER, tmp_path, replicas=1).issue("acme", "", None)
    finally:
        pair.primary.command("ACL", "SETUSER", "default", "+wait")


async def test_a_change_whose_reply_was_lost_is_confirmed_again(
    pair: Pair, redis: RedisStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its second try travels on another connection, which wrote nothing: to wait there would wait for nothing."""
    keys = KeyStore(redis, PEPPER, tmp_path, replicas=1)
    await keys.issue("acme", "", None)
    calls: list[object] = []

    async def twice(*words: object) -> object:
        calls.append(words)
        if len(calls) == 1:
            await confirmed(*words)  # type: ignore[arg-type]
            pair.replica.stall()
        return await confirmed(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(audit, "confirmed", twice)
    with pytest.raises(StoreUnavailable, match="0 of the 1 replicas"):
        await keys.issue("acme", "", None)
