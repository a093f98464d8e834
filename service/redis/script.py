"""Lua scripts, called by their digest. A script is sent to a server that does not know it."""

import asyncio
from collections.abc import Sequence
from hashlib import sha1
from importlib import resources
from typing import Any, TypeVar

from redis.asyncio import Redis

from service.redis.errors import StoreUnavailable
from service.redis.opening import CacheStore
from service.redis.pipelined import Call, Read, pack

T = TypeVar("T")
# Number of keys, keys, arguments.
ScriptCall = Sequence[str | int]


class Script:
    """One `.lua` file; a constant of the module that calls it.

    `loads`: a user that runs it may SCRIPT LOAD, and not EVAL (docs/operate/rights.md).
    """

    def __init__(self, room: str, file: str, *, loads: bool = False) -> None:
        self.text = resources.files(room).joinpath(file).read_text(encoding="utf-8")
        self._file = file
        self._loads = loads
        self.sha = sha1(self.text.encode(), usedforsecurity=False).hexdigest()  # Redis' name of the script

    def send(self, store: CacheStore, call: ScriptCall, read: Read[T]) -> asyncio.Future[T]:
        """Calls the script, as `RedisStore.send`; in a cluster with one key."""
        return store.send(str(call[1]), ("EVALSHA", self.sha, *call), read, self._teach)

    async def evaluate(self, client: Redis, calls: Sequence[ScriptCall]) -> list[Any]:
        """Returns each call's reply or error, for a user that may only EVAL.

        Raises StoreUnavailable if a reply is missing.
        """
        async with client.pipeline(transaction=False) as pipeline:
            for call in calls:
                pipeline.execute_command("EVAL", self.text, *call)
            replies: list[Any] = await pipeline.execute(raise_on_error=False)
        if len(replies) != len(calls):
            raise StoreUnavailable(f"{self._file}: {len(calls)} calls sent, {len(replies)} answered")
        return replies

    def _teach(self, call: Call) -> None:
        call.learn = None
        if self._loads:
            call.ahead = pack("SCRIPT", "LOAD", self.text)
        else:
            call.data = pack("EVAL", self.text, *call.words[2:])
