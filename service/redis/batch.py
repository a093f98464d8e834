"""Concurrent GETs of one turn of the event loop travel as one MGET: a round trip costs more than its keys."""

import asyncio

from service.redis.client import RedisStore, StoreUnavailable

# Keeps one reply, and what Redis does before it serves others, small.
_MOST_KEYS = 64


class BatchedGet:
    """Values by name; callers of the same turn share a command, and its failure."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._waiting: list[tuple[str, asyncio.Future[bytes | None]]] = []
        self._commands: set[asyncio.Task[None]] = set()

    async def get(self, name: str) -> bytes | None:
        """Raises StoreUnavailable."""
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[bytes | None] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._send)
        self._waiting.append((name, reply))
        return await reply

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), _MOST_KEYS):
            # detached: a caller that goes away must not cancel the command of the others
            command = asyncio.create_task(self._run(waiting[start : start + _MOST_KEYS]))
            self._commands.add(command)
            command.add_done_callback(self._commands.discard)

    async def _run(self, batch: "list[tuple[str, asyncio.Future[bytes | None]]]") -> None:
        names = [name for name, _ in batch]
        try:
            values = await self._store.call(lambda client: client.mget(names))
            if len(values) != len(names):
                raise StoreUnavailable(f"{self._store.name}: {len(names)} keys asked for, {len(values)} answered")
        except BaseException as error:  # whatever it is, nobody may be left waiting
            for _, reply in batch:
                if not reply.done():
                    reply.set_exception(StoreUnavailable(str(error)))
            if isinstance(error, StoreUnavailable):
                return
            raise
        for (_, reply), value in zip(batch, values, strict=True):
            if not reply.done():
                reply.set_result(value if isinstance(value, bytes) else None)
