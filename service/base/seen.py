"""What workers tell of single requests."""

from typing import Literal

import msgspec

# A query asked; one answered by the warehouse; one not found; a key; a key over its limit; who was refused with a 401.
SightingKind = Literal["query", "missed", "unknown", "key", "limited", "refused"]


class Sighting(msgspec.Struct, frozen=True, array_like=True):
    """How often one worker saw something since it last told of it: an estimate from a sample."""

    kind: SightingKind
    name: str  # a query, a key id, an address
    detail: str  # the partner of a key, why it was refused
    count: int


class LoggedRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the request log. It never holds a key: `key_id` names a key whose owner proved to have it."""

    time: str  # when it was answered, ISO 8601, UTC
    request_id: str
    status: int
    method: str
    path: str
    outcome: str  # the error's code, or how the answer came about
    milliseconds: float  # from its head to its answer
    pid: int  # of the worker
    area: str | None = None
    query: str | None = None  # canonical; as it was sent, if it was refused
    tier: str | None = None
    release: str | None = None
    key_id: str | None = None
    partner: str | None = None
    address: str | None = None  # of the connection's other end, which may be a balancer
    count: int = 1  # of requests alike, of which this is the last
    trace_id: str | None = None  # in hex; None if it is not traced
    test: bool | None = None  # True: a test key asked
    detail: str | None = None  # why a request could not be read, if that is known
