"""The checks before the router, in the order of contract 1: syntax, key, path, method, entitlement, quota, rate.

The gate wraps the framework, because application middleware does not run for unknown paths and methods, which need the
key too.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from service.base.masking import masked, masked_query
from service.base.seen import LoggedRequest
from service.base.telemetry import (
    ANSWERS,
    KEY_CHECKS,
    REJECTED,
    REQUEST_SECONDS,
    REQUESTS,
    ROUTED,
    TEST_REQUESTS,
    Telemetry,
)
from service.base.tracing import STEP_OUTCOME, step
from service.edge import hints
from service.edge.admission.admission import Admission
from service.edge.admission.verdicts import refusal_of_key
from service.edge.hot.answers import HotAnswers
from service.edge.requests.sightings import shortened
from service.edge.requests.watch import PID, RequestWatch, stamp
from service.http.errors import of_exception, problem
from service.http.head import SCOPE_KEY, RequestHead, read_head, valid_host
from service.http.reply import COUNTED, KEPT, OUTCOME, SOURCE, Counted, Header, Reply, Send, Source
from service.http.sandbox.app import TEST_ANSWER, Sandbox
from service.keys.verdict import Accepted, Rejected, Unknown
from service.keys.verifier import KeyVerifier

log = logging.getLogger("forecast.access")

_METHODS = ("GET", "HEAD")
NO_AREA = "none"
GatedApplication = Callable[[Any, Any, Send], Awaitable[None]]


class Gate:
    """The ASGI application that a worker serves, and owns.

    `routes` maps each path to the area that it is counted under; `area_of` tells that of path and query of the others.
    `offers` tells whether the current release has that area. `weights` are of paths that are asked for several things
    at once: as how many requests a query string counts. `admission` limits and counts what keys ask for. `hot` answers
    hot requests before they come here. `sandbox` answers test keys, instead of `app`; without it they find nothing.
    `public` paths (the documentation page) need no key. `watch` looks at every request; `keep_error` is told of those
    of a good key that end with an error. Setting `draining` makes every answer the last of its connection.
    """

    def __init__(
        self,
        app: GatedApplication,
        routes: dict[str, str],
        verifier: KeyVerifier,
        telemetry: Telemetry,
        watch: RequestWatch,
        *,
        area_of: Callable[[str, bytes], str | None] = lambda _, __: None,
        admission: Admission | None = None,
        weights: Mapping[str, Callable[[bytes], int]] = MappingProxyType({}),
        hot: HotAnswers | None = None,
        offers: Callable[[str], bool] = lambda _: True,
        public: tuple[str, ...] = (),
        meant: tuple[str, ...] = (),
        sandbox: Sandbox | None = None,
        keep_error: Callable[[LoggedRequest], None] = lambda _: None,
        most_connections: int = 10_000,
    ) -> None:
        self.telemetry = telemetry
        self.draining = False
        self.most_connections = most_connections
        self._app = app
        self._routes = routes
        self._area_of = area_of
        self._verifier = verifier
        self._admission = admission
        self._weights = weights
        self.hot = hot
        self._offers = offers
        self._public = public
        self._meant = meant
        self._sandbox = sandbox
        self._watch = watch
        self._keep_error = keep_error

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = read_head(scope["headers"], time.perf_counter())
        head.method = scope["method"]
        head.trace = self._watch.begin(scope["headers"])
        path = _normalised(scope["path"])
        area = self._routes.get(path) or self._area_of(path, scope["query_string"]) or NO_AREA
        answer = _Answer(self, scope, head, area, send)
        try:
            refusal = await self._refusal(scope, head, path, area)
            if refusal is not None:
                await refusal(scope, receive, answer)
                return
            # the server's own scope keeps HEAD, so that the server leaves the body out
            inner = dict(scope, method="GET", path=path, raw_path=path.encode(), **{SCOPE_KEY: head})
            app = self._sandbox.app if head.is_test and self._sandbox is not None else self._app
            await app(inner, receive, answer)
        except Exception as error:
            if answer.begun:
                raise  # the server closes the connection: a partial answer must not look complete
            log.exception("request failed", extra={"request_id": head.request_id, "path": path})
            await of_exception(error, head.request_id)(scope, receive, answer)

    async def _refusal(self, scope: Any, head: RequestHead, path: str, area: str) -> Reply | None:
        """The error that ends the request here, or None if it may go on."""
        fault = _syntax(scope, head)
        if fault is not None:
            code, detail = fault
            return problem(code, head.request_id, detail)
        if path not in self._public:
            refused = await self._key_refusal(scope, head)
            if refused is not None:
                return refused
            if not self._is_there(head, path, area):
                return problem("not_found", head.request_id, self._nearest(path))
        if scope["method"] not in _METHODS:
            return problem("method_not_allowed", head.request_id)
        if self._admission is not None and head.key is not None:
            weigh = self._weights.get(path)
            number = weigh(scope["query_string"]) if weigh is not None else 1
            return await self._admission.refusal(head, head.key, area, number)
        return None

    def _is_there(self, head: RequestHead, path: str, area: str) -> bool:
        if head.is_test:  # whatever the sandbox does not have must not be live
            return self._sandbox is not None and path in self._sandbox.paths
        return area != NO_AREA and self._offers(area)

    def _nearest(self, path: str) -> str | None:
        offered = (known for known, area in self._routes.items() if self._offers(area))
        return hints.of_path(path, (*offered, *self._meant, *self._public[:1]), guide=bool(self._public))

    async def _key_refusal(self, scope: Any, head: RequestHead) -> Reply | None:
        presented = head.api_keys[0].decode("latin-1").strip() if head.api_keys else ""
        if not presented:
            self.telemetry.count(KEY_CHECKS, "missing")
            detail = hints.of_missing_key(scope["headers"], scope["query_string"])
            return problem("missing_api_key", head.request_id, detail)
        with step("key") as checked:
            verdict = await self._verifier.check(presented)
            checked.set(STEP_OUTCOME, type(verdict).__name__.lower())
        if isinstance(verdict, Accepted):
            head.key, head.key_id = verdict.key, verdict.key.key_id
            self.telemetry.count(KEY_CHECKS, "accepted")
            return None
        code, outcome, head.key_id = refusal_of_key(verdict)
        self.telemetry.count(KEY_CHECKS, outcome)
        return problem(code, head.request_id, _advice(verdict, presented))

    def rejected(self, code: str) -> None:
        """Counts a request that the protocol refused before it could be routed."""
        self.telemetry.count(REJECTED, code)

    def refusal(self, code: str, request_id: str, address: str | None, detail: str | None = None) -> Reply:
        """The answer to such a request, which is counted and logged. Its method and path may not have arrived."""
        reply = problem(code, request_id, detail)
        self.telemetry.count(REQUESTS, NO_AREA, str(reply.status), code)
        line = LoggedRequest(
            time=stamp(),
            request_id=request_id,
            status=reply.status,
            method="-",
            path="-",
            outcome=code,
            milliseconds=0.0,
            pid=PID,
            address=address,
        )
        self._watch.look(line, 0.0)
        return reply

    def finished(
        self,
        scope: Any,
        head: RequestHead,
        area: str,
        status: int,
        outcome: str,
        source: Source | None,
        counted: tuple[Counted, ...],
        seconds: float,
    ) -> None:
        """Counts a request that was answered, `seconds` after its head had arrived."""
        line = _line(scope, head, area, status, outcome, source, seconds)
        if head.is_test:  # a 503 on purpose must alarm nobody
            self.telemetry.count(TEST_REQUESTS, str(status), outcome)
            self._watch.look(line, seconds, head.trace)
            return
        if status >= 400 and head.key is not None:
            self._keep_error(line)
        self.telemetry.count(REQUESTS, area, str(status), outcome)
        for one in counted or (Counted(1, status, outcome, source.tier if source is not None else None),):
            if source is not None and one.tier is not None:
                self.telemetry.count(ANSWERS, area, one.tier, source.release, ROUTED, amount=one.number)
            if self._admission is not None and head.key is not None:
                self._admission.count(head.key, area, one.status, one.outcome, one.number)
        self.telemetry.observe(REQUEST_SECONDS, seconds, area)
        self._watch.look(line, seconds, head.trace)


class _Answer:
    """The ASGI `send` of one request: adds the headers that every answer carries, and counts it when it is complete."""

    def __init__(self, gate: Gate, scope: Any, head: RequestHead, area: str, send: Send) -> None:
        self.begun = False
        self._gate = gate
        self._scope = scope
        self._head = head
        self._area = area
        self._send = send
        self._status = 0
        self._outcome = "answered"
        self._source: Source | None = None
        self._counted: tuple[Counted, ...] = ()
        self._seconds = 0.0  # until the answer began: how long it takes from there on is up to its reader

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            self._seconds = time.perf_counter() - self._head.started
            self._status = message["status"]
            self._outcome = message.pop(OUTCOME, self._outcome)
            kept, source = message.pop(KEPT, None), message.pop(SOURCE, None)
            self._source, self._counted = source, message.pop(COUNTED, ())
            hot = None if self._head.is_test else self._gate.hot  # what it remembers is live
            if kept is not None and hot is not None and self._scope["method"] == "GET":
                hot.remember(_target(self._scope), self._area, kept, source.query)
            headers = message["headers"]
            headers.append((b"x-request-id", self._head.request_id.encode()))
            headers.extend(self._limits())
            if self._head.is_test:
                headers.append(TEST_ANSWER)
            if self._gate.draining:
                headers.append((b"connection", b"close"))
            await self._send(message)
            return
        await self._send(message)
        if not message.get("more_body", False):
            told = (self._area, self._status, self._outcome, self._source, self._counted, self._seconds)
            self._gate.finished(self._scope, self._head, *told)

    def _limits(self) -> tuple[Header, ...]:
        """What is left of the key's limits, with this answer taken off a quota if it is billable."""
        if self._head.limits_after is None:
            return self._head.limits
        if self._counted:
            billed = sum(one.number for one in self._counted if one.status < 400)
        else:
            billed = int(self._status < 400)
        return self._head.limits_after(billed)


def _syntax(scope: Any, head: RequestHead) -> tuple[str, str | None] | None:
    if head.hosts != 1 and not (head.hosts == 0 and scope["http_version"] == "1.0"):
        return "bad_request", "Send the Host header, once."
    if head.host is not None and not valid_host(head.host):
        return "bad_request", "The Host header is not a host name or address."
    if scope["http_version"] not in ("1.0", "1.1"):
        return "bad_request", "Only HTTP/1.0 and HTTP/1.1 are spoken here."
    # other methods get a 405 instead: the method is what their sender must change
    if head.has_body and scope["method"] in _METHODS:
        return "body_not_allowed", None
    if len(head.api_keys) > 1:
        return "bad_request", "The x-api-key header was sent more than once. Send it once."
    return None


def _target(scope: Any) -> bytes:
    """The request target in origin form, as it was sent."""
    query: bytes = scope["query_string"]
    path: bytes = scope["raw_path"]
    return b"%s?%s" % (path, query) if query else path


def _advice(verdict: Rejected | Unknown, presented: str) -> str | None:
    if not isinstance(verdict, Rejected):
        return None
    if verdict.reason == "invalid":
        return hints.of_invalid_key(presented)
    return hints.of_ended_key(verdict.reason, verdict.since)


def _normalised(path: str) -> str:
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def _line(
    scope: Any, head: RequestHead, area: str, status: int, outcome: str, source: Source | None, seconds: float
) -> LoggedRequest:
    # a key may have been put into the address by mistake, and an address may be long
    query = source.query if source is not None else masked_query(scope["query_string"].decode("latin-1"))
    return LoggedRequest(
        time=stamp(),
        request_id=head.request_id,
        status=status,
        method=scope["method"],
        path=shortened(masked(scope["path"])),
        outcome=outcome,
        milliseconds=round(seconds * 1000, 3),
        pid=PID,
        area=area if area != NO_AREA else None,
        query=shortened(query) or None,
        tier=source.tier if source is not None else None,
        release=source.release if source is not None else None,
        key_id=head.key_id,
        partner=head.key.partner if head.key is not None else None,
        test=head.is_test or None,
        address=scope["client"][0] if scope["client"] else None,
    )
