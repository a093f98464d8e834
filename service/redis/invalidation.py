"""Pushed invalidations: Redis notifies us when a record under a prefix changes (client-side caching, RESP3).

A lost connection costs speed only: users re-check on their own (Decision 4).
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError, ResponseError

from service.base.tasks import end_task, hold_until_done, keep_running
from service.redis.connections import open_client
from service.redis.primary import Primary

log = logging.getLogger("forecast.redis")

# Without a push for this long, the connection is pinged.
_IDLE_SECONDS = 5.0
_RECONNECT_SECONDS = 0.5
_REFUSED_SECONDS = 60.0


class InvalidationListener:
    """Calls `invalidate` with each changed record's name, or with None when any record may have changed.

    One per worker, from its start to its stop. `connected`: pushes arrive now. `refused`: the server refuses tracking,
    and is tried again after a minute.
    """

    def __init__(
        self, primary: Primary, prefix: str, invalidate: Callable[[str | None], None], *, timeout: float
    ) -> None:
        self.connected = False
        self.refused = False
        self._primary = primary
        self._listening: AbstractConnection | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._prefix = prefix
        self._invalidate = invalidate
        self._timeout = timeout
        self._task: asyncio.Task[None] | None = None
        primary.follow(self._moved)

    def start(self) -> None:
        self._task = keep_running("listen for invalidations", self._listen_once)

    async def stop(self) -> None:
        await end_task(self._task)

    async def _listen_once(self) -> float:
        """Listens on one connection until it is lost; returns the seconds until the next try."""
        url = self._primary.url
        if url is None:
            return _RECONNECT_SECONDS
        client = open_client(url, timeout=self._timeout, protocol=3)
        connection = self._listening = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            await self._listen(connection)
        except ResponseError as error:
            log.log(
                logging.DEBUG if self.refused else logging.WARNING,
                "changes of keys are not pushed, so they take up to 5 s: the server refuses: %s",
                error,
            )
            self.refused = True
            return _REFUSED_SECONDS
        except (RedisError, OSError, TimeoutError, AssertionError) as error:
            log.debug("invalidation listener: %s", error)
        finally:
            self.connected, self._listening = False, None
            await connection.disconnect(nowait=True)
        return _RECONNECT_SECONDS

    def _moved(self, _: str | None) -> None:
        """Leaves the server; until the next one is connected, any push may be missed."""
        if self._listening is not None:
            hold_until_done(asyncio.create_task(self._listening.disconnect(nowait=True)), self._leaving)

    async def _listen(self, connection: AbstractConnection) -> None:
        await connection.connect()  # type: ignore[no-untyped-call]

        async def pushed(message: list[Any]) -> list[Any]:
            names = message[1]
            for name in [None] if names is None else names:
                # other records may have the prefix, too
                self._invalidate(name.decode("utf-8", "replace") if isinstance(name, bytes) else name)
            return message

        # private: redis-py has no public way to receive these on asyncio, so its version is pinned
        connection._parser.set_invalidation_push_handler(pushed)  # type: ignore[attr-defined]  # noqa: SLF001
        await connection.send_command("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", self._prefix)
        await connection.read_response()
        self.connected, self.refused = True, False
        self._invalidate(None)  # any record may have changed in between
        while True:
            message = await connection.read_response(timeout=_IDLE_SECONDS, push_request=True)
            if message is None:
                await self._ping(connection)

    async def _ping(self, connection: AbstractConnection) -> None:
        await connection.send_command("PING")
        while True:
            reply = await connection.read_response(timeout=self._timeout, push_request=True)
            if reply is None:
                raise TimeoutError("no reply to PING")
            if reply in (b"PONG", "PONG"):
                return
