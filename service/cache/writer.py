"""Stores entries in the shared cache. Requests do not wait for it."""

import asyncio
import logging
from collections import Counter, deque
from functools import partial

import msgspec

from service.redis.errors import StoreRefused
from service.redis.opening import CacheStore
from service.redis.pipelined import UnexpectedReplyError

log = logging.getLogger("forecast.cache")

# Sent and not answered yet: the replies to look-ups come after them.
_MOST_UNDER_WAY_BYTES = 1 << 20
# Including those that wait to be sent to a slow store. Further entries are dropped, to bound the memory.
_MOST_BYTES = 16 << 20


class _Entry(msgspec.Struct, eq=False):
    name: str
    data: bytes
    stored: asyncio.Future[bool]


class EntryWriter:
    """Stores entries for `ttl` seconds; part of the SharedCache of one worker.

    `failed` counts entries that were not stored, by reason: `full`, `read_only`, `other`, `away`, `slow`.
    """

    def __init__(self, store: CacheStore, ttl: int) -> None:
        self.failed: Counter[str] = Counter()
        self._store = store
        self._ttl = ttl
        self._refusals: dict[str, str] = {}  # by server
        self._waiting: deque[_Entry] = deque()
        self._bytes = self._under_way = 0

    @property
    def refusal(self) -> str | None:
        """Why a server refuses entries; None if all take them."""
        servers = [server.name for server in self._store.servers]
        found = [(name, self._refusals[name]) for name in servers if name in self._refusals]
        if not found:
            return None
        name, why = found[0]
        return why if len(servers) == 1 else f"{name}: {why}"

    def put(self, name: str, data: bytes) -> asyncio.Future[bool]:
        """Returns a future whose result is whether the entry was stored."""
        entry = _Entry(name, data, asyncio.get_running_loop().create_future())
        if self._bytes + len(data) > _MOST_BYTES:
            self._ended(entry, "slow")
        else:
            self._bytes += len(data)
            self._waiting.append(entry)
            self._send()
        return entry.stored

    async def try_servers(self, name: str) -> None:
        """Checks whether each server accepts entries, by storing an empty one that is not counted."""
        trials = [self._set(one, b"", is_trial=True) for one in self._store.one_for_each_server(name)]
        await asyncio.gather(*trials, return_exceptions=True)

    def _send(self) -> None:
        while self._waiting and self._under_way < _MOST_UNDER_WAY_BYTES:
            entry = self._waiting.popleft()
            self._under_way += len(entry.data)
            self._set(entry.name, entry.data).add_done_callback(partial(self._answered, entry))

    def _set(self, name: str, data: bytes, *, is_trial: bool = False) -> asyncio.Future[None]:
        answer = self._store.send(name, ("SET", name, data, "EX", self._ttl), _stored)
        answer.add_done_callback(partial(self._note, self._store.server_of(name), is_trial))
        return answer

    def _answered(self, entry: _Entry, answer: asyncio.Future[None]) -> None:
        self._bytes -= len(entry.data)
        self._under_way -= len(entry.data)
        error = answer.exception()
        self._ended(entry, None if error is None else error.why if isinstance(error, StoreRefused) else "away")
        self._send()

    def _ended(self, entry: _Entry, why: str | None) -> None:
        if why is not None:
            self.failed[why] += 1
        if not entry.stored.done():
            entry.stored.set_result(why is None)

    def _note(self, server: str, is_trial: bool, answer: asyncio.Future[None]) -> None:
        """Notes whether a server refuses entries. An unreachable one refuses none.

        Only a trial ends a refusal: a server that is nearly full rejects some entries and accepts others.
        """
        error = answer.exception()
        if isinstance(error, StoreRefused):
            if server not in self._refusals:
                log.warning("%s rejects writes: %s", server, error.text)
            self._refusals[server] = error.text
        elif error is None and is_trial and self._refusals.pop(server, None) is not None:
            log.info("%s accepts writes again", server)


def _stored(reply: object) -> None:
    if reply != b"OK":
        raise UnexpectedReplyError.of(reply)
