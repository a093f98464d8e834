"""What is remembered of connections and of request targets, so that a hot answer need not find it out again."""

from service.base.telemetry import REQUEST_SECONDS, REQUESTS, Telemetry
from service.edge.hot import heads
from service.http.reply import Kept
from service.keys.verifier import Verified
from service.quota.usage import Outcome, outcome_of


class Caller:
    """What a connection showed last, and was found to be good: most send the same again."""

    __slots__ = ("host", "known", "presented", "reader")

    def __init__(self, fields: heads.Fields) -> None:
        self.reader = heads.HeadReader(fields)
        self.presented: bytes | None = None
        self.known: Verified | None = None
        self.host: bytes | None = None


class Target:
    """A request target that was answered from what is kept, and where its answers are counted."""

    __slots__ = ("answered", "area", "digest", "key", "not_modified", "release", "seconds", "usage")

    def __init__(self, area: str, kept: Kept, telemetry: Telemetry) -> None:
        self.area = area
        self.key = kept.key
        self.digest = kept.key.digest
        self.release = kept.key.release
        self.usage: Outcome = outcome_of(200, kept.outcome) or "answered"
        self.answered = telemetry.counter(REQUESTS, area, "200", kept.outcome)
        self.not_modified = telemetry.counter(REQUESTS, area, "304", "not_modified")
        self.seconds = telemetry.histogram(REQUEST_SECONDS, area)
