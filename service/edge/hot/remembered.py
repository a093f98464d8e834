"""What a worker remembers of connections and of request targets, so that a hot answer need not find it again."""

from sys import intern
from typing import get_args

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.base.telemetry import ANSWERS, DIRECT, REQUEST_SECONDS, REQUESTS, JointCount, Telemetry
from service.cache.key import CacheKey
from service.cache.read_through import Tier
from service.edge.admission.admission import Allowance
from service.edge.hot import heads
from service.edge.hot.wire import lines_kept
from service.http.reading import Failure, ReadError, Reading
from service.http.reply import Kept, KeptError
from service.keys.record import ApiKey
from service.keys.verdict import KeyVerdict, Rejected
from service.keys.verifier import Verified
from service.quota.batch import UsageOutcome
from service.quota.usage import Tally, outcome_of

# Of an error that a target has, beside its header lines and its body.
_ERROR_OVERHEAD_BYTES = 220


class FoundOut(msgspec.Struct):
    """What the direct way found out about the request with this `head`: the verdict on its key, what it means, what it
    was admitted with, how its look-up failed. None of this is done again."""

    head: bytes
    verdict: KeyVerdict | None = None
    read: Reading | ReadError | None = None
    allowance: Allowance | None = None
    failed: Failure | None = None


class Caller:
    """The host and key that a connection sent last, if both were good: most connections send the same again.

    Owned by its connection. `reader` reads its heads.
    """

    __slots__ = ("address", "arrived_at", "closes", "found_out", "host", "known", "presented", "reader", "wrong")

    def __init__(self, reader: heads.HeadReader, address: str | None) -> None:
        self.address = address  # of the other end
        self.reader = reader
        self.presented: bytes | None = None  # the key as it was sent
        self.known: Verified | None = None  # the same key, verified
        self.host: bytes | None = None
        self.wrong: Rejected | None = None  # what is known of the key that was looked at last, if it is not good
        self.found_out: FoundOut | None = None  # about a request that goes to the checks
        self.closes = False  # its last request wants no other after it
        self.arrived_at = 0.0  # when the request that waits did, in monotonic seconds


class Place:
    """Where requests are counted: a path in an area. `line`: the request line that all have in common, or empty."""

    __slots__ = ("area", "line", "path")

    def __init__(self, path: bytes, area: str, line: bytes = b"") -> None:
        self.path = intern(path.decode("latin-1"))  # there are few
        self.area = area
        self.line = line


class TargetCounts:
    """What the answers of targets count in that are of one release and area, and whose 200s have one outcome: `whole`,
    by tier, and 304s by themselves. `usage` is what a 200 counts as for its key."""

    __slots__ = ("_tiers", "_unchanged", "near", "near_304", "usage", "whole")

    def __init__(self, release: str, area: str, outcome: str, telemetry: Telemetry) -> None:
        def joint(tier: Tier, status: str, outcome: str) -> JointCount:
            return telemetry.joint(
                (REQUEST_SECONDS, (area,)),
                (REQUESTS, (area, status, outcome)),
                (ANSWERS, (area, tier, release, DIRECT)),
            )

        tiers = get_args(Tier)
        self.whole: dict[Tier, JointCount] = {tier: joint(tier, "200", outcome) for tier in tiers}
        unchanged = {tier: joint(tier, "304", "not_modified") for tier in tiers}
        self.near, self.near_304 = self.whole["near"], unchanged["near"]
        self._unchanged = {self.whole[tier]: unchanged[tier] for tier in tiers}
        self._tiers: dict[JointCount, Tier] = {one[tier]: tier for tier in tiers for one in (self.whole, unchanged)}
        self.usage: UsageOutcome = outcome_of(200, outcome) or "answered"

    def unchanged(self, counted: JointCount) -> JointCount:
        """What a 304 counts in, of a 200's."""
        return self._unchanged[counted]

    def tier_of(self, counted: JointCount) -> Tier:
        return self._tiers[counted]


class Target(Place):
    """A request target whose answer is a kept entry. `Targets` owns it, until it is evicted."""

    __slots__ = ("counts", "digest", "query", "release")

    def __init__(self, line: bytes, area: str, kept: Kept, query: str, counts: TargetCounts) -> None:
        self._place(line, query, area)
        self.digest = kept.key.digest
        self.release = kept.key.release
        self.counts = counts

    @property
    def key(self) -> CacheKey:
        return CacheKey(self.digest, self.release)

    def _place(self, line: bytes, query: str, area: str) -> None:
        super().__init__(line.split(b" ")[1].partition(b"?")[0], area, line)
        self.query = query


class KnownError:
    """An error that is told again, without the id of a request, and what it counts in."""

    __slots__ = ("_fields", "before", "begin", "behind", "counted", "fields", "id_length", "outcome", "size", "status",
                 "usage")  # fmt: skip

    def __init__(self, kept: KeptError, area: str, telemetry: Telemetry) -> None:
        self.status, self.outcome = kept.status, kept.code
        self.begin = STATUS_LINE[kept.status]
        self._fields = lines_kept(kept.headers)
        self.before, self.behind = kept.before, kept.behind
        self.size = len(kept.before) + len(kept.behind)  # of its body, in bytes, without the id
        self.usage: UsageOutcome = outcome_of(kept.status, kept.code) or "rejected"
        self.counted = telemetry.joint((REQUEST_SECONDS, (area,)), (REQUESTS, (area, str(kept.status), kept.code)))
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
        self._place(line, query, area)
        self.digest = b""
        self.release = kept.release
        self.error = KnownError(kept, area, telemetry)
        # bytes, beside what a target has
        self.size = _ERROR_OVERHEAD_BYTES + len(self.error.fields) + self.error.size


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
