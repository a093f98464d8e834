"""What a million keys cost: memory of the key store, the first request with a key, the commands that read them all.

``python -m tests.figures.million_keys [KEYS]`` (1,000,000 by default). Records and lines of the audit trail are those
that `KeyStore.issue` would have written, sent in large steps. A cold check is the first request with a key that no
worker has seen; beside it the second request with the same key. Commands run to their end in processes of their own,
start of the interpreter included, beside an instance that serves.
"""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import uvloop
from redis.asyncio import Redis

from service.base.terms import Quota, Rate, Terms
from service.keys.audit import AUDIT, LINE
from service.keys.record import ApiKey
from service.keys.store import KeyStore, edit_of, now
from tests.figures.common import Site, milliseconds, request, say, site, spread, wait_for_workers
from tests.support.instance import serving

WORKERS = 2
STEP = 2000
COLD = 200
WATCH_SECONDS = 0.02
TERMS = (
    Terms(),
    Terms(rate=Rate(500, 1, 100), quota=Quota(5_000_000, "month")),
    Terms(areas=("forecast",), rate=Rate(30, 60, 30)),
)
COMMANDS = (("keys", "list"), ("keys", "list", "--json"), ("keys", "export", "FILE"))


def keys_of(store: KeyStore, number: int) -> Iterator[ApiKey]:
    """Like those of `new_key`, but for digests: random ones of the same length, because nobody will ask with them."""
    created = now()
    for at in range(number):
        yield ApiKey(
            key_id=f"{at:07}{secrets.token_hex(3)[:5]}",
            partner=f"partner {at % 5000}",
            label=f"integration {at % 7}",
            digest=secrets.token_hex(32),
            created_at=created,
            terms=TERMS[at % len(TERMS)],
            pepper=store.fingerprint,
        )


async def fill(store: KeyStore, client: Redis, number: int) -> list[str]:
    """Writes the records, then the trail; returns keys that can be asked with, which are among them."""
    presented = [await store.issue(f"partner {at}", "asked", None, TERMS[at % len(TERMS)]) for at in range(COLD)]
    before = await memory(client)
    edits = [edit_of(None, None, key, "issued") for key in keys_of(store, number - COLD)]
    for start in range(0, len(edits), STEP):
        await client.mset({edit.name: edit.after for edit in edits[start : start + STEP]})
    records = await memory(client)
    for start in range(0, len(edits), STEP):
        async with client.pipeline(transaction=False) as pipeline:
            for edit in edits[start : start + STEP]:
                pipeline.xadd(AUDIT, {LINE: msgspec.json.encode(edit.change)})
            await pipeline.execute()
    trail = await memory(client)
    said = sum(len(edit.after) for edit in edits) / len(edits)
    say(f"{await client.dbsize():,} records of {said:.0f} bytes on average in the Redis of the keys:")
    for what, (used, resident), (used_before, _) in (("records", records, before), ("with their trail", trail, before)):
        each = (used - used_before) / len(edits)
        say(f"  {what}: {used / 2**20:,.0f} MiB used, {resident / 2**20:,.0f} MiB resident; {each:.0f} bytes a key")
    return [key for key, _ in presented]


async def memory(client: Redis) -> tuple[int, int]:
    """Bytes that the server uses, and that it has from the system."""
    info = await client.info("memory")
    return info["used_memory"], info["used_memory_rss"]


async def cold_checks(base: str, pids: list[int], keys: list[str]) -> None:
    """Every worker meets every key for the first time; one request at a time."""
    by_worker = await spread(base, pids, 1)
    cold: list[float] = []
    hot: list[float] = []
    for at, key in enumerate(keys):
        (connection,) = by_worker[pids[at % len(pids)]]
        for took in (cold, hot):
            began = time.perf_counter()
            assert await connection.ask(request(key)) == 200
            took.append(time.perf_counter() - began)
    say(f"cold checks, {len(cold)} keys: {milliseconds(cold)}; the next request with each: {milliseconds(hot)}")


def run(env: dict[str, str], folder: Path, *words: str) -> None:
    """One command, to its end."""
    arguments = [str(folder / "export.jsonl") if word == "FILE" else word for word in words]
    output = folder / "output"
    with output.open("wb") as stream:
        began = time.perf_counter()
        child = subprocess.Popen([sys.executable, "-m", "service", *arguments], env=env, stdout=stream)
        peak, done = 0, 0
        while not done:
            time.sleep(WATCH_SECONDS)
            peak = max(peak, peak_memory(child.pid))
            done, status, usage = os.wait4(child.pid, os.WNOHANG)
        took = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, words
    written = (folder / "export.jsonl" if "FILE" in words else output).stat().st_size
    say(f"forecast {' '.join(words)}: {took:.1f} s ({usage.ru_utime + usage.ru_stime:.1f} s of processor), "
        f"{written / 2**20:,.1f} MiB written, {peak / 2**20:,.0f} MiB of memory at most")  # fmt: skip


def peak_memory(pid: int) -> int:
    """Bytes. What `wait4` tells is never less than what the process that started this one had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) * 1024
    return 0  # it has just ended


async def prepare(ground: Site, number: int) -> list[str]:
    client = Redis.from_url(ground.keys.url)
    try:
        async with ground.store() as store:
            return await fill(store, client, number)
    finally:
        await client.aclose()


def main(number: str = "1000000") -> int:
    with site() as ground:
        keys = uvloop.run(prepare(ground, int(number)))
        with serving(ground.env, ground.folder / "serve.log", WORKERS) as instance:
            pids = wait_for_workers(instance, WORKERS)
            uvloop.run(cold_checks(instance.partners, pids, keys))
            for words in COMMANDS:
                run(ground.env, ground.folder, *words)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
