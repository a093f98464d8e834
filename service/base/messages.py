"""What a supervisor and its workers tell each other: lines of JSON over a socket pair.

The socket is also the bond between them: whoever sees its end close knows that the other is gone.
"""

from typing import NamedTuple

import msgspec

from config.settings import Settings
from service.base.telemetry import Snapshot

# Lines to a worker: say how you are; empty your near cache.
REPORT, PURGE = b"report\n", b"purge\n"
# A snapshot with every combination of labels stays far below this.
LINE_LIMIT = 8 << 20
_LAME_DUCK_SECONDS = 1.0


class Endpoints(msgspec.Struct, frozen=True):
    """Where the two Redis are, `embedded` resolved to real addresses; `pepper` as obtained."""

    keys_url: str
    cache_url: str
    pepper: bytes


class Orders(msgspec.Struct, frozen=True):
    """First line to a worker. It travels here and not as arguments, because it holds secrets.

    `takes_over`: another worker serves, so this one is to serve nobody before it has opened a release.
    """

    settings: Settings
    endpoints: Endpoints
    log_json: bool
    takes_over: bool = False


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a worker; sent when asked for and when its release changes.

    `release` is None before the first. `release_problem` and `keys_problem` say what an operator must mend.
    `cache_refusal`: why the shared cache takes no answers. `push_refused`: the key store does not push changes, by its
    rights or its version. `can_verify`: at least some partners' keys can be told good from bad. `can_answer`: look-ups
    work, or caches answer (http/lookups.py). `usage_waits`: how many requests were counted and are not known to be in
    the key store. `near_bytes`, `near_entries`: what its near cache holds. `purges`: how often it has been emptied as
    ordered. `hung` says what hangs on the data folder's file system, by now for `hung_seconds`: this worker can no
    longer do all its work.
    """

    release: str | None
    release_problem: str | None
    published_at: float | None
    illustrative: bool
    keys_up: bool
    cache_up: bool
    cache_refusal: str | None = None
    push_connected: bool
    can_verify: bool
    can_answer: bool = True
    keys_problem: str | None
    usage_problem: str | None
    usage_waits: int
    push_refused: bool = False
    near_bytes: int
    near_entries: int
    purges: int = 0
    hung: str | None = None
    hung_seconds: float = 0.0
    telemetry: Snapshot


class LameDuck(NamedTuple):
    """How long an instance told to stop takes connections, in seconds: balancers need time to look away.

    First the supervisor lets them come, then workers accept those that have: a listener that closes resets them.
    """

    inviting: float
    accepting: float

    @classmethod
    def within(cls, drain: float) -> "LameDuck":
        """At most half of the `drain` time."""
        seconds = min(_LAME_DUCK_SECONDS, drain / 2)
        return cls(seconds * 3 / 4, seconds / 4)


def encode(message: Orders | WorkerReport) -> bytes:
    return msgspec.json.encode(message) + b"\n"
