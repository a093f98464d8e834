"""What workers could not store before they ended, where workers on other machines find it: in the cache's Redis.

It is beside the file in the data folder (spool.py), which only others on that folder find. Both hold the same batches
with the same numbers, so that it does not matter who stores which, or how often (Decision 18).

``l:usage``  hash: worker id -> digest, made with the pepper, and what a file of the spool holds. It does not expire; a
             Redis that evicts may evict it.
"""

import hmac
import logging
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec

from config.decoders import decoder_of
from service.quota.batch import Batch
from service.quota.spool import OLDEST, Spooled
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameCommand, NameStore

log = logging.getLogger("forecast.usage")

NAME = "l:usage"
_PERSON = b"left usage"  # nothing else is signed so
_DIGEST_CHARACTERS = 32
_LONGEST_KEY = 64


class LeftUsage:
    """Part of one worker's UsageFlusher. `secret` is the pepper: who may only write to this Redis makes no bill."""

    def __init__(self, store: NameStore, secret: bytes) -> None:
        self._store = store
        self._told: set[bytes] = set()
        self._secret = blake2b(secret, digest_size=_LONGEST_KEY).digest()

    async def leave(self, worker_id: str, keys: dict[str, tuple[Batch, ...]]) -> None:
        """Raises StoreUnavailable."""
        text = msgspec.json.encode(Spooled(worker_id, datetime.now(UTC), keys))
        value = self._digest(text) + text
        await self._ask("HSET", worker_id, value)

    async def found(self) -> list[Spooled]:
        """What ended workers have left. What cannot be counted stays, and the log says so. Raises StoreUnavailable."""
        entries = await self._ask("HGETALL")
        if isinstance(entries, list) and len(entries) % 2 == 0:  # as a server says it
            entries = dict(zip(entries[::2], entries[1::2], strict=True))
        if not isinstance(entries, dict):
            raise StoreUnavailable(f"{self._store.name}: what workers left is {type(entries).__name__}")
        found = []
        for name, value in entries.items():
            spooled, why = self._read(name, value)
            if spooled is not None:
                found.append(spooled)
            elif name not in self._told:
                self._told.add(name)
                log.error(
                    "usage in %s of the cache's Redis is not counted: %s: %s", NAME, name.decode(errors="replace"), why
                )
        return found

    async def forget(self, worker_id: str) -> None:
        """Raises StoreUnavailable."""
        await self._ask("HDEL", worker_id)

    async def _ask(self, command: str, *words: str | bytes) -> Any:
        [reply] = await self._store.pipelined([NameCommand(NAME, (command, NAME, *words))])
        if isinstance(reply, Exception):
            raise StoreUnavailable(f"{self._store.name}: {reply}")
        return reply

    def _read(self, name: bytes, value: bytes) -> tuple[Spooled | None, str]:
        digest, text = value[:_DIGEST_CHARACTERS], value[_DIGEST_CHARACTERS:]
        if not hmac.compare_digest(digest, self._digest(text)):
            return None, "it is damaged, or made with another pepper"
        try:
            spooled = decoder_of(Spooled).decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return None, str(error)
        if spooled.worker_id.encode() != name:
            return None, "it is another worker's"
        if datetime.now(UTC) - spooled.written_at > OLDEST:
            return None, f"written on {spooled.written_at:%Y-%m-%d}"
        return spooled, ""

    def _digest(self, text: bytes) -> bytes:
        digest = blake2b(text, key=self._secret, person=_PERSON, digest_size=_DIGEST_CHARACTERS // 2)
        return digest.hexdigest().encode()
