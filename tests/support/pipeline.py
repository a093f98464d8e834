"""The steps of a request over doubles: two keys, one release, one look-up endpoint, no socket."""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from fakeredis import FakeAsyncRedis

from service.base.ipc import AccessLogEntry
from service.base.telemetry import Telemetry
from service.base.terms import Terms
from service.cache.near import NearCache
from service.cache.read_through import ReadThrough
from service.cache.shared import SharedCache
from service.keys.record import ApiKey
from service.keys.verdict import INVALID, Accepted, KeyVerdict, Verified
from service.keys.verifier import KeyVerifier
from service.quota.rates import RateLimiter
from service.request.admit import Admission
from service.request.authenticate import Authenticator
from service.request.errors import ApiError
from service.request.look_up import LookUps
from service.request.lookup_watch import LookupWatch
from service.request.pipeline import Answers, Pipeline
from service.request.record import Recorder
from service.request.request import NO_AREA, Request, read_headers
from service.request.resolve import Resolver
from service.request.respond import CachePolicy
from service.request.response import Header, Response
from service.request.route import Router
from service.request.targets import ResolvedQuery, Route
from tests.support.leasing import FakeLeases
from tests.support.redis_double import DoubledStore
from tests.support.usage import UsageWorker, double
from tests.support.watching import Logged

AREA, PATH, OTHER, OPEN = "forecast", "/v1/things", "/v1/", "/docs"
KEY, TEST_KEY = "the key", "the test key"
BODY = b'{"total_results":1}'


def key_with(terms: Terms = Terms(), *, test: bool = False) -> ApiKey:  # noqa: B008 - frozen
    created = datetime(2026, 1, 1, tzinfo=UTC)
    return ApiKey(
        key_id="t" if test else "a", partner="acme", digest="0" * 64, created_at=created, terms=terms, test=test
    )


class KeysDouble(KeyVerifier):
    """Knows the keys that a test gives it. `waits`: the next verdicts come from the store."""

    def __init__(self) -> None:
        self.keys = {KEY: key_with(), TEST_KEY: key_with(test=True)}
        self.verdict: KeyVerdict = INVALID  # on all others
        self.waits = False
        self.judged = 0
        self.good_for = 60.0  # seconds

    def judge(self, presented: str) -> KeyVerdict | None:
        self.judged += 1
        return None if self.waits else self._verdict(presented)

    async def check(self, presented: str) -> KeyVerdict:
        return self._verdict(presented)

    def recall(self, presented: str) -> Verified | None:
        key = self.keys.get(presented)
        return Verified(b"", key, time.monotonic() + self.good_for - 3, 1) if key is not None else None

    def _verdict(self, presented: str) -> KeyVerdict:
        key = self.keys.get(presented)
        return Accepted(key) if key is not None else self.verdict


def request_for(
    path: str = PATH,
    query: bytes = b"id=1",
    *,
    method: str = "GET",
    key: str | None = KEY,
    headers: tuple[Header, ...] = (),
) -> Request:
    """A request as it arrives. Its request line is in it, as in one that was read as a plain one."""
    keys = () if key is None else ((b"x-api-key", key.encode()),)
    request = read_headers(
        ((b"host", b"a"), (b"x-request-id", b"r1"), *keys, *headers),
        began=time.monotonic(),
        method=method,
        version="1.1",
        sent_path=path,
        query=query,
        address="192.0.2.1",
    )
    request.line = b"%b %b?%b HTTP/1.1" % (method.encode(), path.encode(), query)
    return request


def refused(outcome: object) -> Response:
    """The response that a step ends a request with."""
    assert isinstance(outcome, Response)
    return outcome


class Steps:
    """All steps of one worker's requests. `resolved` and `filled` count what was read and looked up."""

    def __init__(self, folder: Path, tracer: Any = None) -> None:
        self.telemetry = Telemetry()
        self.watch = Logged(share=1.0, tracer=tracer)
        self.errors: list[AccessLogEntry] = []  # of good keys
        self.keys = KeysDouble()
        self.usage = UsageWorker(double(), folder)
        self.leases = FakeLeases(self.usage.clock)
        self.limiter = RateLimiter(self.leases, lambda: 1, self.usage.clock)
        self.policy = CachePolicy(60)
        self.near = NearCache(1 << 20, 300, self.policy.prepare)
        self.follower = cast(
            "Any",
            SimpleNamespace(current=SimpleNamespace(id="r1"), previous=None, stands_in_since=None, unpublished=False),
        )
        self.resolved = self.filled = 0
        self.fill: Callable[[], Awaitable[bytes]] = self._fill
        self.error: Exception | None = None  # of the endpoint's own code
        shared = SharedCache(DoubledStore(FakeAsyncRedis()), 60)
        self.resolver = Resolver(self.follower)
        self.watch_of_look_ups = LookupWatch(self.follower, self.near, shared, lambda _, __: (), fall_back=True)
        self.look_ups = LookUps(
            self.follower, self.resolver, ReadThrough(self.near, shared), self.watch_of_look_ups, fall_back=True
        )
        self.lacking: set[str] = set()  # areas
        self.empty: set[str] = set()  # releases without figures
        self.router = Router(
            {PATH: Route(area=AREA, resolve=self._resolve), OTHER.rstrip("/"): Route(area="index"),
             OPEN: Route(area=NO_AREA, public=True)},
            offers=lambda area: area not in self.lacking,
            test_paths=frozenset({PATH}),
        )  # fmt: skip
        self.admission = Admission(
            frozenset({AREA}), self.limiter, self.usage.quotas, self.usage.counters, self.usage.clock, self.usage.clock
        )
        self.authenticator = Authenticator(self.keys, self.telemetry)
        self.recorder = Recorder(self.telemetry, self.watch, self.admission, lambda _, make: self.errors.append(make()))
        self.pipeline = Pipeline(
            self.router,
            self.authenticator,
            self.admission,
            Answers(self.router, self.resolver, self.look_ups, self.policy),
            self.recorder,
            self.watch,
        )
        self.switch("r1")

    def switch(self, release: str) -> None:
        """As a worker does when a release becomes current."""
        self.follower.current = SimpleNamespace(id=release)
        self.near.switch(release)
        self.resolver.switch(release)
        self.recorder.switch()

    def begin(self, request: Request) -> Request:
        """As a connection does: with what the line meant before."""
        request.target = self.resolver.find(request.line)
        if request.target is not None:
            request.route, request.area = request.target.route, request.target.area
        self.pipeline.begin(request)
        return request

    async def answer(self, request: Request) -> Response:
        """What the pipeline answers, waited for if need be."""
        outcome = self.pipeline.run(self.begin(request))
        return outcome if isinstance(outcome, Response) else await outcome

    def _resolve(self, release: Any, query: bytes) -> ResolvedQuery:
        """`id=1` and `id=01` are the same; `id=0` is nothing; what is no number is wrong."""
        self.resolved += 1
        if self.error is not None:
            raise self.error
        name, _, value = query.partition(b"=")
        if name != b"id" or not value.isdigit():
            raise ApiError("invalid_parameter", f"Give id, a number: {value.decode()} is none.", "id")
        if not int(value):
            raise ApiError("no_matching_records", headers=self.policy.headers("r1"))
        headers = ((b"x-matched-city", b"A"),) if value.startswith(b"0") else ()
        outcome = "answered_empty" if release.id in self.empty else "answered"
        return ResolvedQuery(f"id={int(value)}", lambda: self.fill(), outcome, headers)

    async def _fill(self) -> bytes:
        self.filled += 1
        return BODY
