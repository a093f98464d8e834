"""A request watch whose lines go to a list."""

from collections.abc import Callable

from service.base.ipc import AccessLogEntry
from service.base.tracing import Trace, Tracer
from service.request.access_log import RequestLog
from service.request.sampling import RequestWatch


class Logged(RequestWatch):
    """Logs errors, slow requests, and `share` of all others. `lines` has what was written."""

    def __init__(
        self,
        share: float = 0.0,
        *,
        errors: bool = True,
        slow: float = 60.0,
        clock: Callable[[], float] = lambda: 0.0,
        uniform: Callable[[], float] = lambda: 0.5,
        tracer: Tracer | None = None,
    ) -> None:
        self.lines: list[AccessLogEntry] = []
        log = RequestLog(share, errors=errors, write=lambda line: self.lines.append(line), clock=clock)
        super().__init__(log, slow, uniform, tracer)


class KeptTracer:
    """Keeps what it is to record."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.recorded: list[tuple[Trace, AccessLogEntry]] = []

    def record(self, trace: Trace, request: AccessLogEntry) -> None:
        self.recorded.append((trace, request))
