"""What a million keys and their audit trail take of the key store's memory.

``python -m tests.figures.million_keys [KEYS]`` (1,000,000 by default). Records and lines of the audit trail are those
that `KeyStore.issue` would have written, sent in large steps.
"""

import secrets
import sys
from collections.abc import Iterator

import msgspec
import uvloop
from redis.asyncio import Redis

from service.base.terms import Quota, Rate, Terms
from service.keys.audit import AUDIT, LINE
from service.keys.edits import RawKey, edits_of
from service.keys.record import ApiKey
from service.keys.store import KeyStore, now
from tests.figures.common import Site, say, site

STEP = 2000
TERMS = (
    Terms(),
    Terms(rate=Rate(500, 1, 100), quota=Quota(5_000_000, "month")),
    Terms(areas=("forecast",), rate=Rate(30, 60, 30)),
)


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


async def fill(store: KeyStore, client: Redis, number: int) -> None:
    """Writes the records, then the trail."""
    before = await memory(client)
    edits = [edit for key in keys_of(store, number) for edit in edits_of(RawKey(), None, key, "issued", by=store.by)]
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


async def memory(client: Redis) -> tuple[int, int]:
    """Bytes that the server uses, and that it has from the system."""
    info = await client.info("memory")
    return info["used_memory"], info["used_memory_rss"]


async def run(ground: Site, number: int) -> None:
    client = Redis.from_url(ground.keys.url)
    try:
        async with ground.store() as store:
            await fill(store, client, number)
    finally:
        await client.aclose()


def main(number: str = "1000000") -> None:
    with site() as ground:
        uvloop.run(run(ground, int(number)))


if __name__ == "__main__":
    main(*sys.argv[1:2])
