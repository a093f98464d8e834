"""Calls of one script, told by callbacks (line.py)."""

from collections.abc import Sequence

from service.redis.line import Line, Words
from service.redis.name_store import NameStore
from service.redis.script import Script


class ScriptLine(Line):
    """The calls of one worker, which stops it. In a cluster each has one key."""

    def __init__(self, store: NameStore, script: Script) -> None:
        super().__init__(store, "EVALSHA", script.sha)
        self._store = store
        self._script = script

    async def by_client(self, calls: Sequence[Words]) -> Sequence[object]:
        return await self._script.run_by_name(self._store, calls)
