"""Records the steps of a traced request, with their times, while it is answered. Independent of OpenTelemetry.

Few requests are traced. For all others, a step costs one read of a context variable.
"""

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import NamedTuple, Protocol

from service.base.ipc import AccessLogEntry

# A package of the extra `traces`.
_EXPORTER = "opentelemetry-exporter-otlp-proto-http"
# W3C Trace Context: version, trace id, parent id, flags, and additions of later versions.
_TRACEPARENT = re.compile(rb"([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1
# A request has some ten; even after an error, a trace must not fill the memory.
MOST_STEPS = 100

# The attribute of a step with its outcome.
STEP_OUTCOME = "forecast.outcome"

Attributes = Mapping[str, str | int]


class CallerContext(NamedTuple):
    """A caller's `traceparent`: ids in hex, and whether the caller records its trace."""

    trace_id: str
    span_id: str
    sampled: bool


def caller_context(traceparents: Sequence[bytes]) -> CallerContext | None:
    """Returns the context in these `traceparent` headers. None if there is not exactly one that is well-formed."""
    found = _TRACEPARENT.fullmatch(traceparents[0].strip(b" \t")) if len(traceparents) == 1 else None
    if found is None or found[1] == b"ff" or (found[1] == b"00" and found[5]):
        return None
    return CallerContext(found[2].decode(), found[3].decode(), bool(int(found[4], 16) & _SAMPLED))


class Step:
    """A part of a traced request, and of the step `parent`. Times are monotonic seconds; it lasts as long as `with`.

    `remote`: another process did the work.
    """

    __slots__ = ("_token", "attributes", "began", "ended", "error", "name", "parent", "remote", "trace")

    def __init__(
        self, trace: "Trace", parent: "Step | None", name: str, began: float, attributes: Attributes, *, remote: bool
    ) -> None:
        self.trace = trace
        self.parent = parent
        self.name = name
        self.began = began
        self.ended: float | None = None
        self.attributes = dict(attributes)
        self.remote = remote
        self.error: str | None = None  # the class of the exception that ended it
        self._token: Token[Step | None] | None = None

    def set(self, name: str, value: str | int) -> None:
        self.attributes[name] = value

    def __enter__(self) -> "Step":
        self._token = _current.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if self._token is not None:
            _current.reset(self._token)
        self.ended = time.monotonic()
        self.error = kind.__name__ if kind is not None else None


class _Untraced:
    """The step of a request that is not traced."""

    def set(self, name: str, value: str | int) -> None:
        """Does nothing."""

    def __enter__(self) -> "_Untraced":
        return self

    def __exit__(self, *_: object) -> None:
        """Records nothing."""


class Trace:
    """The steps of one traced request. A step that ends after the request was recorded is lost.

    Its trace id is the caller's, if there is a `caller`. `began`: in monotonic seconds.
    """

    __slots__ = ("began", "caller", "ended", "recorded", "steps", "trace_id")

    def __init__(self, caller: CallerContext | None, began: float) -> None:
        self.caller = caller
        self.trace_id = caller.trace_id if caller is not None else f"{random.getrandbits(128) or 1:032x}"
        self.began = began
        self.ended = began
        self.steps: list[Step] = []
        self.recorded = False

    @property
    def is_open(self) -> bool:
        return not self.recorded and len(self.steps) < MOST_STEPS


class Tracer(Protocol):
    """Makes spans of traced requests, and exports them."""

    share: float  # of all requests; the others are not traced

    def record(self, trace: Trace, request: AccessLogEntry) -> None:
        """Makes the spans of a request that was answered."""
        ...


def begin(traceparents: Sequence[bytes], began: float) -> Trace | None:
    """Returns the trace of a request with these headers. None if its caller does not record its own."""
    caller = caller_context(traceparents)
    return Trace(caller, began) if caller is None or caller.sampled else None


_NONE: Attributes = {}
_UNTRACED = _Untraced()
_current: ContextVar[Step | None] = ContextVar("step", default=None)


def enter(trace: Trace | None) -> None:
    """Makes later steps in this task, and in tasks that it starts, part of `trace`. None: of no trace."""
    # the request itself is the parent of its first steps
    _current.set(Step(trace, None, "", trace.began, _NONE, remote=False) if trace is not None else None)


def step(name: str, attributes: Attributes = _NONE, *, remote: bool = False) -> Step | _Untraced:
    """Returns a context manager that times a part of the current request, if it is traced."""
    parent = _current.get()
    if parent is None or not parent.trace.is_open:
        return _UNTRACED
    made = Step(parent.trace, parent, name, time.monotonic(), attributes, remote=remote)
    parent.trace.steps.append(made)
    return made


def statement_of(lookup: str) -> Callable[[float, float, int, str | None], None] | None:
    """Returns a function that records the statement of a look-up; None if the current request is not traced.

    Its arguments: when the statement began, in monotonic seconds, how many seconds it took, how many look-ups shared
    it, and the class of its error.
    """
    parent = _current.get()
    if parent is None or not parent.trace.is_open:
        return None

    def note(began: float, seconds: float, lookups: int, error: str | None) -> None:
        if not parent.trace.is_open:
            return
        attributes: dict[str, str | int] = {
            "db.system.name": "duckdb",
            "db.operation.name": "SELECT",
            "db.query.summary": f"SELECT {lookup}",
            "forecast.lookups": lookups,
        }
        made = Step(parent.trace, parent, f"SELECT {lookup}", began, attributes, remote=False)
        made.ended, made.error = began + seconds, error
        parent.trace.steps.append(made)

    return note


def missing() -> str | None:
    """Returns why requests cannot be traced in this installation; None if they can."""
    try:
        version(_EXPORTER)
    except PackageNotFoundError:
        return f"{_EXPORTER} is not installed; install the extra: population-housing-forecast[traces]"
    return None
