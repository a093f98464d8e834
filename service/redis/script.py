"""Lua scripts: called by their digest, many calls in one round trip. A server that does not know one is sent it."""

from collections.abc import Sequence
from hashlib import sha1
from importlib import resources
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameCommand, NameStore

# Number of keys, keys, arguments.
ScriptCall = Sequence[str | int]


class Script:
    """One `.lua` file; a constant of the module that calls it.

    `loads`: a user that runs it may SCRIPT LOAD, and not EVAL (SECURITY.md).
    """

    def __init__(self, room: str, file: str, *, loads: bool = False) -> None:
        self.text = resources.files(room).joinpath(file).read_text(encoding="utf-8")
        self._file = file
        self._loads = loads
        self.sha = sha1(self.text.encode(), usedforsecurity=False).hexdigest()  # how Redis names a script

    async def run(self, client: Redis, calls: Sequence[ScriptCall]) -> list[Any]:
        """The reply to each call, or the error that it was answered with. Raises StoreUnavailable if one is missing."""
        replies = await self._pipelined(client, "EVALSHA", self.sha, calls)
        unknown = [at for at, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:  # the server was restarted
            again = await self._teach(client, [calls[at] for at in unknown])
            for at, reply in zip(unknown, again, strict=True):
                replies[at] = reply
        return replies

    async def run_by_name(self, store: NameStore, calls: Sequence[ScriptCall]) -> list[Any]:
        """The same on a store that may be a cluster: there, each call has one key, and the user may EVAL."""
        if isinstance(store, RedisStore):
            replies = await store.call(lambda client: self.run(client, calls))
            store.heard(replies)
            return replies
        replies = await store.pipelined(_named("EVALSHA", self.sha, calls))
        unknown = [at for at, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:  # each node learns it by itself
            again = await store.pipelined(_named("EVAL", self.text, [calls[at] for at in unknown]))
            for at, reply in zip(unknown, again, strict=True):
                replies[at] = reply
        return replies

    async def evaluate(self, client: Redis, calls: Sequence[ScriptCall]) -> list[Any]:
        """The same for a user that may EVAL alone, which sends the script with every call."""
        return await self._pipelined(client, "EVAL", self.text, calls)

    async def _teach(self, client: Redis, calls: Sequence[ScriptCall]) -> list[Any]:
        if not self._loads:
            return await self.evaluate(client, calls)
        await client.script_load(self.text)
        return await self._pipelined(client, "EVALSHA", self.sha, calls)

    async def _pipelined(self, client: Redis, command: str, script: str, calls: Sequence[ScriptCall]) -> list[Any]:
        async with client.pipeline(transaction=False) as pipeline:
            for call in calls:
                pipeline.execute_command(command, script, *call)
            replies: list[Any] = await pipeline.execute(raise_on_error=False)
        if len(replies) != len(calls):
            raise StoreUnavailable(f"{self._file}: {len(calls)} calls sent, {len(replies)} answered")
        return replies


def _named(command: str, script: str, calls: Sequence[ScriptCall]) -> list[NameCommand]:
    return [NameCommand(str(call[1]), (command, script, *call)) for call in calls]
