"""What a worker remembers of connections and of request targets, so that a hot answer need not find it again."""

from sys import intern

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.base.telemetry import ANSWERS, DIRECT, REQUEST_SECONDS, REQUESTS, Telemetry
from service.edge.hot import heads
from service.edge.hot.wire import lines_kept
from service.http.reply import Kept, KeptError
from service.keys.record import ApiKey
from service.keys.verdict import KeyVerdict, Rejected
from service.keys.verifier import Verified
from service.quota.batch import UsageOutcome
from service.quota.usage import Tally, outcome_of


class Caller:
    """The host and key that a connection sent last, if both were good: most connections send the same again.

    Owned by its connection. `reader` reads its heads.
    """

    __slots__ = ("address", "arrived_at", "closes", "host", "known", "presented", "reader", "verdict", "wrong")

    def __init__(self, reader: heads.HeadReader, address: str | None) -> None:
        self.address = address  # of the other end
        self.reader = reader
        self.presented: bytes | None = None  # the key as it was sent
        self.known: Verified | None = None  # the same key, verified
        self.host: bytes | None = None
        self.wrong: Rejected | None = None  # what is known of the key that was looked at last, if it is not good
        self.verdict: KeyVerdict | None = None  # on the key of a request that goes to the checks, if it was looked up
        self.closes = False  # its last request wants no other after it
        self.arrived_at = 0.0  # when the request that waits did, in monotonic seconds


class Place:
    """Where requests are counted: a path in an area. `line`: the request line that all have in common, or empty."""

    __slots__ = ("area", "line", "path", "seconds")

    def __init__(self, path: bytes, area: str, telemetry: Telemetry, line: bytes = b"") -> None:
        self.path = intern(path.decode("latin-1"))  # there are few
        self.area = area
        self.line = line
        self.seconds = telemetry.histogram(REQUEST_SECONDS, area)


class Target(Place):
    """A request target that the router path answered from a kept entry, and the counters of its answers.

    `HotAnswers` owns it, until it is evicted.
    """

    __slots__ = (
        "answered",
        "digest",
        "from_near",
        "from_shared",
        "key",
        "not_modified",
        "query",
        "release",
        "usage",
    )

    def __init__(self, line: bytes, area: str, kept: Kept, query: str, telemetry: Telemetry) -> None:
        self._place(line, query, area, telemetry)
        self.key = kept.key
        self.digest = kept.key.digest
        self.release = kept.key.release
        self.from_near = telemetry.counter(ANSWERS, area, "near", self.release, DIRECT)
        self.from_shared = telemetry.counter(ANSWERS, area, "shared", self.release, DIRECT)
        # what a 200 counts as, in usage and in metrics
        self.usage: UsageOutcome = outcome_of(200, kept.outcome) or "answered"
        self.answered = telemetry.counter(REQUESTS, area, "200", kept.outcome)
        self.not_modified = telemetry.counter(REQUESTS, area, "304", "not_modified")

    def _place(self, line: bytes, query: str, area: str, telemetry: Telemetry) -> None:
        super().__init__(line.split(b" ")[1].partition(b"?")[0], area, telemetry, line)
        self.query = query


class KnownError:
    """An error that is told again, without the id of a request, and its counter."""

    __slots__ = ("_fields", "answered", "before", "begin", "behind", "fields", "id_length", "outcome", "size", "status",
                 "usage")  # fmt: skip

    def __init__(self, kept: KeptError, area: str, telemetry: Telemetry) -> None:
        self.status, self.outcome = kept.status, kept.code
        self.begin = STATUS_LINE[kept.status]
        self._fields = lines_kept(kept.headers)
        self.before, self.behind = kept.before, kept.behind
        self.size = len(kept.before) + len(kept.behind)  # of its body, in bytes, without the id
        self.usage: UsageOutcome = outcome_of(kept.status, kept.code) or "rejected"
        self.answered = telemetry.counter(REQUESTS, area, str(kept.status), kept.code)
        self.fields_with(0)

    def fields_with(self, id_length: int) -> bytes:
        """Its header lines, up to the value of the request's id, which is so long. They are in `fields` from now on."""
        self.id_length = id_length
        self.fields = b"%bcontent-length: %d\r\nx-request-id: " % (self._fields, self.size + id_length)
        return self.fields


class ErrorTarget(Target):
    """A request target that the router path answered with an error, which is the same until the next release.

    No entry has its digest, so that who looks for a hot answer finds none.
    """

    __slots__ = ("error", "size")

    def __init__(self, line: bytes, area: str, kept: KeptError, query: str, telemetry: Telemetry) -> None:
        self._place(line, query, area, telemetry)
        self.digest = b""
        self.release = kept.release
        self.error = KnownError(kept, area, telemetry)
        self.size = len(self.error.fields) + self.error.size  # bytes, beside what a target has


class Denial:
    """What a key is refused with in an area, whatever it asks for there: `error`, for this record of the key, and until
    then, in monotonic seconds. `tally` counts whom it is told, until `counts_until`, or until it is closed."""

    __slots__ = ("counts_until", "error", "key", "tally", "until")

    def __init__(self, error: KnownError, key: ApiKey, until: float) -> None:
        self.error = error
        self.key = key
        self.until = until
        self.tally: Tally | None = None
        self.counts_until = 0.0
