"""One Redis with a budget: every call ends within it, and no call is made while Redis is unreachable (Decision 7)."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import (
    InvalidResponse,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import TimeoutError as RedisTimeoutError

from config.text import first_line
from config.urls import mask_url
from service.base.tasks import end_task, keep_running, wait_until_set
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.kind import server_kind_of
from service.redis.line import Line
from service.redis.name_store import NameCommand, gathered
from service.redis.pipelined import Call, PipelinedConnection, Read, Words, anything, call_of, open_pipelined
from service.redis.refusals import describe_refusal, says_not_primary, server_refusal

if TYPE_CHECKING:
    from service.redis.primary import Primary

log = logging.getLogger("forecast.redis")

PROBE_SECONDS = 0.5
# Failures in a row after which no call is made until a probe succeeds: one can be a lost packet, three are an outage.
FAILURES_TO_OPEN = 3
# While a store is healthy, its server is asked for its role at each second probe.
_LOOKS_BETWEEN_ROLES = 2
# The library's message when every connection of the pool is in use.
_POOL_EXHAUSTED = "No connection available."
T = TypeVar("T")


class _DemotedError(RedisConnectionError):
    """The server is a replica."""


class RedisStore:
    """A named Redis behind a circuit breaker. Its opener stops it; a worker's live as long as the worker.

    `healthy` is False until the first reply, and while the store is unreachable. `is_unreachable`: the circuit is open,
    so no call is made. `lost_at` is when a call or a connection last failed, in monotonic seconds: an idle store
    notices an outage, too. `place` has the store's URL, and `open` makes a client for it; without them, the store
    always uses `client`.
    """

    def __init__(
        self,
        name: str,
        url: str,
        client: Redis | None,
        place: "Primary | None" = None,
        open: Callable[[str], Redis] | None = None,  # noqa: A002 - what it does
    ) -> None:
        self.name = name
        self.healthy = False
        self.is_unreachable = client is None
        self.lost_at = -math.inf
        self._where = mask_url(url)
        self._client = client
        self._place = place
        self._open = open
        self._left: list[Redis] = []  # clients whose last calls may be under way
        self.line = Line(self)
        self._failures = 0  # in a row
        self._probe: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()  # since the last check
        self._looks = 0
        self._looked_left = 0
        if place is not None:
            place.follow(self._move)

    async def start(self) -> None:
        """Tries once, so that the first request finds an open connection; then probes the store while it is
        unreachable.
        """
        await self._ping()
        self._probe = keep_running(f"probe {self.name}", self._check)

    async def stop(self) -> None:
        await end_task(self._probe)
        await self.line.stop()
        for client in (*self._left, *([] if self._client is None else [self._client])):
            await client.aclose(close_connection_pool=True)

    async def call(self, command: Callable[[Redis], Awaitable[T]]) -> T:
        """Returns the reply to `command`, which is never cancelled half-way: the connection would then mix up replies.

        Raises:
            StoreUnavailable: if the store is unreachable or slow, or replies with an error.
        """
        if self.is_unreachable:
            raise StoreUnavailable(f"{self.name} is unreachable")
        return await self._attempt(command)

    async def _attempt(self, command: Callable[[Redis], Awaitable[T]]) -> T:
        client = self._client
        if client is None:
            raise StoreUnavailable(f"{self.name}: {self._place.problem if self._place else 'its address is unknown'}")
        try:
            reply = await command(client)
        except (RedisConnectionError, RedisTimeoutError, InvalidResponse, OSError) as error:
            # neither an empty pool nor a failure at the store's former place counts against the store
            if str(error) == _POOL_EXHAUSTED or client is not self._client:
                raise StoreUnavailable(f"{self.name}: {first_line(error)}") from None
            raise self.explain(error) from None
        except StoreUnavailable:
            raise
        except Exception as error:
            raise self.explain(error) from None
        if client is self._client:
            self.succeeded()
        return reply

    @property
    def agreed_at(self) -> float:
        """When the server was last confirmed (monotonic seconds): replies received later are no newer."""
        return math.inf if self._place is None else self._place.agreed_at

    @property
    def unreachable_parts(self) -> tuple[str, ...]:
        """Unreachable parts of a cluster. One server has no parts."""
        return ()

    @property
    def servers(self) -> "Sequence[RedisStore]":
        return (self,)

    def server_of(self, name: str) -> str:  # noqa: ARG002 - as in a cluster
        """Returns what the server of `name` is called."""
        return self.name

    def one_for_each_server(self, name: str) -> Sequence[str]:
        """Returns names that begin with `name`, one for each server."""
        return (name,)

    def send(
        self, name: str, words: Words, read: Read[T], learn: Callable[[Call], None] | None = None
    ) -> asyncio.Future[T]:
        """Sends a command about `name`, with the others of this turn; returns a future of its parsed reply.

        A cancelled caller does not cancel the command. Needs a running loop. The future raises StoreRefused for an
        error reply, StoreUnavailable if there is none.
        """
        call = call_of(name, words, read, learn)
        self.line.send(call)
        return call.answer

    async def pipelined(self, commands: Sequence[NameCommand]) -> list[Any]:
        """Returns the reply to each command, or the exception that `send` would raise, as `gathered` does."""
        return await gathered(self.send(command.name, command.words, anything) for command in commands)

    async def unlink(self, names: Sequence[bytes]) -> int:
        """Removes `names`. Returns how many there were. Raises StoreUnavailable."""
        return await self.call(lambda client: client.unlink(*names))

    async def scan(self, pattern: str, step: int) -> AsyncIterator[list[bytes]]:
        """Yields the names that match `pattern`, in no order, some perhaps twice; each step visits about `step` names,
        so that the server serves other clients in between. Raises StoreUnavailable."""
        cursor = 0
        while True:
            cursor, names = await self.call(
                lambda client, at=cursor: client.scan(at, match=pattern, count=step)  # type: ignore[misc]
            )
            yield names
            if not cursor:
                return

    async def connect(self) -> PipelinedConnection:
        """Opens a connection for the line. Raises RedisError, OSError."""
        if self._client is None:
            raise RedisConnectionError("there is no primary")
        return await open_pipelined(self._client, self.line)

    def redirected(self, call: Call, error: str) -> bool:  # noqa: ARG002 - as a node of a cluster
        """Returns whether a call with this error reply was redirected to another server."""
        return False

    def succeeded(self) -> None:
        self.healthy = True
        self._close_circuit()

    def _close_circuit(self) -> None:
        self._failures = 0
        if self.is_unreachable:
            self.healthy, self.is_unreachable, self.lost_at = True, False, time.monotonic()
            log.info("%s (%s) is reachable again", self.name, self._where)

    def explain(self, error: Exception) -> StoreUnavailable:
        """Returns the exception for an error of the client library."""
        if isinstance(error, RedisConnectionError | RedisTimeoutError | InvalidResponse | OSError):
            return self.failed(error, answered=False)
        if isinstance(error, RedisError):
            return self.failed(error, answered=True)
        # the library documents no error for an unexpected reply
        log.debug("%s: unexpected reply", self.name, exc_info=error)
        return StoreUnavailable(f"{self.name}: unexpected reply: {error!r}")

    def failed(self, error: Exception, *, answered: bool) -> StoreUnavailable:
        """Returns the exception. `answered`: the store replied, but refused (full, read-only, not permitted)."""
        if answered:
            if isinstance(error, ReadOnlyError):
                self._demoted(error)
            else:
                self._close_circuit()
                if says_not_primary(error) and self._place is not None:
                    self._place.doubt()
            text = describe_refusal(error)
            return StoreRefused(f"{self.name}: {text}", server_refusal(error), text)
        self.healthy, self.lost_at = False, time.monotonic()
        if isinstance(error, _DemotedError):
            self._demoted(error)
            return StoreUnavailable(f"{self.name}: {error}")
        self._failures += 1
        if self._failures >= FAILURES_TO_OPEN and not self.is_unreachable:
            self.is_unreachable = True
            log.warning("%s (%s) is unreachable: %s", self.name, self._where, first_line(error))
        if self.is_unreachable and self._place is not None:
            self._place.doubt()
        return StoreUnavailable(f"{self.name}: {first_line(error)}")

    def _demoted(self, error: Exception) -> None:
        """Makes no more calls here until a probe finds a primary: a replica may be far behind, and rejects writes."""
        if not self.is_unreachable:
            log.warning("%s (%s) is connected to no primary: %s", self.name, self._where, first_line(error))
        self._open_circuit()
        if self._place is not None:
            client = self._client
            self._place.doubt()
            if self._client is client:
                self._reconnect(self._place.url)

    def _move(self, url: str | None) -> None:
        self._reconnect(url)
        self._moved.set()

    def _reconnect(self, url: str | None) -> None:
        """Leaves all connections; new ones go to `url`. None: the store has no place now, so it is unreachable."""
        if self._client is not None and self._open is not None:
            self._left.append(self._client)
        if self._open is not None:
            self._client = None if url is None else self._open(url)
        if self._client is None:
            self._open_circuit()
        self.line.leave()

    def _open_circuit(self) -> None:
        """Opens it at once: the failure cannot be a single lost packet."""
        self.healthy, self.is_unreachable, self.lost_at = False, True, time.monotonic()

    async def _leave(self) -> None:
        """Closes connections that were left before the last check: their calls have had time to end."""
        for client in self._left[: self._looked_left]:
            await client.aclose(close_connection_pool=True)
        del self._left[: self._looked_left]
        self._looked_left = len(self._left)

    async def _ping(self) -> None:
        try:
            await self._attempt(_find_primary)
        except StoreUnavailable as error:
            log.debug("probe failed: %s", error)

    async def _check(self) -> float:
        """Probes the store while it is unreachable; otherwise checks now and then that it is still the primary.

        A new place is checked at once.
        """
        await wait_until_set(self._moved, PROBE_SECONDS)
        self._moved.clear()
        self._looks += 1
        await self._leave()
        if self.is_unreachable or not self.healthy:
            await self._ping()
        elif self._client is not None and not self._looks % _LOOKS_BETWEEN_ROLES:
            await self._check_role(self._client)
        return 0.0

    async def _check_role(self, client: Redis) -> None:
        """Checks that a healthy server is still the primary. Other failures are left to requests."""
        try:
            await _find_primary(client)
        except _DemotedError as error:
            if client is self._client:
                self._demoted(error)
        except Exception as error:  # as in `_attempt`
            self.lost_at = time.monotonic()
            log.debug("%s: its role is unknown: %s", self.name, error)


async def _find_primary(client: Redis) -> None:
    """Raises _DemotedError if a replica replies. Users without the right to HELLO skip this check."""
    await client.ping()
    try:
        kind = server_kind_of(await client.execute_command("HELLO"))  # type: ignore[no-untyped-call]
    except ResponseError:
        return
    if kind is not None and kind.role == "replica":
        raise _DemotedError("it is a replica")
