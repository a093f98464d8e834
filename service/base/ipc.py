"""Messages between a supervisor and its workers: lines of JSON over a socket pair.

When either end closes, the other process knows that its peer is gone.
"""

import asyncio
from typing import Literal, NamedTuple

import msgspec

from config.settings import Settings
from service.base.telemetry import Histogram, Snapshot

# Lines to a worker: report; empty the near cache; and, with an argument, find a request; set the share of logged
# requests.
REPORT, PURGE = b"report\n", b"purge\n"
FIND, SAMPLE = b"find ", b"sample "
# With a `Shared` as its argument.
SHARED = b"shared "
# A worker's reply before it serves.
STARTING = b"starting\n"
# A snapshot with every combination of labels is far smaller.
LINE_LIMIT_BYTES = 8 << 20
_LAME_DUCK_SECONDS = 1.0


# A query; one answered by the warehouse; one not found; a key; a key over its limit; an address that got a 401.
SampleKind = Literal["query", "missed", "unknown", "key", "limited", "refused"]


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """How often one worker saw a value since its last report: an estimate from a sample."""

    kind: SampleKind
    name: str  # a query, a key id, an address
    detail: str  # the partner of a key, or the reason for a refusal
    count: int


class PartnerSample(msgspec.Struct, array_like=True):
    """The requests of one partner: estimates from a sample, except for the last error."""

    partner: str
    statuses: dict[int, int] = {}
    cached: int = 0  # answers from a cache
    answers: int = 0  # of any tier but the previous release
    seconds: Histogram = msgspec.field(default_factory=Histogram.empty)
    quota: float | None = None  # share used, the largest of its keys and of the one they share; None: no quota
    rate: float | None = None  # requests a second that its fastest key, or all together, may send; None: no rate
    last_error: str = ""  # time, status and code
    keys: set[str] = set()

    def add(self, other: "PartnerSample") -> None:
        for status, count in other.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        self.cached += other.cached
        self.answers += other.answers
        self.seconds.add(other.seconds)
        self.quota = self.quota if other.quota is None else other.quota
        self.rate = self.rate if other.rate is None else other.rate
        self.last_error = max(self.last_error, other.last_error)


class AccessLogEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the request log. It never has a key: `key_id` is set only if the caller proved to own the key."""

    time: str  # when it was answered, ISO 8601, UTC
    request_id: str
    status: int
    method: str
    path: str
    outcome: str  # the error's code, or the source of the answer
    milliseconds: float  # from its head to its answer, in milliseconds
    pid: int  # of the worker
    area: str | None = None
    query: str | None = None  # canonical; as it was sent, if it was refused
    tier: str | None = None
    release: str | None = None
    key_id: str | None = None
    partner: str | None = None
    address: str | None = None  # of the connection's other end, which may be a balancer
    count: int = 1  # of similar requests, of which this is the last
    trace_id: str | None = None  # in hex; None if it is not traced
    test: bool | None = None  # True: with a test key
    detail: str | None = None  # why a request could not be read, if known


class Endpoints(msgspec.Struct, frozen=True):
    """URLs of both Redis, with `embedded` resolved to real addresses, and the pepper, for the life of an instance."""

    keys_url: str
    cache_url: str
    pepper: bytes


class Shared(msgspec.Struct, frozen=True):
    """State shared by all instances, as known to this one.

    `clock`: the offset of the key store's time of day from monotonic seconds; None while unknown.
    """

    workers: int
    clock: float | None = None


class Orders(msgspec.Struct, frozen=True):
    """The first line to a worker. Not an argument of the process, because it has secrets.

    `takes_over`: another worker serves meanwhile, so this one accepts no connection before it has opened a release.
    """

    settings: Settings
    endpoints: Endpoints
    log_json: bool
    takes_over: bool = False
    shared: Shared | None = None
    logged_share: float | None = None  # of requests, as set by operators; None: by the settings


class FoundRequests(msgspec.Struct, frozen=True):
    """The lines of a requested request in a worker's log."""

    request_id: str
    requests: list[AccessLogEntry]


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a worker, sent when the supervisor requests it and when the worker's release changes."""

    release: str | None  # None before the first
    release_problem: str | None  # for an operator
    published_at: float | None  # seconds since 1970
    illustrative: bool
    keys_up: bool
    cache_up: bool
    cache_away: tuple[str, ...] = ()  # unreachable parts of a cluster: nodes, and slots without one
    cache_refusal: str | None = None  # why the shared cache stores no answers
    push_connected: bool  # the key store pushes changes now
    can_verify: bool  # at least some partners' keys can be verified
    can_answer: bool = True  # look-ups work, or caches answer (http/lookups.py)
    keys_problem: str | None  # for an operator
    keys_went_back: str | None = None  # changes that this worker has seen and the key store lost
    revoked_lost: tuple[str, ...] = ()  # ids of keys that it saw revoked, and that are not revoked in the key store
    usage_problem: str | None
    usage_waits: int  # counted requests that the key store has not confirmed
    push_refused: bool = False  # the key store does not push changes, because of its rights or version
    near_bytes: int
    near_entries: int
    purges: int = 0  # how often the near cache was emptied as ordered
    hung: str | None = None  # a call that hangs on the data folder's file system: the worker cannot do all its work
    hung_seconds: float = 0.0
    connections: int = 0  # open connections of partners
    connections_limit: int = 0  # most connections served
    files_limit: int = 0  # of open files, if that is what bounds the connections
    waiting: int = 0  # look-ups that wait for the warehouse
    last_line: str | None = None  # the message of its last line in the log
    samples: list[Sample] = []  # since the last report
    partners: list[PartnerSample] = []  # since the last report
    found: FoundRequests | None = None  # in the first report after the request for it
    telemetry: Snapshot


class LameDuck(NamedTuple):
    """How long a stopping instance still accepts connections, in seconds: balancers need time to notice.

    A closing listener would reset the connections in its queue, so workers empty the queue first (Decision 21).
    """

    inviting: float  # new connections are accepted
    accepting: float  # new connections are refused; those in the queue are accepted

    @classmethod
    def within(cls, drain: float) -> "LameDuck":
        """Returns a lame-duck time of at most half of the `drain` time."""
        seconds = min(_LAME_DUCK_SECONDS, drain / 2)
        return cls(seconds * 3 / 4, seconds / 4)


async def read_line(reader: asyncio.StreamReader) -> bytes:
    """Returns the next line; empty if the other end closed, also with a report unread, which resets the connection."""
    try:
        return await reader.readline()
    except ConnectionError:
        return b""


def encode_message(message: Orders | WorkerReport) -> bytes:
    return msgspec.json.encode(message) + b"\n"


class KeptOrders(msgspec.Struct, frozen=True, kw_only=True):
    """The first line to a process that is neither supervisor nor worker."""

    task: Literal["inbox", "mirror"]  # watch the inbox, or mirror the store of releases
    settings: Settings
    log_json: bool
    instance: str  # the id of its instance
