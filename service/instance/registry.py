"""Records of the instances that share a key store, with any data folders. Each renews its record while it lives."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from service.redis.pipelined import anything
from service.redis.script import Script

INSTANCES = "n:instances"
# A killed instance is listed and counted for this long.
DEAD_AFTER_SECONDS = 10
_RENEW_SECONDS = 3
_PURGED = b"purged"
_VALUE = re.compile(rb"(\d+):(.*)", re.DOTALL)
_SCRIPT = Script("service.instance", "beat.lua", loads=True)


class Peer(msgspec.Struct, frozen=True):
    """The record of one instance."""

    instance: str
    host: str
    operator_url: str
    workers: int
    purged: str = ""  # mark of the last purge that it has carried out

    @property
    def name(self) -> str:
        """The same name as that of a record in the data folder (InstanceRecord)."""
        return f"instance {self.instance} on {self.host}"


class BeatReply(msgspec.Struct, frozen=True):
    """The store's reply to one beat. `at` is the store's clock, in seconds since 1970."""

    at: float
    purged: str  # mark of the last purge that was ordered; empty if there was none
    peers: tuple[Peer, ...]


async def beat(store: RedisStore, peer: Peer, purge: str = "") -> BeatReply:
    """Renews the record of an instance. With a mark in `purge`, orders all others to purge.

    Raises:
        StoreUnavailable: if the store does not answer, or with an unexpected reply.
    """
    return await _run(store, peer.instance, msgspec.json.encode(peer).decode(), purge)


async def leave(store: RedisStore, instance: str) -> None:
    """Removes the record of an instance that ends. Raises StoreUnavailable."""
    await _run(store, instance, "", "")


async def _run(store: RedisStore, instance: str, record: str, purge: str) -> BeatReply:
    call = (1, INSTANCES, instance, record, DEAD_AFTER_SECONDS, _RENEW_SECONDS, purge)
    return _parse_reply(await _SCRIPT.send(store, call, anything))


async def peers_in(store: RedisStore) -> list[Peer]:
    """Returns the live instances, for commands. Raises StoreUnavailable."""
    found: Any = await store.call(lambda client: client.hgetall(INSTANCES))
    seconds, _ = await store.call(lambda client: client.time())
    matches = (_VALUE.fullmatch(value) for field, value in found.items() if field != _PURGED)
    live = (match[2] for match in matches if match and abs(int(seconds) - int(match[1])) <= DEAD_AFTER_SECONDS)
    return sorted(_peers(list(live)), key=lambda peer: (peer.host, peer.instance))


def _parse_reply(reply: Any) -> BeatReply:
    match reply:
        case [bytes(seconds), bytes(micros), bytes(purged), *records]:
            return BeatReply(int(seconds) + int(micros) / 1_000_000, purged.decode("ascii", "replace"), _peers(records))
        case _:
            raise StoreUnavailable(f"unexpected reply to a beat: {str(reply)[:100]}")


def _peers(records: Sequence[bytes]) -> tuple[Peer, ...]:
    """Decodes the records; skips those that this version does not understand."""
    found = []
    for record in records:
        try:
            found.append(msgspec.json.decode(record, type=Peer))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return tuple(found)
