"""Usage while its server is killed, stalled or gone, and while workers are killed."""

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from redis import Redis as BlockingRedis

from service.http.own_usage.usage import BURST_RECORDS, RECORDS_A_SECOND
from service.quota.batch import OUTCOMES
from service.quota.flusher import UsageFlusher
from service.quota.quotas import QuotaGuard
from service.quota.report import UsageReport
from service.quota.spool import FOLDER, Spool
from service.quota.usage import UsageCounters
from service.quota.usage_store import UsageStore
from service.redis.client import RedisStore
from service.redis.connections import open_client
from tests.faults.conftest import Site
from tests.support.instance import Instance, forecast_here
from tests.support.usage import spool_files
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import eventually, until

KEYS = tuple(f"key{number}" for number in range(20))
Counts = Counter[tuple[str, str]]


class Worker:
    """What one worker has for usage, with the budget that keys have by default."""

    def __init__(self, url: str, data: Path) -> None:
        self.redis = RedisStore("key store", url, open_client(url, timeout=0.1, retries=1))
        store = UsageStore(self.redis)
        self.counters = UsageCounters()
        self.flusher = UsageFlusher(self.counters, store, Spool(data), QuotaGuard(self.counters, store))

    async def start(self) -> None:
        await self.redis.start()
        self.flusher.start()

    async def stop(self, seconds: float = 10) -> None:
        await self.flusher.stop(seconds)
        await self.redis.stop()

    async def count_for(self, seconds: float, counted: Counts) -> None:
        """About 2,000 a second."""
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            for _ in range(10):
                number += 1
                key_id, outcome = KEYS[number % len(KEYS)], OUTCOMES[number % len(OUTCOMES)]
                self.counters.count(key_id, "forecast", outcome)
                counted[key_id, outcome] += 1
            await asyncio.sleep(0.005)


async def stored(url: str) -> Counts:
    """Of yesterday and today: a test may meet midnight."""
    redis = RedisStore("key store", url, open_client(url, timeout=5))
    today = datetime.now(UTC).date()
    found: Counts = Counter()
    async for row in UsageReport(redis).of_keys(KEYS, today - timedelta(days=1), today):
        found.update({(row.key_id, outcome): getattr(row, outcome) for outcome in OUTCOMES})
    await redis.stop()
    return +found


@pytest.fixture
def server(short: Path) -> Iterator[ValkeyProcess]:
    made = ValkeyProcess(short / "keys", appendonly=True).start()
    yield made
    made.kill()


async def test_a_server_that_is_killed_and_stalled_over_and_over_costs_nothing(
    server: ValkeyProcess, tmp_path: Path
) -> None:
    """Two workers count all the while; a stalled server runs what its clients gave up long ago, and it counts once."""
    workers = [Worker(server.url, tmp_path) for _ in range(2)]
    counted: Counts = Counter()
    for worker in workers:
        await worker.start()
    counting = [asyncio.create_task(worker.count_for(6, counted)) for worker in workers]
    for _ in range(3):
        await asyncio.sleep(0.6)
        server.kill()
        await asyncio.sleep(0.3)
        await asyncio.to_thread(server.start)
        await asyncio.sleep(0.5)
        server.stall()
        await asyncio.sleep(0.6)
        server.go_on()
    await asyncio.gather(*counting)
    for worker in workers:
        await worker.stop()
    assert not spool_files(tmp_path)
    assert await stored(server.url) == counted


async def test_workers_that_stop_while_the_server_is_gone_leave_their_counts_to_others(
    server: ValkeyProcess, tmp_path: Path
) -> None:
    """The server is killed under a flush; two new workers meet the same spool."""
    workers = [Worker(server.url, tmp_path) for _ in range(2)]
    counted: Counts = Counter()
    for worker in workers:
        await worker.start()
    counting = [asyncio.create_task(worker.count_for(1.5, counted)) for worker in workers]
    await asyncio.sleep(0.7)
    server.stall()
    await asyncio.sleep(0.5)
    server.kill()
    await asyncio.gather(*counting)
    for worker in workers:
        await worker.stop(seconds=0.3)
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 2
    await asyncio.to_thread(server.start)
    later = [Worker(server.url, tmp_path) for _ in range(2)]
    for worker in later:
        await worker.start()
    await eventually(lambda: not list((tmp_path / FOLDER).iterdir()))
    for worker in later:
        await worker.stop()
    assert await stored(server.url) == counted


_CHILD = """
import asyncio, sys, time
from pathlib import Path
from tests.faults.test_usage import KEYS, Worker

async def main():
    worker = Worker(sys.argv[1], Path(sys.argv[2]))
    await worker.start()
    number = 0
    while True:
        number += 1
        worker.counters.count(KEYS[0], "forecast", "answered")
        print(time.monotonic(), number, flush=True)
        await asyncio.sleep(0.005)

asyncio.run(main())
"""


Line = tuple[float, int]


def killed_after(server: ValkeyProcess, data: Path, seconds: float, meanwhile: Callable[[float], None]) -> list[Line]:
    """When a worker counted what, until it was killed. `meanwhile` is told the seconds since it began."""
    command = [sys.executable, "-c", _CHILD, server.url, str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as child:
        assert child.stdout is not None
        began = float(child.stdout.readline().split()[0])
        lines = []
        for line in child.stdout:
            lines.append((float(line.split()[0]), int(line.split()[1])))
            meanwhile(lines[-1][0] - began)
            if lines[-1][0] - began > seconds:
                break
        child.kill()
        lines += [(float(line.split()[0]), int(line.split()[1])) for line in child.stdout if line.endswith("\n")]
    return lines


def assert_a_second_lost(lines: list[Line], found: Counts) -> None:
    last, counted = lines[-1]
    safe = max(number for at, number in lines if at <= last - 1)
    # the last line may not have been written
    assert safe <= found[KEYS[0], "answered"] <= counted + 1


async def take_over(server: ValkeyProcess, data: Path) -> None:
    """Another worker comes and empties the spool."""
    heir = Worker(server.url, data)
    await heir.start()
    await eventually(lambda: not spool_files(data))
    await heir.stop()


@pytest.mark.parametrize(("meanwhile", "seconds"), [("all is well", 3), ("it is killed", 4), ("it stalls", 3)])
def test_a_killed_worker_loses_at_most_a_second_of_its_counts_whatever_the_server_does(
    server: ValkeyProcess, tmp_path: Path, meanwhile: str, seconds: float
) -> None:
    """By its own clock; another worker stores what it spooled, and nothing counts twice.

    What a stalled server was sent runs when it goes on, and what was spooled is the same under the same numbers.
    """
    hurt = {"all is well": lambda: None, "it is killed": server.kill, "it stalls": server.stall}[meanwhile]
    done: list[float] = []

    def after_a_second(at: float) -> None:
        if not done and at > 1:
            hurt()
            done.append(at)

    lines = killed_after(server, tmp_path, seconds, after_a_second)
    if meanwhile == "it is killed":
        # it may have been killed while it wrote: whoever takes over removes that as well
        assert [end for end in spool_files(tmp_path) if not end.endswith(".new")] == ["json", "lock"]
        server.start()
    elif meanwhile == "it stalls":
        server.go_on()
    # on a busy machine the store may have answered late, so that the last counts are in the spool
    asyncio.run(take_over(server, tmp_path))
    assert_a_second_lost(lines, asyncio.run(stored(server.url)))


async def test_a_worker_that_lives_keeps_its_spool_from_others(server: ValkeyProcess, tmp_path: Path) -> None:
    """Through an outage it counts on and spools; nobody takes its file, and when the server is back it is gone."""
    worker, other = Worker(server.url, tmp_path), Worker(server.url, tmp_path)
    counted: Counts = Counter()
    for each in (worker, other):
        await each.start()
    counting = asyncio.create_task(worker.count_for(2.5, counted))
    await asyncio.sleep(0.5)
    server.kill()
    await eventually(lambda: "json" in spool_files(tmp_path))
    await asyncio.sleep(0.7)
    await asyncio.to_thread(server.start)
    await other.flusher.orphaned.once()
    await counting
    await eventually(lambda: "json" not in spool_files(tmp_path))
    for each in (worker, other):
        await each.stop()
    assert not spool_files(tmp_path)
    assert await stored(server.url) == counted


def usage_of(site: Site, key_id: str) -> int:
    """What `forecast usage` says is billable."""
    done = forecast_here(site.env, "usage", "--key", key_id, "--json")
    assert done.returncode == 0, done.stderr
    rows = (
        [json.loads(line) for line in done.stdout.splitlines()]
        if done.stdout.startswith("{")
        else json.loads(done.stdout)
    )
    return sum(row["answered"] + row["answered_empty"] + row["not_modified"] for row in rows)


def test_a_restored_key_store_bills_and_limits_what_was_asked_before_the_loss(
    instance: Instance, published: Site, short: Path
) -> None:
    """Counted, exported, emptied, counted a little more, imported twice beside the running instance: `forecast usage`
    and the quota that workers judge by agree."""
    issued = forecast_here(published.env, "keys", "issue", "--partner", "acme", "--quota", "20/day", "--json")
    key, key_id = (json.loads(issued.stdout)[name] for name in ("key", "key_id"))
    backup = str(short / "backup.jsonl")

    def ask(times: int) -> list[int]:
        return [instance.zip_code(key).status_code for _ in range(times)]

    assert ask(8) == [200] * 8
    until(lambda: usage_of(published, key_id) == 8)
    assert forecast_here(published.env, "keys", "export", backup).returncode == 0
    assert ask(3) == [200] * 3  # some of them may be stored before the loss
    with BlockingRedis.from_url(published.keys.url) as server:
        server.flushall()
    for added in (8, 0):
        done = forecast_here(published.env, "keys", "import", backup, "--json")
        assert (done.returncode, json.loads(done.stdout)["usage"]) == (0, added), done.stderr
    until(lambda: instance.zip_code(key).status_code == 200)
    until(lambda: 429 in ask(1))
    until(lambda: instance.metric("forecast_usage_waiting") == 0)
    # what was answered between the export and the loss is lost, and nothing else
    assert usage_of(published, key_id) == 20


def test_a_key_that_asks_for_years_of_usage_all_the_time_does_not_load_the_store(
    instance: Instance, published: Site
) -> None:
    """Other days each time, so that nothing can be told again. Its rate, one a minute, is none of usage's."""
    issued = forecast_here(published.env, "keys", "issue", "--partner", "acme", "--rate", "1/min", "--json")
    hammering, other = json.loads(issued.stdout)["key"], published.key
    until(lambda: instance.get("/v1/usage", hammering).status_code == 200)
    first = date(2025, 1, 1)
    years = [(first + timedelta(days=day), first + timedelta(days=day + 365)) for day in range(200)]
    began = time.monotonic()
    with httpx.Client(base_url=instance.partners, headers={"x-api-key": hammering}, timeout=30) as client:
        replies = [client.get("/v1/usage", params={"from": str(day), "to": str(end)}) for day, end in years]
    seconds = time.monotonic() - began
    answered = [reply for reply in replies if reply.status_code == 200]
    refused = [reply for reply in replies if reply.status_code == 429]
    assert len(answered) + len(refused) == 200
    assert 10 <= len(answered) <= (BURST_RECORDS + RECORDS_A_SECOND * seconds) / 12 + 1
    assert {reply.json()["code"] for reply in refused} <= {"rate_limited"}
    assert {reply.headers["retry-after"] for reply in refused} <= {"1"}
    assert instance.get("/v1/usage", other).status_code == 200
