"""Finds the primary of a URL: the server that the URL names, or the one that its Sentinels name.

Sentinels are queried each second, in the background. Their replies count only while a majority of those listed agrees:
a worker can be cut off from the others together with a former primary. After five seconds without agreement there is no
primary, and its stores are unreachable.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.server_lists import Node, ServerList, server_list
from config.urls import mask_url
from service.base.tasks import end_task, hold_until_done, keep_running, wait_until_set
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.errors import StoreUnavailable

log = logging.getLogger("forecast.redis")

# https://valkey.io/topics/sentinel/#sentinel-commands; the reply is a host and a port, or nil for an unknown service.
_ASK_FOR_PRIMARY = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME")
ROUND_SECONDS = 1.0
AWAY_AFTER_SECONDS = 5.0
# Timeout of one Sentinel's reply. A round takes no longer, and less if a majority agrees before.
_ANSWER_SECONDS = 0.5
# A server that keeps replying that it is not the primary causes new connections this often.
_DOUBT_SECONDS = 5.0

# Called with the plain URL of the primary when connections must be reopened; None: there is no primary now.
Moved = Callable[[str | None], None]


class UnknownServiceError(StoreUnavailable):
    """Sentinels replied, and none knows the service."""


class Primary:
    """One URL's primary, for all stores on it in one process. Its creator starts and stops it.

    `url` is plain; None while there is no primary. `agreed_at` (monotonic seconds) is when a majority of the Sentinels
    last named it, as of the query; for the URL of one server it is always now.
    """

    def __init__(self, url: str) -> None:
        self._listed = server_list(url)
        if self._listed is not None and self._listed.kind == "cluster":
            raise ValueError("a cluster has many primaries")
        self.given = url
        self._shown = mask_url(url)
        self.url: str | None = url if self._listed is None else None
        self.agreed_at = math.inf if self._listed is None else -math.inf
        self.problem = "" if self._listed is None else "its Sentinels were not queried yet"
        urls = [] if self._listed is None else map(self._listed.sentinel_url, self._listed.nodes)
        self._sentinels = [open_client(url, timeout=_ANSWER_SECONDS) for url in urls]
        self._queries: set[asyncio.Task[list[Node | None]]] = set()
        self._node: Node | None = None
        self._followers: list[Moved] = []
        self._doubted = asyncio.Event()
        self._doubted_at = -math.inf
        self._task: asyncio.Task[None] | None = None

    def follow(self, moved: Moved) -> None:
        self._followers.append(moved)

    async def find(self) -> None:
        """Queries once, for callers that do not `start` it. Raises StoreUnavailable if there is no majority."""
        if self._listed is not None:
            try:
                await self._query(self._listed)
            except StoreUnavailable as error:
                raise type(error)(f"{self._shown}: {error}") from None

    async def start(self) -> None:
        """Queries once, so that the first request finds a primary; then each second, if there are Sentinels."""
        listed = self._listed
        if listed is not None:
            await self._round(listed)
            self._task = keep_running(f"find the primary at {self._shown}", lambda: self._round_in_time(listed))

    async def stop(self) -> None:
        await end_task(self._task)
        for query in list(self._queries):  # queries to silent Sentinels
            await end_task(query)
        for sentinel in self._sentinels:
            await sentinel.aclose(close_connection_pool=True)

    def doubt(self) -> None:
        """Handles a server that is not the primary, or does not reply.

        Reopens all connections, so a name is resolved again, or Sentinels are queried early.
        """
        self._doubted.set()
        now = time.monotonic()
        if self._listed is None and now - self._doubted_at >= _DOUBT_SECONDS:
            self._doubted_at = now
            self._notify()

    async def _round_in_time(self, listed: ServerList) -> float:
        began = time.monotonic()
        await self._round(listed)
        self._doubted.clear()
        if not await wait_until_set(self._doubted, began + ROUND_SECONDS - time.monotonic()):
            return 0.0
        return max(0.0, began + _ANSWER_SECONDS - time.monotonic())  # doubts do not cause queries without a pause

    async def _round(self, listed: ServerList) -> None:
        try:
            await self._query(listed)
        except StoreUnavailable as error:
            self.problem = str(error)
            if self.url is not None and time.monotonic() - self.agreed_at >= AWAY_AFTER_SECONDS:
                log.warning("%s: %s", self._shown, error)
                self.url = None
                self._notify()

    async def _query(self, listed: ServerList) -> None:
        began = time.monotonic()
        node = await self._elected(listed)
        self.agreed_at, self.problem = began, ""
        if node != self._node or self.url is None:
            if self._node is not None:
                log.warning("%s: the primary is %s now", self._shown, node)
            self._node, self.url = node, listed.server_url(node)
            self._notify()

    async def _elected(self, listed: ServerList) -> Node:
        """Returns the node that a majority names, without waiting for the other Sentinels."""
        queries = [asyncio.create_task(_query_sentinel(sentinel, listed.service)) for sentinel in self._sentinels]
        votes: list[Node | None] = []
        for answer in asyncio.as_completed([hold_until_done(task, self._queries) for task in queries]):
            votes += await answer
            with suppress(StoreUnavailable):
                return _elected(listed, votes)
        return _elected(listed, votes)

    def _notify(self) -> None:
        for moved in self._followers:
            moved(self.url)


async def _query_sentinel(sentinel: Redis, service: str) -> list[Node | None]:
    """Returns its vote; none if it does not reply."""
    try:
        reply = await sentinel.execute_command(*_ASK_FOR_PRIMARY, service)  # type: ignore[no-untyped-call]
    except (RedisError, OSError):
        return []
    return [_vote_in(reply)]


def _elected(listed: ServerList, votes: Sequence[Node | None]) -> Node:
    """Returns the node that a majority of the listed Sentinels name. `votes` are those of the ones that replied.

    Raises:
        UnknownServiceError: if some replied, and none knows the service.
        StoreUnavailable: if there is no majority.
    """
    named = Counter(node for node in votes if node is not None)
    if votes and not named:
        raise UnknownServiceError(f"its Sentinels know no service `{listed.service}`")
    node, count = named.most_common(1)[0] if named else (None, 0)
    if node is None or 2 * count <= len(listed.nodes):
        most = f"{node} has {count}" if node else "none answers"
        raise StoreUnavailable(f"no majority of {len(listed.nodes)} Sentinels names a primary ({most})")
    return node


def _vote_in(reply: object) -> Node | None:
    """Returns the node that a Sentinel names; None if it does not know the service."""
    if not isinstance(reply, list) or len(reply) != len(Node._fields):
        return None
    try:
        return Node(reply[0].decode("ascii"), int(reply[1]))
    except (TypeError, ValueError, AttributeError):
        return None


@asynccontextmanager
async def found(url: str) -> AsyncIterator[Primary]:
    """Yields the primary of `url` as of now, for one piece of work.

    Raises StoreUnavailable if no majority names one.
    """
    primary = Primary(url)
    try:
        await primary.find()
        yield primary
    finally:
        await primary.stop()


@asynccontextmanager
async def found_store(name: str, url: str, seconds: float) -> AsyncIterator[RedisStore]:
    """Yields a store at the primary of `url`, for one piece of work. Raises as `found`.

    Each command takes at most about `seconds`.
    """
    async with found(url) as primary:
        store = open_store(name, primary, timeout=seconds)
        try:
            yield store
        finally:
            await store.stop()


def open_store(name: str, primary: Primary, *, timeout: float, retries: int = 0) -> RedisStore:
    """Returns a store at `primary`, even after a failover; not connected yet. `timeout`, in seconds, is for one try."""
    opened = partial(open_client, timeout=timeout, retries=retries)
    return RedisStore(name, primary.given, None if primary.url is None else opened(primary.url), primary, opened)
