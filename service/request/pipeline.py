"""The path of every request: plain steps in a fixed order, and the only place that waits.

A step takes the request and returns None (continue), a `Response` (done), or an awaitable of either. Steps run inline.
At the first awaitable, a task runs the rest.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator

from service.base import tracing
from service.base.tasks import hold_until_done
from service.request.admit import Admission
from service.request.authenticate import Authenticator
from service.request.errors import failure_of
from service.request.look_up import LookUps
from service.request.record import Recorder
from service.request.request import Request
from service.request.resolve import Resolver
from service.request.respond import CachePolicy, written
from service.request.response import Response
from service.request.route import Router
from service.request.sampling import RequestWatch

log = logging.getLogger("forecast.access")

Step = Callable[[Request], "Response | Awaitable[Response | None] | None"]


class Answers:
    """The steps that answer a request for a look-up endpoint from one set of releases: live ones, or that of test
    keys."""

    def __init__(self, router: Router, resolver: Resolver, look_ups: LookUps, policy: CachePolicy) -> None:
        self.look_ups = look_ups
        self.policy = policy
        self.place = router.place
        self.steps: tuple[Step, ...] = (resolver.resolve, look_ups.look_up, policy.respond)

    async def answer(self, request: Request) -> Response:
        """Returns the answer to a request that was checked. Raises ApiError."""
        return await _answered(request, self.steps, lambda _: None)


class Pipeline:
    """The steps of one worker's requests, which owns it.

    Setting `draining` makes every answer the last of its connection.
    """

    def __init__(
        self,
        router: Router,
        authenticator: Authenticator,
        admission: Admission,
        answers: Answers,
        recorder: Recorder,
        watch: RequestWatch,
    ) -> None:
        self.draining = False
        self.recorder = recorder
        self._router = router
        self.traces = watch.tracer is not None
        self._watch = watch
        self._tasks: set[asyncio.Task[Response]] = set()
        self.admission = admission
        self._checks: tuple[Step, ...] = (authenticator.authenticate, router.route, admission.admit)
        self._steps = (*self._checks, *answers.steps)

    def begin(self, request: Request) -> None:
        """Sets where the request is counted, and whether it is traced."""
        if request.target is None:
            self._router.place(request)
        if self.traces:
            request.trace = self._watch.begin(request.headers, request.began)

    def run(self, request: Request) -> "Response | asyncio.Task[Response]":
        """Begins the request, and returns the answer, or DISPATCH; or a task that returns it, if it must wait."""
        if request.target is None or self.traces:
            self.begin(request)
        steps = iter(self._steps)
        if request.trace is not None:
            return self._start(request, None, steps)
        try:
            for step in steps:
                outcome = step(request)
                if outcome is not None:
                    return outcome if isinstance(outcome, Response) else self._start(request, outcome, steps)
        except Exception as error:
            return failure_of(error, request.request_id)
        raise LookupError("no step has answered")

    async def check(self, request: Request) -> Response | None:
        """Returns the answer that ends the request before it reaches the application."""
        response = await _run_all(request, self._checks, self.admission.begin)
        request.is_checked = True
        return response

    def finish(self, request: Request, response: Response, dates: bytes) -> tuple[bytes, bytes]:
        """Records the request, and returns the head and the body of the answer as they are sent."""
        if self.draining:
            request.closes = True
        self.recorder.record(request, response.status, response.outcome, time.monotonic() - request.began)
        return written(request, response, dates)

    def _start(
        self, request: Request, outcome: Awaitable[Response | None] | None, steps: Iterator[Step]
    ) -> "asyncio.Task[Response]":
        self.admission.begin(request)
        # detached: the look-up continues if the client disconnects
        task = asyncio.create_task(self._continue(request, outcome, steps))
        return hold_until_done(task, self._tasks)

    async def _continue(
        self, request: Request, outcome: Awaitable[Response | None] | None, steps: Iterator[Step]
    ) -> Response:
        """Awaits the outcome of a step, and runs the remaining ones."""
        try:
            if request.trace is not None:
                tracing.enter(request.trace)
            response = await outcome if outcome is not None else None
            return response or await _answered(request, steps, self.admission.begin)
        except Exception as error:
            return failure_of(error, request.request_id)


async def _run_all(request: Request, steps: Iterable[Step], begin: Callable[[Request], None]) -> Response | None:
    """Calls `begin` before each wait, and at the end, because others run before the answer is counted."""
    if request.trace is not None:
        steps = map(_traced, steps)
    response: Response | None = None
    for step in steps:
        outcome = step(request)
        if outcome is None or isinstance(outcome, Response):
            response = outcome
        else:
            begin(request)
            response = await outcome
        if response is not None:
            break
    begin(request)
    return response


async def _answered(request: Request, steps: Iterable[Step], begin: Callable[[Request], None]) -> Response:
    response = await _run_all(request, steps, begin)
    if response is None:
        raise LookupError("no step has answered")
    return response


def _traced(step: Step) -> Step:
    """Returns the step as a part of the request's trace."""

    async def traced(request: Request) -> Response | None:
        with tracing.step(step.__name__) as part:
            outcome = step(request)
            response = outcome if outcome is None or isinstance(outcome, Response) else await outcome
            if response is not None and response.outcome:
                part.set(tracing.STEP_OUTCOME, response.outcome)
        return response

    return traced
