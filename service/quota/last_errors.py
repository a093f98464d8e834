"""The last errors of each key, for its owner: collected in memory, and stored every half second.

They are lists (``e:{<key id>}``) in the cache's Redis, with a time to live: losing one harms nothing, and `maxmemory`
bounds them all. Each error has a digest over itself and its key, so that an error damaged by Redis, or from another
key's list, is never shown (Decision 2).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from service.base.batched import batched
from service.base.ipc import AccessLogEntry
from service.base.masking import masked
from service.base.tasks import keep_running
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.name_store import gathered
from service.redis.opening import CacheStore
from service.redis.pipelined import anything
from service.redis.script import Script, ScriptCall

log = logging.getLogger("forecast.errors")

MOST_KEPT = 100  # of one key
KEPT_SECONDS = 7 * 86_400
FLUSH_SECONDS = 0.5
# Limit for all keys of one worker, until the next flush; some 4 MB.
MOST_WAITING = 4_000
# Keys of one command: few, so that Redis and the event loop soon serve other requests.
_MOST_KEYS = 16
_DIGEST_CHARACTERS = 16

Make = Callable[[], AccessLogEntry]
# A key's id, and the functions that make its errors, oldest first.
_ErrorsOfKey = tuple[str, deque[Make]]

_SCRIPT = Script("service.quota", "errors.lua")
_encoder = msgspec.json.Encoder()


class OwnError(msgspec.Struct, frozen=True):
    """A request that ended with an error. It names neither the key nor an address."""

    time: Annotated[str, Meta(description="When it was answered: RFC 3339 in UTC, with milliseconds.")]
    request_id: Annotated[str, Meta(description="As in the answer.")]
    method: Annotated[str, Meta(description="As it was sent.")]
    status: Annotated[int, Meta(description="The HTTP status.")]
    code: Annotated[str, Meta(description="The code of the error.")]
    target: Annotated[str, Meta(description="Path and query, shortened if they are long; keys in them are masked.")]


_decoder = msgspec.json.Decoder(OwnError)


class LastErrors:
    """The last errors in one worker's answers, and those that all workers stored. `store` is its own: a slow flush must
    not make the cache treat its server as unreachable. Its owner stops it after the last request.
    """

    def __init__(self, store: CacheStore) -> None:
        self.dropped = 0  # errors that were not stored
        self._store = store
        self._waiting: dict[str, deque[Make]] = {}
        self._number = 0  # of waiting errors
        self._refusal: str | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._store.start()
        self._task = keep_running("keep errors of keys", self._flush_in_time, stopping=self._stopping)

    async def stop(self) -> None:
        """Stores waiting errors, unless the store just failed: no caller waits for it twice."""
        self._stopping.set()
        if self._task is not None:
            await self._task
        if self._store.healthy:
            await self.flush()
        await self._store.stop()

    def add(self, key_id: str, make: Make) -> None:
        """Adds an error of a request with a valid key that is no test key. `make` makes its line, if it is kept."""
        waiting = self._waiting.get(key_id)
        if waiting is not None and len(waiting) == MOST_KEPT:
            waiting.append(make)  # the oldest one would be dropped anyway
        elif self._number >= MOST_WAITING:
            self.dropped += 1
        else:
            if waiting is None:
                waiting = self._waiting[key_id] = deque(maxlen=MOST_KEPT)
            waiting.append(make)
            self._number += 1

    async def flush(self) -> None:
        """Tries once to store waiting errors. Drops those that cannot be stored, and counts them."""
        waiting, self._waiting, self._number = self._waiting, {}, 0
        is_there = True
        for keys in batched(waiting.items(), _MOST_KEYS):
            if is_there:
                is_there = await self._send(keys)
            else:
                self._drop(keys)

    async def of_key(self, key_id: str) -> tuple[OwnError, ...]:
        """Returns the key's errors, newest first; those of other workers are included once they are stored.

        Raises:
            StoreUnavailable: if the store is unreachable or slow, or its reply is unexpected.
        """
        name = _name(key_id)
        stored = await self._store.send(name, ("LRANGE", name, 0, MOST_KEPT - 1), anything)
        if not isinstance(stored, list):
            raise StoreUnavailable(f"{self._store.name}: errors of a key are {type(stored).__name__}, not a list")
        found = [error for error in (_decoded(key_id, entry) for entry in stored) if error is not None]
        return tuple(sorted(found, key=lambda error: error.time, reverse=True))  # workers store in turns

    async def _flush_in_time(self) -> float:
        await self.flush()
        return FLUSH_SECONDS

    def _drop(self, keys: list[_ErrorsOfKey]) -> None:
        self.dropped += sum(len(errors) for _, errors in keys)

    async def _send(self, keys: list[_ErrorsOfKey]) -> bool:
        """Returns whether the store could be reached."""
        calls: list[ScriptCall] = [
            (1, _name(key_id), MOST_KEPT, KEPT_SECONDS, *(_encoded(key_id, make()) for make in errors))
            for key_id, errors in keys
        ]
        try:
            replies = await gathered(_SCRIPT.send(self._store, call, anything) for call in calls)
        except StoreUnavailable as error:
            log.debug("errors of keys are not kept: %s", error)
            self._drop(keys)
            return False
        refused = None
        for one, reply in zip(keys, replies, strict=True):
            if isinstance(reply, StoreUnavailable):
                refused = reply.text if isinstance(reply, StoreRefused) else refused
                self._drop([one])
        if refused is not None and refused != self._refusal:
            log.warning("errors of keys are not kept: %s: %s", self._store.name, refused)
        self._refusal = refused
        return True


def _name(key_id: str) -> str:
    return f"e:{{{key_id}}}"


def _encoded(key_id: str, request: AccessLogEntry) -> str:
    target = f"{request.path}?{request.query}" if request.query else request.path
    at = f"{request.time.removesuffix('+00:00')}Z"
    request_id = masked(request.request_id)  # as path and query are
    error = OwnError(at, request_id, request.method, request.status, request.outcome, target)
    text = _encoder.encode(error).decode()
    return _digest(key_id, text.encode()) + text


def _decoded(key_id: str, entry: Any) -> OwnError | None:
    """Returns None if it is damaged, or of another key or version."""
    if not isinstance(entry, bytes):
        return None
    digest, text = entry[:_DIGEST_CHARACTERS], entry[_DIGEST_CHARACTERS:]
    if digest != _digest(key_id, text).encode():
        return None
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError:
        return None


def _digest(key_id: str, text: bytes) -> str:
    return blake2b(key_id.encode() + b"\n" + text, digest_size=_DIGEST_CHARACTERS // 2).hexdigest()
