"""Where the primary is that a URL leads to: the server that the URL names, or the one that its Sentinels do.

Sentinels are asked each second, beside requests. What they say counts only while a majority of those listed agrees:
a worker can be cut off from the others together with a primary that is none any more. After five seconds without
agreement there is no primary, and its stores are away.
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.server_lists import Node, ServerList, server_list
from config.urls import mask_url
from service.base.tasks import end_task, hold_until_done, keep_running
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.errors import StoreUnavailable
from service.redis.sentinels import ASK_FOR_PRIMARY, Vote, elected

log = logging.getLogger("forecast.redis")

ROUND_SECONDS = 1.0
AWAY_AFTER_SECONDS = 5.0
# One Sentinel's answer. A round takes no longer, and less if a majority agrees before.
_ANSWER_SECONDS = 0.5
# A server that says again and again that it is not the primary costs new connections this often.
_DOUBT_SECONDS = 5.0

# Told the plain URL of the primary when its connections must be made again; None: there is none now.
Moved = Callable[[str | None], None]


class Primary:
    """One URL's primary, for all stores on it in one process. Its maker starts and stops it.

    `url` is plain; None while there is no primary. `agreed_at` (monotonic seconds) is when a majority of the Sentinels
    last named it, as of when they were asked; for the URL of one server there is no such moment, so it never passes.
    """

    def __init__(self, url: str) -> None:
        self._listed = server_list(url)
        if self._listed is not None and self._listed.kind == "cluster":
            raise ValueError("a cluster has many primaries")
        self.given = url
        self._shown = mask_url(url)
        self.url: str | None = url if self._listed is None else None
        self.agreed_at = math.inf if self._listed is None else -math.inf
        self.problem = "" if self._listed is None else "its Sentinels were not asked yet"
        self._sentinels = [] if self._listed is None else _clients(self._listed)
        self._asking: set[asyncio.Task[Vote | None]] = set()
        self._node: Node | None = None
        self._followers: list[Moved] = []
        self._asked_again = asyncio.Event()
        self._doubted_at = -math.inf
        self._task: asyncio.Task[None] | None = None

    def follow(self, moved: Moved) -> None:
        self._followers.append(moved)

    async def find(self) -> None:
        """Asks once, for callers that do not `start` it. Raises StoreUnavailable if there is no majority."""
        if self._listed is not None:
            try:
                await self._ask(self._listed)
            except StoreUnavailable as error:
                raise StoreUnavailable(f"{self._shown}: {error}") from None

    async def start(self) -> None:
        """Asks once, so that the first request finds a primary; then each second, if there are Sentinels to ask."""
        listed = self._listed
        if listed is not None:
            await self._round(listed)
            self._task = keep_running(f"find the primary at {self._shown}", lambda: self._round_in_time(listed))

    async def stop(self) -> None:
        await end_task(self._task)
        for asking in list(self._asking):  # Sentinels that are silent
            await end_task(asking)
        for sentinel in self._sentinels:
            await sentinel.aclose(close_connection_pool=True)

    def doubt(self) -> None:
        """The server said that it is not the primary, or says nothing. All connections are made again, so a name is
        resolved again, or Sentinels are asked before their time."""
        self._asked_again.set()
        now = time.monotonic()
        if self._listed is None and now - self._doubted_at >= _DOUBT_SECONDS:
            self._doubted_at = now
            self._tell()

    async def _round_in_time(self, listed: ServerList) -> float:
        began = time.monotonic()
        await self._round(listed)
        self._asked_again.clear()
        try:
            await asyncio.wait_for(self._asked_again.wait(), began + ROUND_SECONDS - time.monotonic())
        except TimeoutError:
            return 0.0
        return max(0.0, began + _ANSWER_SECONDS - time.monotonic())  # doubts do not make it ask without a pause

    async def _round(self, listed: ServerList) -> None:
        try:
            await self._ask(listed)
        except StoreUnavailable as error:
            self.problem = str(error)
            if self.url is not None and time.monotonic() - self.agreed_at >= AWAY_AFTER_SECONDS:
                log.warning("%s: %s", self._shown, error)
                self.url = None
                self._tell()

    async def _ask(self, listed: ServerList) -> None:
        began = time.monotonic()
        node = await self._elected(listed)
        self.agreed_at, self.problem = began, ""
        if node != self._node or self.url is None:
            if self._node is not None:
                log.warning("%s: the primary is %s now", self._shown, node)
            self._node, self.url = node, listed.server_url(node)
            self._tell()

    async def _elected(self, listed: ServerList) -> Node:
        """Whom a majority names. Who is silent is not waited for once it does."""
        asking = [asyncio.create_task(_ask_one(sentinel, listed.service)) for sentinel in self._sentinels]
        votes: list[Vote | None] = []
        for answer in asyncio.as_completed([hold_until_done(task, self._asking) for task in asking]):
            votes.append(await answer)
            with suppress(StoreUnavailable):
                return elected(listed, votes)
        return elected(listed, votes)

    def _tell(self) -> None:
        for moved in self._followers:
            moved(self.url)


def _clients(listed: ServerList) -> list[Redis]:
    return [open_client(listed.sentinel_url(sentinel), timeout=_ANSWER_SECONDS) for sentinel in listed.nodes]


async def _ask_one(sentinel: Redis, service: str) -> Vote | None:
    try:
        reply = await sentinel.execute_command(*ASK_FOR_PRIMARY, service)  # type: ignore[no-untyped-call]
    except (RedisError, OSError):
        return None
    return Vote(reply)


@asynccontextmanager
async def found(url: str) -> AsyncIterator[Primary]:
    """The primary of `url` as of now, for one piece of work. Raises StoreUnavailable if no majority names one."""
    primary = Primary(url)
    try:
        await primary.find()
        yield primary
    finally:
        await primary.stop()


def open_store(name: str, primary: Primary, *, timeout: float, retries: int = 0) -> RedisStore:
    """A store at `primary`, wherever that moves; not connected yet. `timeout`, in seconds, is for one try."""

    def opened(url: str) -> Redis:
        return open_client(url, timeout=timeout, retries=retries)

    return RedisStore(name, primary.given, None if primary.url is None else opened(primary.url), primary, opened)
