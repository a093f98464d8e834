"""The application that a worker serves: checks a request, hands it on, and adds what every answer carries.

The gate wraps the framework, because application middleware does not run for unknown paths and methods, which need the
key too.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from service.base.tasks import hold_until_done
from service.base.telemetry import Telemetry
from service.edge.admission.admission import Admission
from service.edge.admission.verdicts import Ask, ruled
from service.edge.checks import Checks
from service.edge.counting import RequestCounting
from service.edge.hot.answers import HotAnswers
from service.edge.hot.waiting import FOR_ROUTER, WAITING, HotOutcome
from service.edge.hot.wire import whole_answer
from service.edge.requests.log import Make
from service.edge.requests.watch import RequestWatch
from service.http.errors import ApiError, kept_error, of_exception, of_failed
from service.http.head import SCOPE_KEY, RequestHead, head_in
from service.http.reply import (
    COUNTED,
    KEPT,
    OUTCOME,
    SOURCE,
    Counted,
    Header,
    Kept,
    KeptError,
    Later,
    Reply,
    Send,
    Source,
)
from service.http.sandbox.app import TEST_ANSWER, Sandbox

log = logging.getLogger("forecast.access")

GatedApplication = Callable[[Any, Any, Send], Awaitable[None]]
_CLOSE: Header = (b"connection", b"close")
# A reply that has to be waited for; None: only the router has one.
_Waits = Callable[[], Awaitable[Reply | None]]


class Gate:
    """The ASGI application that a worker serves, and owns.

    `checks` say what passes. `admission` counts what keys ask for. `hot` answers hot requests before they come here.
    `unrouted` makes, by path, answers that need no router; no path there: `app` answers.
    `sandbox` answers test keys, instead of `app`. `watch` looks at every request. `keep_error` is told of those of a
    good key that end with an error: the key's id, and what makes the line. `counting` counts every request. Setting
    `draining` makes every answer the last of its connection.
    """

    def __init__(
        self,
        app: GatedApplication,
        checks: Checks,
        telemetry: Telemetry,
        watch: RequestWatch,
        *,
        admission: Admission | None = None,
        hot: HotAnswers | None = None,
        sandbox: Sandbox | None = None,
        unrouted: Mapping[str, Callable[[RequestHead], Reply | Later]] = MappingProxyType({}),
        keep_error: Callable[[str, Make], None] = lambda _, __: None,
        most_connections: int = 10_000,
        connection_age: float = 0.0,
    ) -> None:
        self.counting = RequestCounting(telemetry, watch, admission, keep_error)
        self.draining = False
        self.most_connections = most_connections
        self.connection_age = connection_age
        self.hot = hot
        self._app = app
        self._checks = checks
        self._sandbox = sandbox
        self._unrouted = unrouted
        self._later: set[asyncio.Task[None]] = set()
        self._watch = watch

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head: RequestHead | None = scope.get(SCOPE_KEY)
        if head is None:
            head = head_in(scope, time.monotonic())
            self._begin(head)
        self._watch.enter(head.trace)
        answer = _Answer(self, scope, head, send)
        try:
            reply = await self._reply(head)
            if reply is not None:
                await reply(scope, receive, answer)
                return
            # the server's own scope keeps HEAD, so that the server leaves the body out
            inner = dict(scope, method="GET", path=head.path, raw_path=head.path.encode(), **{SCOPE_KEY: head})
            app = self._sandbox.app if head.is_test and self._sandbox is not None else self._app
            await app(inner, receive, answer)
        except Exception as error:
            if answer.begun:
                raise  # the server closes the connection: a partial answer must not look complete
            log.exception("request failed", extra={"request_id": head.request_id, "path": head.path})
            await of_exception(error, head.request_id)(scope, receive, answer)

    @property
    def traces(self) -> bool:
        return self._watch.tracer is not None

    def answer_now(
        self, head: RequestHead, dates: list[Header], tell: Callable[[Reply | None], None] | None = None
    ) -> HotOutcome:
        """The whole answer, with the server's headers, to a request that needs to wait for nothing, or not for the
        router: for its key, a token, its entry. Then `tell` is called in a later turn, for `written` to write it.
        Without `tell`, it cannot wait.

        Else, or if `tell` is told None, it goes on through the router, with this head, which has what was found out.
        """
        try:
            self._begin(head)
            made = self._ruled_or_made(head)
        except Exception:
            return FOR_ROUTER  # the same again on the router path, which tells of it
        if isinstance(made, Reply):
            return self.written(head, made, dates, at_once=True)
        if made is None or tell is None:
            return FOR_ROUTER
        # detached: what a client that goes away asked for is looked up nevertheless
        hold_until_done(asyncio.create_task(self._make_later(head, made, tell)), self._later)
        return WAITING

    async def _make_later(self, head: RequestHead, make: _Waits, tell: Callable[[Reply | None], None]) -> None:
        self._watch.enter(head.trace)
        try:
            reply = await _made(head, make)
        except BaseException as error:  # cancelled, for example: nobody may be left waiting
            tell(of_failed(RuntimeError(f"given up: {error!r}"), head.request_id))
            raise
        tell(reply)

    def written(self, head: RequestHead, reply: Reply, dates: list[Header], *, at_once: bool = False) -> bytes:
        """The answer with the server's headers. The request counts from here on. `at_once`: it waited for nothing."""
        self.remember(head, head.sent_path.encode(), reply.kept, reply.source)
        behind = self.fields_behind(head, _limits(head, reply.status))
        answer = whole_answer(reply, (*behind, _CLOSE) if head.last else behind, dates, bodiless=head.method == "HEAD")
        now = time.monotonic()
        if self.hot is not None and self._checks.is_simple(head):
            self._refuse_next(self.hot, head, reply, now)
        seconds, directly = now - head.started, at_once and reply.status >= 400
        self.counting.finished(head, reply.status, reply.outcome, reply.source, (), seconds, directly=directly)
        return answer

    def _refuse_next(self, hot: HotAnswers, head: RequestHead, reply: Reply, now: float) -> None:
        """Who is refused whatever they ask for is refused directly next time."""
        if head.refused_until > now and head.key is not None and not head.is_test:
            hot.errors.deny(head.key, head.area, kept_error(reply, head.request_id), head.refused_until)
        elif reply.status != 401:
            return
        hot.errors.refuse_at(head.sent_path.encode(), head.area)

    def _ruled_or_made(self, head: RequestHead) -> Reply | _Waits | None:
        ruling = self._checks.refusal(head)
        if isinstance(ruling, Ask):
            return partial(self._asked_and_made, head, ruling) if head.path in self._unrouted else None
        if ruling is not None:
            return ruling
        head.passed = True
        return self._made_now(head)

    async def _asked_and_made(self, head: RequestHead, ask: Ask) -> Reply | None:
        await ask.answer()
        return await self._reply(head)

    async def _reply(self, head: RequestHead) -> Reply | None:
        """The answer, unless the application makes it."""
        refused = None if head.passed else await ruled(lambda: self._checks.refusal(head))
        made = refused or self._made_now(head)
        return made if made is None or isinstance(made, Reply) else await _made(head, made)

    def _made_now(self, head: RequestHead) -> Reply | Later | None:
        make = self._unrouted.get(head.path) if not head.is_test else None
        try:
            return make(head) if make is not None else None
        except ApiError as error:
            return of_exception(error, head.request_id)

    def remember(self, head: RequestHead, path: bytes, kept: Kept | KeptError | None, source: Source | None) -> None:
        """The next request for the same is hot, if the answer to this one is kept. `path` is as it was sent."""
        # what is remembered is live
        if kept is not None and self.hot is not None and head.method == "GET" and not head.is_test:
            url = b"%s?%s" % (path, head.query) if head.query else path
            self.hot.remember(url, head.area, kept, source.query if source is not None else "")

    def _begin(self, head: RequestHead) -> None:
        self._checks.place(head)
        head.trace = self._watch.begin(head.headers)

    def fields_behind(self, head: RequestHead, limits: tuple[Header, ...]) -> tuple[Header, ...]:
        """What every answer carries behind its own fields."""
        fields = ((b"x-request-id", head.request_id.encode()), *limits)
        return (*fields, TEST_ANSWER) if head.is_test else fields

    def rejected(self, code: str) -> None:
        self.counting.rejected(code)

    def refusal(self, code: str, request_id: str, address: str | None, detail: str | None = None) -> Reply:
        return self.counting.refusal(code, request_id, address, detail)


class _Answer:
    """The ASGI `send` of one request: adds the headers that every answer carries, and counts it when it is complete."""

    def __init__(self, gate: Gate, scope: Any, head: RequestHead, send: Send) -> None:
        self.begun = False
        self._gate = gate
        self._scope = scope
        self._head = head
        self._send = send
        self._status = 0
        self._outcome = "answered"
        self._source: Source | None = None
        self._counted: tuple[Counted, ...] = ()
        self._seconds = 0.0  # until the answer began: how long it takes from there on is up to its reader

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            self._seconds = time.monotonic() - self._head.started
            self._status = message["status"]
            self._outcome = message.pop(OUTCOME, self._outcome)
            kept, self._source = message.pop(KEPT, None), message.pop(SOURCE, None)
            self._counted = message.pop(COUNTED, ())
            self._gate.remember(self._head, self._scope["raw_path"], kept, self._source)
            limits = _limits(self._head, self._status, self._counted)
            message["headers"].extend(self._gate.fields_behind(self._head, limits))
            if self._gate.draining:
                message["headers"].append(_CLOSE)
            await self._send(message)
            return
        await self._send(message)
        if not message.get("more_body", False):
            told = (self._status, self._outcome, self._source, self._counted, self._seconds)
            self._gate.counting.finished(self._head, *told)


async def _made(head: RequestHead, make: _Waits) -> Reply | None:
    try:
        return await make()
    except Exception as error:
        return of_failed(error, head.request_id)


def _limits(head: RequestHead, status: int, counted: tuple[Counted, ...] = ()) -> tuple[Header, ...]:
    """What is left of the key's limits, with the answer taken off a quota if it is billable."""
    if head.limits_after is None:
        return head.limits
    billed = sum(one.number for one in counted if one.status < 400) if counted else int(status < 400)
    return head.limits_after(billed)
