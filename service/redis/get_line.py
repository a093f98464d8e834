"""GETs of single names, told by callbacks (line.py)."""

from collections.abc import Sequence

from service.redis.line import Line, Words
from service.redis.name_store import NameCommand, NameStore


class GetLine(Line):
    """The GETs of one worker, which stops it. Each call is one name."""

    def __init__(self, store: NameStore) -> None:
        super().__init__(store, "GET")
        self._store = store

    async def by_client(self, calls: Sequence[Words]) -> Sequence[object]:
        return await self._store.pipelined([NameCommand(str(name), ("GET", name)) for (name,) in calls])
