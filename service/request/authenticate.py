"""Authenticates a request by its API key."""

from collections.abc import Coroutine
from typing import Any

from service.base.telemetry import KEY_CHECKS, Telemetry
from service.base.tracing import STEP_OUTCOME, step
from service.keys.verdict import Accepted, KeyVerdict, Rejected, Verified
from service.keys.verifier import KeyVerifier
from service.request import suggestions
from service.request.errors import problem
from service.request.request import Request
from service.request.response import Response

_MOST_CACHED = 20_000


class Authenticator:
    """Checks the keys of one worker's requests; the worker owns it.

    Verified live keys are cached by header value: its fingerprint costs more than the rest of the check.
    """

    def __init__(self, verifier: KeyVerifier, telemetry: Telemetry) -> None:
        self._verifier = verifier
        self._telemetry = telemetry
        self._accepted = telemetry.counter(KEY_CHECKS, "accepted")
        self._cache: dict[bytes, Verified] = {}

    def authenticate(self, request: Request) -> Response | Coroutine[Any, Any, Response | None] | None:
        """Sets the request's key. Returns the 400, 401 or 503 that ends it."""
        presented = request.presented
        cached = self._cache.get(presented) if presented is not None else None
        if cached is None or request.began >= cached.good_before or request.fault is not None:
            return self._authenticate(request)
        key = cached.key
        request.key, request.key_id = key, key.key_id
        self._accepted.value += 1
        return None

    def _authenticate(self, request: Request) -> Response | Coroutine[Any, Any, Response | None] | None:
        if request.fault is not None:
            return problem(*request.fault)
        if request.route is not None and request.route.public:
            return None
        presented = (request.presented or b"").strip().decode("latin-1")
        if not presented:
            self._telemetry.count(KEY_CHECKS, "missing")
            return problem("missing_api_key", suggestions.hint_for_missing_key(request.headers, request.query))
        verdict = self._verifier.judge(presented)
        if verdict is None:
            return self._check(request, presented)
        return self._decided(request, presented, verdict)

    async def _check(self, request: Request, presented: str) -> Response | None:
        with step("key") as asked:
            verdict = await self._verifier.check(presented)
            asked.set(STEP_OUTCOME, type(verdict).__name__.lower())
        return self._decided(request, presented, verdict)

    def _decided(self, request: Request, presented: str, verdict: KeyVerdict) -> Response | None:
        if isinstance(verdict, Accepted):
            request.key, request.key_id = verdict.key, verdict.key.key_id
            self._accepted.value += 1
            if verdict.key.test:
                request.is_test, request.target = True, None  # the target is live
            else:
                self._keep(request, presented)
            return None
        if isinstance(verdict, Rejected):
            request.key_id = verdict.key_id
            self._telemetry.count(KEY_CHECKS, verdict.reason)
            advice = (
                verdict.fault
                if verdict.reason == "invalid"
                else suggestions.hint_for_inactive_key(verdict.reason, verdict.since)
            )
            return problem(f"{verdict.reason}_api_key", advice)
        self._telemetry.count(KEY_CHECKS, "unknown")
        return problem("unavailable")

    def _keep(self, request: Request, presented: str) -> None:
        cached = self._verifier.recall(presented)
        if request.presented is not None and cached is not None:
            if len(self._cache) >= _MOST_CACHED:
                self._cache.clear()
            self._cache[request.presented] = cached
