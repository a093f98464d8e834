"""Look-ups at one node: GETs, pipelined on a connection of its own."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic

import msgspec
from redis.exceptions import RedisError, ResponseError

from config.once_per_turn import OncePerTurn
from service.base.tasks import end_task
from service.redis.client import WRONG_TYPE, RedisStore
from service.redis.errors import StoreUnavailable
from service.redis.pipelined import ErrorReply, NonsenseError, PipelinedConnection, open_pipelined

log = logging.getLogger("forecast.redis")

# A look-up waits for the replies under way, unless so many wait with it. A round trip costs more than its names.
_ENOUGH = 64
_MOST_UNDER_WAY = 512

# Called with the value, None if there is none, or the reason why it is unknown.
TellValue = Callable[["bytes | StoreUnavailable | None"], None]


class Lookup(msgspec.Struct, eq=False):
    """One name that somebody asks for, until `found` was called."""

    name: str  # in ASCII
    found: TellValue | None
    deadline: float  # monotonic seconds
    sent: float = 0.0  # likewise; the last time
    redirects: int = 0
    asking: bool = False  # the next reply is that to ASKING

    def tell(self, value: bytes | StoreUnavailable | None) -> None:
        found, self.found = self.found, None
        if found is not None:
            try:
                found(value)
            except Exception:  # a defect of one caller must not keep the others from being told
                log.exception("what was found could not be used")


class GetConnection(PipelinedConnection[Lookup]):
    """One connection of a NodeGets."""

    def __init__(self, transport: asyncio.WriteTransport, timeout: float, opener: object, owner: "NodeGets") -> None:
        super().__init__(transport, timeout, opener)
        self._owner = owner

    @property
    def under_way(self) -> int:
        return len(self._commands)

    def ask(self, lookups: list[Lookup]) -> None:
        """Asks for at least one name."""
        now = monotonic()
        words = []
        for lookup in lookups:
            lookup.sent = now
            name = lookup.name  # ASCII: as many bytes as characters
            if lookup.asking:
                words.append("*1\r\n$6\r\nASKING\r\n")
            words.append(f"*2\r\n$3\r\nGET\r\n${len(name)}\r\n{name}\r\n")
        commands = "".join(words).encode("ascii")
        self._begin()
        self._commands.extend(lookups)
        self._send(commands)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._owner.answered()

    def _read(self, reply: object) -> None:
        lookup = self._commands[0]
        if lookup.asking:  # if ASKING is refused, the node sends the look-up back
            lookup.asking = False
        elif reply is None or type(reply) is bytes:
            self._take().tell(reply)
        elif type(reply) is ErrorReply:
            self._owner.refused(self._take(), str(reply))
        else:
            raise NonsenseError.of(reply)

    def _lost(self, command: Lookup, reason: str) -> None:
        self._owner.lost(command, reason)


class NodeGets:
    """The look-ups at the node behind `store`, which live as long as it does.

    They wait for a connection to be opened; their owner tells them when their time is up. `redirected` says whether it
    sent on one that was answered with an error. `failed` is called when the node is slow or gone.
    """

    def __init__(
        self, store: RedisStore, redirected: Callable[[Lookup, str], bool], failed: Callable[[], object]
    ) -> None:
        self._store = store
        self._redirected = redirected
        self._failed = failed
        self._waiting: list[Lookup] = []
        self._turn = OncePerTurn(self._send)
        self._connection: GetConnection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._stopped = False

    def ask(self, lookup: Lookup) -> None:
        self._waiting.append(lookup)
        self._turn.soon()

    async def stop(self) -> None:
        self._stopped = True
        await end_task(self._opening)
        if self._connection is not None:
            self._connection.close()
        self._turn.soon()

    def answered(self) -> None:
        """Replies have arrived."""
        connection = self._connection
        if connection is not None and connection.is_open:
            self._store.succeeded()
        if self._waiting:
            self._send()

    def refused(self, lookup: Lookup, error: str) -> None:
        """The node answered with an error."""
        if error.startswith(WRONG_TYPE):
            lookup.tell(None)
        elif not self._redirected(lookup, error):
            lookup.tell(self._store.failed(ResponseError(error), answered=True))

    def lost(self, lookup: Lookup, reason: str) -> None:
        """A lost connection counts as one failure, however many look-ups were under way."""
        if self._connection is not None:
            self._connection = None
            self._note(ConnectionError(reason))
        lookup.tell(StoreUnavailable(f"{self._store.name}: {reason}"))

    def _send(self) -> None:
        if not self._waiting:
            return
        connection = self._connection
        if self._stopped or self._store.is_away:
            self._tell_all("stopped" if self._stopped else "away")
        elif connection is None or not connection.is_open:
            self._open()
        elif not connection.under_way or (len(self._waiting) >= _ENOUGH and connection.under_way < _MOST_UNDER_WAY):
            lookups = [lookup for lookup in self._waiting if lookup.found is not None]
            self._waiting = []
            if lookups:
                connection.ask(lookups)

    def _open(self) -> None:
        if self._opening is None:
            self._opening = asyncio.create_task(self._opened(), name=f"open a connection to {self._store.name}")

    async def _opened(self) -> None:
        try:
            self._connection = await self._store.connection(
                lambda client: open_pipelined(
                    client, lambda transport, timeout, opener: GetConnection(transport, timeout, opener, self)
                )
            )
        except (RedisError, OSError) as error:
            self._note(error)
            self._tell_all(str(error))
        finally:
            self._opening = None
        self._send()

    def _note(self, error: Exception) -> None:
        self._store.failed(error, answered=False)
        self._failed()

    def _tell_all(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, []
        for lookup in waiting:
            lookup.tell(StoreUnavailable(f"{self._store.name}: {reason}"))
