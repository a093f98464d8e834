"""One Redis with a budget: every call ends within it, and no call is made while Redis is away (Decision 7)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from redis import Redis as BlockingRedis
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, NoPermissionError, OutOfMemoryError, ReadOnlyError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry as BlockingRetry

from config.first_line import first_line
from config.urls import mask_url
from service.base.tasks import end_task, keep_running
from service.redis.breaker import CircuitBreaker
from service.redis.errors import Refusal, StoreRefused, StoreUnavailable

log = logging.getLogger("forecast.redis")

PROBE_SECONDS = 0.5
_MAX_CONNECTIONS = 256
# The library's message when every connection of the pool is in use.
_POOL_EXHAUSTED = "No connection available."
# How Redis' error begins where a record is not of the command's type.
WRONG_TYPE = "WRONGTYPE"

_REFUSALS: dict[Refusal, str] = {
    "full": "it is full (maxmemory), and refuses to store anything",
    "read_only": "it is a read-only replica, and refuses to store anything",
}

T = TypeVar("T")


def server_refusal(error: Exception) -> Refusal:
    """The kind of error that the server answered with."""
    if isinstance(error, OutOfMemoryError):
        return "full"
    return "read_only" if isinstance(error, ReadOnlyError) else "other"


def open_client(url: str, *, timeout: float, retries: int = 0, **options: Any) -> Redis:
    """A client whose tries each fail within about `timeout` seconds; with the library's defaults they take seconds.

    Raises:
        ValueError: if `url` is no Redis URL.
    """
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=_MAX_CONNECTIONS,
        timeout=timeout,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), retries),
        protocol=2,
        **options,
    )
    return Redis.from_pool(pool)


def open_blocking_client(url: str, timeout: float) -> BlockingRedis:
    """A client for commands, which wait for each reply: at most `timeout` seconds."""
    return BlockingRedis.from_url(
        url,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=BlockingRetry(NoBackoff(), 0),
        protocol=2,
    )


def raise_errors(replies: list[Any], but: tuple[str, ...] = (WRONG_TYPE,)) -> list[Any]:
    """The `replies` of a pipeline. Raises the first error among them whose message does not begin as one of `but`."""
    for reply in replies:
        if isinstance(reply, Exception) and not str(reply).startswith(but):
            raise reply
    return replies


class RedisStore:
    """A named Redis behind a circuit breaker. Whoever opens one stops it; a worker's live as long as the worker.

    `healthy` is False until the first answer, and while the store is away.
    """

    def __init__(self, name: str, url: str, client: Redis) -> None:
        self.name = name
        self.healthy = False
        self._where = mask_url(url)
        self._client = client
        self._breaker = CircuitBreaker(self._changed)
        self._probe: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Tries once, so that the first request finds an open connection; then probes the store while it is away."""
        await self._ping()
        self._probe = keep_running(f"probe {self.name}", self._look)

    async def stop(self) -> None:
        await end_task(self._probe)
        await self._client.aclose(close_connection_pool=True)

    async def call(self, command: Callable[[Redis], Awaitable[T]]) -> T:
        """The reply to `command`, which is never cancelled half-way: the connection would then mix up replies.

        Raises:
            StoreUnavailable: if the store is away, slow, or answers with an error.
        """
        if self._breaker.is_open:
            raise StoreUnavailable(f"{self.name} is away")
        return await self._attempt(command)

    async def _attempt(self, command: Callable[[Redis], Awaitable[T]]) -> T:
        try:
            reply = await command(self._client)
        except (RedisConnectionError, RedisTimeoutError, InvalidResponse, OSError) as error:
            # an empty pool says nothing about the store
            if str(error) == _POOL_EXHAUSTED:
                raise StoreUnavailable(f"{self.name}: {first_line(error)}") from None
            raise self.failed(error, answered=False) from None
        except RedisError as error:
            raise self.failed(error, answered=True) from None
        except StoreUnavailable:
            raise
        except Exception as error:  # the client documents no error for a reply that makes no sense
            log.debug("%s: a reply that makes no sense", self.name, exc_info=error)
            raise StoreUnavailable(f"{self.name}: a reply that makes no sense: {error!r}") from None
        self.succeeded()
        return reply

    @property
    def is_away(self) -> bool:
        """Whether the circuit is open, so that no call is made."""
        return self._breaker.is_open

    async def connection(self, made: Callable[[Redis], Awaitable[T]]) -> T:
        """What `made` makes of the client. The caller talks to Redis itself, and reports to `succeeded`, `failed`."""
        return await made(self._client)

    def succeeded(self) -> None:
        self.healthy = True
        self._breaker.success()

    def failed(self, error: Exception, *, answered: bool) -> StoreUnavailable:
        """Returns what to raise. `answered`: the store is there, but refuses (full, read-only, not permitted)."""
        if answered:
            self._breaker.success()
            return StoreRefused(f"{self.name}: {told(error)}", server_refusal(error))
        self.healthy = False
        was_open = self._breaker.is_open
        self._breaker.failure()
        if self._breaker.is_open and not was_open:
            log.warning("%s (%s) is away: %s", self.name, self._where, first_line(error))
        return StoreUnavailable(f"{self.name}: {first_line(error)}")

    def _changed(self, closed: bool) -> None:
        self.healthy = closed
        if closed:
            log.info("%s (%s) is back", self.name, self._where)

    async def _ping(self) -> None:
        try:
            await self._attempt(lambda client: client.ping())
        except StoreUnavailable as error:
            log.debug("probe failed: %s", error)

    async def _look(self) -> float:
        if self._breaker.is_open or not self.healthy:
            await self._ping()
        return PROBE_SECONDS


def told(error: Exception) -> str:
    """The words for operators of an error that the server answered with."""
    if isinstance(error, NoPermissionError):
        return f"{first_line(error)} (SECURITY.md lists the rights that its user needs)"
    return _REFUSALS.get(server_refusal(error)) or first_line(error)
