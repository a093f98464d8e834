"""The overview of an instance: one `Overview` a second, the same for the page, `forecast status` and `top`.

Except for rankings and switches, every number is also a metric. Times are Unix seconds, durations seconds, sizes bytes,
rates per second, shares 0 to 1. None means "not known yet".
"""

from typing import Literal, get_args

import msgspec

Level = Literal["ok", "degraded", "unavailable"]
EventKind = Literal["release", "rollback", "purge", "key", "worker", "store", "inbox", "instance"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)


class NextStep(msgspec.Struct, frozen=True):
    """What to do about a problem."""

    runbook: str  # URL; relative to this listener's, unless FORECAST_RUNBOOK_URL is set
    command: str | None  # to begin with, on this installation; it only looks


class Reason(msgspec.Struct, frozen=True):
    """One problem of the instance."""

    text: str
    since: float
    kind: str = ""
    ended: float | None = None  # None: it lasts
    next: NextStep | None = None


class Verdict(msgspec.Struct, frozen=True):
    """The state of the instance, in one sentence. `reasons` is empty if all is well."""

    level: Level
    sentence: str
    since: float
    reasons: tuple[Reason, ...] = ()


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """The instance itself."""

    id: str  # random, new at each start
    host: str
    pid: int
    version: str
    started_at: float
    restarts: int  # workers that were replaced
    connections: int  # partners' open connections
    data_folder: str
    disk_free: int | None
    disk_size: int | None


class HitRate(msgspec.Struct, frozen=True, kw_only=True):
    """Answers (200 and 304) of one span, by the tier that gave them. docs/operate/watch.md defines the hit rate."""

    seconds: float  # length of the span; shorter than its name while the instance is young
    near: int
    shared: int
    warehouse: int
    previous: int  # answers of the release that stands in for the current one; neither hits nor misses
    not_found: int  # 404s of names that the release does not have; no tier looks them up
    rate: float | None  # (near + shared) / (near + shared + warehouse)


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of one span."""

    seconds: float
    requests: float  # a second
    errors: float  # 5xx, a second
    by_status: dict[str, float]  # a second, for each status that occurred
    p50: float | None
    p99: float | None
    p999: float | None


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """One release of the data folder; the current one comes first."""

    id: str
    published_at: float
    current: bool
    illustrative: bool = False


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """The last release switch while the instance ran."""

    at: float
    before: str
    after: str
    rate_before: float | None  # hit rate in up to 5 minutes before
    rate_after: float | None  # hit rate in up to 5 minutes after


class Ranked(msgspec.Struct, frozen=True):
    """One line of a ranking, estimated from a sample, in which the count is at least `count - error`."""

    name: str
    count: int
    error: int = 0
    detail: str = ""  # a partner's name, or why a key was refused


class Rankings(msgspec.Struct, frozen=True, kw_only=True):
    """The most frequent names of about the last hour, most frequent first."""

    seconds: float  # that the counts cover
    queries: tuple[Ranked, ...] = ()  # most frequent queries
    missed: tuple[Ranked, ...] = ()  # answered by the warehouse
    unknown: tuple[Ranked, ...] = ()  # not found: 404
    keys: tuple[Ranked, ...] = ()
    limited: tuple[Ranked, ...] = ()  # keys that got 429
    refused: tuple[Ranked, ...] = ()  # addresses or key ids that got 401


class Partner(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one partner in about the last hour: estimates from a sample, except for the last error."""

    name: str
    requests: int
    per_second: float  # lately, an average over about a minute
    statuses: dict[str, int]
    p50: float | None
    p99: float | None
    hit_rate: float | None
    quota_used: float | None  # share, of the key that used most; None: no quota
    rate: float | None  # requests a second of its fastest key; None: no limit
    last_error: str  # time, status and code


class StoreNode(msgspec.Struct, frozen=True, kw_only=True):
    """One primary of a cluster."""

    node: str  # host and port
    up: bool
    memory: int | None = None
    memory_limit: int | None = None  # None: unlimited, or unknown
    evicted: int | None = None  # since it started
    latency: float | None = None  # of the last check


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """One Redis. For a cluster: the sums over all nodes, and the latency of the slowest."""

    name: Literal["keys", "cache"]
    up: bool
    memory: int | None = None
    memory_limit: int | None = None  # None: unlimited, or unknown
    evicted: int | None = None  # since it started
    latency: float | None = None  # of the last check
    pushed: int | None = None  # key store only: workers to which revocations are pushed
    nodes: tuple[StoreNode, ...] = ()  # clusters only


class Warehouse(msgspec.Struct, frozen=True, kw_only=True):
    """DuckDB, over all workers."""

    waiting: int  # look-ups that wait
    queries: float  # a second, over the last minute
    p50: float | None
    p99: float | None


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """One worker."""

    pid: int
    state: Literal["starting", "serving", "hanging", "leaving"]
    release: str | None
    memory: int
    started_at: float
    requests: float  # a second, over the last minute
    p99: float | None
    connections: int
    near_entries: int
    near_bytes: int


class Inbox(msgspec.Struct, frozen=True, kw_only=True):
    """The inbox, and by how much the next drop is overdue."""

    watched: bool  # by this instance
    published: int
    refused: int
    waiting: int
    ignored: int = 0  # entries that cannot be drops; earlier versions do not report it
    held: int
    failing: int
    last_drop_at: float | None
    overdue: float  # 0: not overdue, or FORECAST_DROP_EVERY is unset


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """Active keys that expire soon; None while the key store is unreachable."""

    expire_within_7_days: int | None = None
    expire_within_30_days: int | None = None


class Event(msgspec.Struct, frozen=True):
    """An event of the instance, such as a release switch, a purge, or a change of a key, worker, store or inbox."""

    at: float
    kind: EventKind
    text: str


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the history."""

    at: float  # end of the step
    near: float  # answers a second
    shared: float
    warehouse: float
    not_found: float
    ok: float  # 200 and 304, a second
    refused: float  # 4xx, a second
    failed: float  # 5xx, a second
    p50: float | None
    p99: float | None
    p999: float | None
    times: tuple[int, ...] = ()  # requests by duration, in the buckets of metrics
    releases: dict[str, float] = {}  # hit rate of each release that answered
    connections: int = 0
    cache_bytes: int | None = None  # memory of the shared cache
    evictions: float | None = None  # of the shared cache, a second


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Points of one span, oldest first. Steps in which the instance did not run are absent."""

    step: float  # seconds
    points: tuple[Point, ...]


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """An instance at one moment."""

    at: float
    verdict: Verdict
    instance: Instance
    hit_rate_now: HitRate  # of the last minute
    hit_rate_hour: HitRate
    traffic_now: Traffic  # of the last minute
    traffic_hour: Traffic
    releases: tuple[Release, ...]
    switch: Switch | None
    rankings: Rankings
    partners: tuple[Partner, ...]  # the busiest, at most 100
    stores: tuple[Store, ...]
    warehouse: Warehouse
    workers: tuple[Worker, ...]
    inbox: Inbox
    keys: Keys
    events: tuple[Event, ...]  # newest first, at most 50
    latest: Point  # of the last second
