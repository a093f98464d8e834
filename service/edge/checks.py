"""What is checked first of a request, in the order of contract 1: syntax, key, path, method, entitlement, quota, rate.

Nothing here waits. The direct way takes what is decided at once; the router path waits for what has to be asked.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from service.base.telemetry import KEY_CHECKS, Telemetry
from service.base.tracing import STEP_OUTCOME, step
from service.edge import hints
from service.edge.admission.admission import Admission
from service.edge.admission.verdicts import Ask, Ruling, refusal_of_key
from service.http.errors import problem
from service.http.head import NO_AREA, RequestHead, valid_host
from service.http.sandbox.app import Sandbox
from service.keys.verdict import Accepted, KeyVerdict, Rejected, Unknown
from service.keys.verifier import KeyVerifier

_METHODS = ("GET", "HEAD")


class Checks:
    """Those of one worker, whose gate owns them.

    `routes` maps each path to the area that it is counted under; `area_of` tells that of path and query of the others.
    `offers` tells whether the current release has that area. `weights` are of paths that are asked for several things
    at once: as how many requests a query string counts. `admission` limits what keys ask for. `sandbox` has what test
    keys find; without it they find nothing. `public` paths (the documentation page) need no key. `meant` are further
    paths that a wrong one may have meant.
    """

    def __init__(
        self,
        routes: Mapping[str, str],
        verifier: KeyVerifier,
        telemetry: Telemetry,
        *,
        area_of: Callable[[str, bytes], str | None] = lambda _, __: None,
        admission: Admission | None = None,
        weights: Mapping[str, Callable[[bytes], int]] = MappingProxyType({}),
        offers: Callable[[str], bool] = lambda _: True,
        public: tuple[str, ...] = (),
        meant: tuple[str, ...] = (),
        sandbox: Sandbox | None = None,
    ) -> None:
        self._routes = routes
        self._verifier = verifier
        self._telemetry = telemetry
        self._area_of = area_of
        self._admission = admission
        self._weights = weights
        self._offers = offers
        self._public = public
        self._meant = meant
        self._sandbox = sandbox

    def place(self, head: RequestHead) -> None:
        """Finds out what the request is for. First of all: whatever becomes of it, it is counted there."""
        sent = head.sent_path
        head.path = path = sent[:-1] if len(sent) > 1 and sent.endswith("/") else sent
        head.area = self._routes.get(path) or self._area_of(path, head.query) or NO_AREA

    def is_simple(self, head: RequestHead) -> bool:
        """Whether every request for this path counts as one, in the same area."""
        return head.path in self._routes and head.path not in self._weights

    def refusal(self, head: RequestHead) -> Ruling:
        """The error that ends the request here, or None if it may go on.

        What was found out stays in `head`, so that the next call, after waiting, goes on from there.
        """
        if head.key is None:
            fault = _syntax(head)
            if fault is not None:
                code, detail = fault
                return problem(code, head.request_id, detail)
        if head.path not in self._public:
            if head.key is None:
                ruling = self._refusal_of_key(head)
                if ruling is not None:
                    return ruling
            if not self._is_there(head):
                return problem("not_found", head.request_id, self._nearest(head.path))
        if head.method not in _METHODS:
            return problem("method_not_allowed", head.request_id)
        if self._admission is not None and head.key is not None:
            weigh = self._weights.get(head.path)
            number = weigh(head.query) if weigh is not None else 1
            return self._admission.refusal(head, head.key, number)
        return None

    def _refusal_of_key(self, head: RequestHead) -> Ruling:
        presented = head.api_keys[0].strip().decode("latin-1") if head.api_keys else ""
        if not presented:
            self._telemetry.count(KEY_CHECKS, "missing")
            return problem("missing_api_key", head.request_id, hints.of_missing_key(head.headers, head.query))
        verdict = head.verdict or self._judged(head, presented)
        if verdict is None:
            return Ask(partial(self._ask_key, head, presented))
        if isinstance(verdict, Accepted):
            head.key, head.key_id = verdict.key, verdict.key.key_id
            self._telemetry.count(KEY_CHECKS, "accepted")
            return None
        code, outcome, head.key_id = refusal_of_key(verdict)
        self._telemetry.count(KEY_CHECKS, outcome)
        return problem(code, head.request_id, _advice(verdict))

    def _judged(self, head: RequestHead, presented: str) -> KeyVerdict | None:
        if head.trace is None:
            return self._verifier.judge(presented)
        began, verdict = time.monotonic(), self._verifier.judge(presented)
        if verdict is not None:
            head.trace.note("key", began, time.monotonic(), {STEP_OUTCOME: _named(verdict)})
        return verdict

    async def _ask_key(self, head: RequestHead, presented: str) -> None:
        with step("key") as asked:
            head.verdict = await self._verifier.check(presented)
            asked.set(STEP_OUTCOME, _named(head.verdict))

    def _is_there(self, head: RequestHead) -> bool:
        if not head.path.startswith("/"):  # the server as a whole, or another one: the method has to be changed
            return True
        if head.is_test:  # whatever the sandbox does not have must not be live
            return self._sandbox is not None and head.path in self._sandbox.paths
        return head.area != NO_AREA and self._offers(head.area)

    def _nearest(self, path: str) -> str | None:
        offered = (known for known, area in self._routes.items() if self._offers(area))
        return hints.of_path(path, (*offered, *self._meant, *self._public[:1]), guide=bool(self._public))


def _syntax(head: RequestHead) -> tuple[str, str | None] | None:
    if head.version not in ("1.0", "1.1"):
        return "bad_request", "Only HTTP/1.0 and HTTP/1.1 are spoken here."
    if head.hosts != 1 and not (head.hosts == 0 and head.version == "1.0"):
        return "bad_request", "Send the Host header, once."
    if head.host is not None and not valid_host(head.host):
        return "bad_request", "The Host header is not a host name or address."
    # other methods get a 405 instead: the method is what their sender must change
    if head.has_body and head.method in _METHODS:
        return "body_not_allowed", None
    if len(head.api_keys) > 1:
        return "bad_request", "The x-api-key header was sent more than once. Send it once."
    return None


def _named(verdict: KeyVerdict) -> str:
    return type(verdict).__name__.lower()


def _advice(verdict: Rejected | Unknown) -> str | None:
    if not isinstance(verdict, Rejected):
        return None
    if verdict.reason == "invalid":
        return verdict.fault
    return hints.of_ended_key(verdict.reason, verdict.since)
