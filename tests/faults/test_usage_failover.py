"""Usage while a replica, which lacks the newest writes, takes the place of its primary."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis as BlockingRedis

from tests.faults.test_usage import Counts, Worker, stored
from tests.support.sentinels import free_port
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import until


class ReplicatedStore:
    """A primary with a replica. `url` leads to whichever is the primary, as an address that moves does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = 0
        self._link = folder / "primary"
        self.url = f"unix://{self._link}"
        self.primary = self._start()
        self.replica = self._follow()
        self._lead()

    def part(self) -> None:
        """From now on, the replica gets nothing more."""
        _ask(self.replica, "REPLICAOF", "NO", "ONE")

    def promote(self) -> None:
        """Ends the primary and puts the replica in its place; another replica follows that one."""
        self.primary.kill()
        self.primary = self.replica
        self._lead()
        self.replica = self._follow()

    def stop(self) -> None:
        self.primary.kill()
        self.replica.kill()

    def _start(self, *options: str) -> ValkeyProcess:
        self._started += 1
        folder = self._folder / str(self._started)
        return ValkeyProcess(folder, options=("--port", str(free_port()), *options)).start()

    def _follow(self) -> ValkeyProcess:
        port = _ask(self.primary, "CONFIG", "GET", "port")["port"]
        replica = self._start("--replicaof", "127.0.0.1", port)
        until(lambda: _ask(replica, "INFO", "replication")["master_link_status"] == "up")
        return replica

    def _lead(self) -> None:
        new = self._link.with_suffix(".new")
        new.symlink_to(self.primary.socket)
        new.replace(self._link)


def _ask(server: ValkeyProcess, *words: str) -> dict[str, str]:
    with BlockingRedis.from_url(server.url, decode_responses=True) as client:
        found: dict[str, str] = client.execute_command(*words)
        return found


@pytest.fixture
def replicated(short: Path) -> Iterator[ReplicatedStore]:
    made = ReplicatedStore(short)
    yield made
    made.stop()


@pytest.mark.parametrize("failovers", [1, pytest.param(10, marks=pytest.mark.soak)])
async def test_what_a_promoted_replica_lacks_is_stored_again(
    replicated: ReplicatedStore, tmp_path: Path, failovers: int
) -> None:
    """Counting goes on meanwhile; nothing is lost, and nothing counts twice."""
    counted: Counts = Counter()
    worker = Worker(replicated.url, tmp_path)
    await worker.start()
    for _ in range(failovers):
        await worker.count_for(1, counted)
        replicated.part()
        await worker.count_for(1.2, counted)
        old, new = await stored(replicated.primary.url), await stored(replicated.replica.url)
        assert new.total() < old.total()  # so something that was confirmed will be missing
        await asyncio.gather(worker.count_for(1, counted), asyncio.to_thread(replicated.promote))
    await worker.stop()
    assert await stored(replicated.primary.url) == counted
