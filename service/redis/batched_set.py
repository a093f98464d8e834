"""SETs travel together: those of some milliseconds, and those that come while a command is under way.

Nobody waits for them, and a round trip costs more than its values.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Iterable
from itertools import zip_longest

import msgspec

from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.name_store import NameCommand, NameStore
from service.redis.refusals import server_refusal, told

log = logging.getLogger("forecast.redis")

# Of one command, so that Redis soon serves others.
_MOST_VALUES = 64
_MOST_BYTES = 1 << 20
# For how long a command waits for more values. Measured with 4,000 values a second: 25 µs for each instead of 43.
_GATHERING_SECONDS = 0.01
# What may wait for a slow store; beyond it, values are dropped rather than memory filled.
_MOST_WAITING_BYTES = 16 << 20


class _Value(msgspec.Struct, eq=False):
    name: str
    data: bytes
    stored: asyncio.Future[bool]


class BatchedSet:
    """Stores values for `ttl` seconds, for the shared cache of one worker, which owns it.

    One command is under way at a time.
    """

    def __init__(self, store: NameStore, ttl: int) -> None:
        # values that were not stored, by reason: `full`, `read_only`, `other`, `away`, `slow`
        self.failed: Counter[str] = Counter()
        self._refusals: dict[str, str] = {}  # by server, if it refused the last value
        self._store = store
        self._ttl = ttl
        self._waiting: deque[_Value] = deque()
        self._waiting_bytes = 0
        self._sending: asyncio.Task[None] | None = None

    @property
    def refusal(self) -> str | None:
        """Why a server refused the last value; None if all take them."""
        servers = [server.name for server in self._store.servers]
        found = [(name, self._refusals[name]) for name in servers if name in self._refusals]
        if not found:
            return None
        name, why = found[0]
        return why if len(servers) == 1 else f"{name}: {why}"

    def set(self, name: str, data: bytes) -> asyncio.Future[bool]:
        """Tells later whether the value was stored; nobody needs to wait for it."""
        stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._waiting_bytes + len(data) > _MOST_WAITING_BYTES:
            self.failed["slow"] += 1
            stored.set_result(False)
            return stored
        self._waiting.append(_Value(name, data, stored))
        self._waiting_bytes += len(data)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())
        return stored

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                if len(self._waiting) < _MOST_VALUES:
                    await asyncio.sleep(_GATHERING_SECONDS)
                await self._send(self._take())
        finally:  # nobody may be left waiting, after a defect either
            self._sending = None
            _tell(self._waiting, [])
            self._waiting.clear()
            self._waiting_bytes = 0

    def _take(self) -> list[_Value]:
        """The values of the next command, at least one."""
        taken: list[_Value] = []
        size = 0
        while self._waiting and len(taken) < _MOST_VALUES and (not taken or size < _MOST_BYTES):
            taken.append(self._waiting.popleft())
            size += len(taken[-1].data)
        self._waiting_bytes -= size
        return taken

    async def try_servers(self, name: str) -> None:
        """Finds out whether each server takes values, by storing an empty one that is not counted."""
        try:
            await self._store_all([(one, b"") for one in self._store.one_for_each_server(name)])
        except StoreUnavailable as error:
            log.debug("not tried: %s", error)

    async def _send(self, values: list[_Value]) -> None:
        replies: list[object] = []
        try:
            replies = await self._store_all([(value.name, value.data) for value in values])
            self.failed.update(_why(reply) for reply in replies if isinstance(reply, Exception))
        except StoreUnavailable as error:
            log.debug("%d values not stored: %s", len(values), error)
            self.failed[_why(error)] += len(values)
        finally:
            _tell(values, replies)

    async def _store_all(self, pairs: list[tuple[str, bytes]]) -> list[object]:
        """The reply to each: True, or the error with which it was refused. Raises StoreUnavailable."""
        commands = [NameCommand(name, ("SET", name, data, "EX", self._ttl)) for name, data in pairs]
        replies: list[object] = []
        try:
            replies = await self._store.pipelined(commands)
        except StoreRefused as error:
            replies = [error] * len(pairs)
            raise
        finally:
            self._note([name for name, _ in pairs], replies)
        return replies

    def _note(self, names: list[str], replies: list[object]) -> None:
        """Notes which servers refused anything. One that is away refuses nothing."""
        refused: dict[str, str] = {}
        takes: set[str] = set()
        for name, reply in zip(names, replies, strict=False):
            server = self._store.server_of(name)
            if isinstance(reply, StoreRefused):
                refused[server] = str(reply)
            elif isinstance(reply, StoreUnavailable):
                continue
            elif isinstance(reply, Exception):
                refused[server] = told(reply)
            else:
                takes.add(server)
        for server in refused.keys() - self._refusals.keys():
            log.warning("%s takes nothing: %s", server, refused[server])
        for server in takes & self._refusals.keys() - refused.keys():
            log.info("%s takes what is to be stored again", server)
            del self._refusals[server]
        self._refusals |= refused


def _why(error: Exception) -> str:
    """As a label of metrics."""
    if isinstance(error, StoreUnavailable):
        return error.why if isinstance(error, StoreRefused) else "away"
    return server_refusal(error)


def _tell(values: Iterable[_Value], replies: Iterable[object]) -> None:
    """A value without a reply was not stored."""
    for value, reply in zip_longest(values, replies):
        if not value.stored.done():
            value.stored.set_result(reply is True)
