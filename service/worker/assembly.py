"""The composition root of a worker: builds all parts, wires them, and starts and stops them in order."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from litestar.types import ControllerRouterHandler

from config.resources import lookup_memory, near_cache_bytes
from config.settings import Settings
from service.base import tasks, tracing
from service.base.ipc import AccessLogEntry, Endpoints, Shared
from service.base.store_clock import StoreClock
from service.base.tasks import end_task, keep_running
from service.base.telemetry import (
    ANSWERS,
    ERRORS_DROPPED,
    LINES_DROPPED,
    LOOKUPS,
    NEAR_LEFT,
    QUERY_LOOKUPS,
    QUERY_SECONDS,
    STORES_FAILED,
    TASK_FAILURES,
    TRACES_DROPPED,
    Snapshot,
    Telemetry,
)
from service.cache.near import NearCache
from service.cache.read_through import ReadThrough, observed_in
from service.cache.shared import SharedCache
from service.http.app import OPENAPI_PATH, build_litestar
from service.http.area import handler_of, routes_of
from service.http.areas import AREAS
from service.http.documentation.routes import get_page, get_root, public_paths
from service.http.documentation.site import Site
from service.http.entry import Entry
from service.http.forecast import samples
from service.http.index import INDEX_PATH, IndexAnswer, get_index
from service.http.openapi import about_of
from service.http.openapi_route import Description, get_openapi
from service.http.own_usage.controller import PATHS as USAGE_PATHS
from service.http.own_usage.controller import OwnUsageController
from service.http.own_usage.errors import ErrorReader
from service.http.own_usage.usage import OwnUsage
from service.http.releases.controller import OF_CURRENT, ReleasesController, find_route, get_feed
from service.http.releases.controller import PATHS as RELEASE_PATHS
from service.http.releases.downloads import Downloads
from service.http.releases.files import BULK
from service.http.releases.shelf import ReleaseShelf
from service.http.sandbox.app import build_sandbox
from service.keys import pepper
from service.keys.record import KEY_RECORD_PREFIX
from service.keys.store import KeyStore
from service.keys.verifier import KeyVerifier
from service.redis.invalidation import InvalidationListener
from service.redis.opening import cache_place, open_cache
from service.redis.primary import Primary, open_store
from service.request.access_log import RequestLog, share_logged
from service.request.admit import Admission
from service.request.authenticate import Authenticator
from service.request.log_lines import LineWriter, text_line
from service.request.look_up import LookUps
from service.request.lookup_watch import LookupWatch
from service.request.pipeline import Answers, Pipeline
from service.request.record import Recorder
from service.request.request import NO_AREA
from service.request.resolve import Resolver
from service.request.respond import CachePolicy
from service.request.route import Router
from service.request.sampling import RequestWatch
from service.request.targets import Route
from service.worker.metering import Metering
from warehouse.areas.paging import Cursors
from warehouse.following import OpenRelease, ReleaseFollower
from warehouse.lookup.engine import Engine
from warehouse.lookup.query import LookupStatement

if TYPE_CHECKING:
    from service.worker.tracer import SpanTracer

log = logging.getLogger("forecast.worker")

# With the supervisor's own interval, an instance is healthy within two seconds of its key store.
_WATCH_SECONDS = 0.5
# Metrics name this many of the last releases that a worker served.
_SHOWN_RELEASES = 4
_FOLDED_SECONDS = 1.0
_LAST_LINES_SECONDS = 1.0
_LAST_SPANS_SECONDS = 1.0
_AREA_NAMES = frozenset(area.name for area in AREAS)
_OTHER_PATHS = {INDEX_PATH: "index", OPENAPI_PATH: "openapi", **USAGE_PATHS, **RELEASE_PATHS}


class WorkerApp:
    """All parts of one worker, from its start to its end; its process owns it. `entry` is the ASGI application."""

    def __init__(
        self,
        settings: Settings,
        endpoints: Endpoints,
        on_release: Callable[[str], None],
        line_of: Callable[[AccessLogEntry], bytes] = text_line,
        shared: Shared | None = None,
    ) -> None:
        self._clock = StoreClock()
        self.telemetry = Telemetry()
        self._lines = LineWriter(line_of)
        self._tracer = _tracer(settings.traces)
        self.watch = RequestWatch(
            RequestLog(share_logged(settings.access_log), errors=settings.access_log != "off", write=self._lines.write),
            settings.slow_request,
            tracer=self._tracer,
        )
        self._keys_at, self._cache_at = Primary(endpoints.keys_url), cache_place(endpoints.cache_url)
        self.keys_store = open_store("key store", self._keys_at, timeout=settings.keys_timeout, retries=1)
        self.cache_store = open_cache("cache", self._cache_at, timeout=settings.cache_timeout)
        self._keys = KeyStore(self.keys_store, endpoints.pepper, settings.data_path)
        self.verifier = KeyVerifier(self._keys, endpoints.pepper, time_of_day=self._clock)
        self.listener = InvalidationListener(
            self._keys_at, KEY_RECORD_PREFIX, self.verifier.invalidate, timeout=settings.keys_timeout
        )
        self.metering = Metering(settings, self._keys_at, self._cache_at, self.cache_store, self._clock)
        self._policy = CachePolicy(settings.max_age)
        self.near = NearCache(near_cache_bytes(settings), settings.near_cache_ttl, self._policy.prepare)
        metered = _AREA_NAMES | {BULK}
        self._admission = Admission(
            metered, self.metering.limiter, self.metering.quotas, self.metering.counters, self._clock
        )
        self.shared_cache = SharedCache(self.cache_store, settings.cache_ttl)
        self._cache = ReadThrough(self.near, self.shared_cache, observed_in(self.telemetry))
        self.recorder = Recorder(self.telemetry, self.watch, self._admission, self.metering.errors.add)
        self._shown: tuple[str, ...] = ()  # releases named in figures
        self._settings = settings
        self._on_release = on_release
        self.follower = ReleaseFollower(
            settings.data_path,
            self._open_engine,
            self._switched,
            self.near.retire,
            keep_previous=settings.previous_release_on_failure,
            mirrored=settings.releases_url is not None,
        )
        self._downloads = Downloads()
        if shared is not None:
            self.share(shared)
        self._cursors = Cursors(pepper.cursor_secret(endpoints.pepper))
        self.resolver = Resolver(self.follower)
        self.entry = self._build_entry(settings)

    def share(self, shared: Shared) -> None:
        """Applies the state shared by all instances."""
        self.metering.workers, self._clock.base = shared.workers, shared.clock

    async def start(self) -> None:
        self._lines.start()
        await asyncio.gather(self._keys_at.start(), self._cache_at.start())
        await self.keys_store.start()
        await self.cache_store.start()
        await self.metering.start()
        self.listener.start()
        await self.verifier.store_watch.look()  # so that the first report knows whether keys can be verified
        self._tasks = (
            keep_running("watch the key store", self._watch_keys),
            keep_running("probe failing look-ups", self.lookups.probe_in_doubt),
            keep_running("tidy the near cache", self.near.tidy_in_steps),
            keep_running("try the shared cache", self.shared_cache.try_to_store),
            keep_running("log similar errors", self._log_similar_errors),
        )
        await self.follower.start()

    async def stop(self) -> None:
        await self.follower.stop()
        await asyncio.gather(*(end_task(task) for task in self._tasks))
        await self.listener.stop()
        await self.metering.stop()
        self._downloads.stop()
        await self.keys_store.stop()
        await self.cache_store.stop()
        await asyncio.gather(self._keys_at.stop(), self._cache_at.stop())
        self.watch.log.log_folded(at_once=True)
        self._lines.stop(_LAST_LINES_SECONDS)
        if self._tracer is not None:
            self._tracer.stop(_LAST_SPANS_SECONDS)

    def figures(self) -> Snapshot:
        """Returns the figures up to now, including those counted elsewhere."""
        self.watch.adapt()
        for reason, failed in self.shared_cache.failed.items():
            self.telemetry.total(STORES_FAILED, failed, reason)
        self.telemetry.total(LINES_DROPPED, self._lines.dropped)
        self.telemetry.total(TRACES_DROPPED, self._tracer.dropped if self._tracer is not None else 0)
        self.telemetry.total(ERRORS_DROPPED, self.metering.errors.dropped)
        for task, failures in tasks.failures.items():
            self.telemetry.total(TASK_FAILURES, failures, task)
        if self.near.max_bytes:
            self.telemetry.total(LOOKUPS, self.near.hits, "near", "hit")
            self.telemetry.total(LOOKUPS, self.near.misses, "near", "miss")
            for reason, left in self.near.left.items():
                self.telemetry.total(NEAR_LEFT, left, reason)
        snapshot = self.telemetry.snapshot()
        snapshot.fold(ANSWERS, "release", self._shown)
        return snapshot

    async def _log_similar_errors(self) -> float:
        self.watch.log.log_folded()
        return _FOLDED_SECONDS

    async def _watch_keys(self) -> float:
        await self.verifier.store_watch.look()
        return _WATCH_SECONDS

    def _build_entry(self, settings: Settings) -> Entry:
        metering, policy, cursors = self.metering, self._policy, self._cursors
        fall_back = settings.previous_release_on_failure
        about = about_of(settings)
        own_usage = OwnUsage(metering.report, metering.store, self._clock)
        documentation: Site | None = None
        public: list[str] = []
        handlers: list[ControllerRouterHandler] = [
            *(handler_of(endpoint) for area in AREAS for endpoint in area.endpoints),
            *(get_index, get_openapi, OwnUsageController, ReleasesController, get_feed),
        ]
        if settings.docs:
            documentation = Site("partners", about)
            public = public_paths(documentation)
            handlers += [get_page, get_root]
        sandbox = build_sandbox(policy, cursors, about, own_usage)
        self.lookups = LookupWatch(self.follower, self.near, self.shared_cache, samples, fall_back=fall_back)
        self.look_ups = LookUps(self.follower, self.resolver, self._cache, self.lookups, fall_back=fall_back)
        router = Router(
            {
                **{path: route for area in AREAS for path, route in routes_of(area, cursors, policy).items()},
                **{path: Route(area=area) for path, area in _OTHER_PATHS.items()},
                **{path: Route(area=NO_AREA, public=True) for path in public},
            },
            find_other=find_route,
            offers=self._offers,
            release=lambda: self.follower.current,
            suggested=OF_CURRENT,
            test_paths=sandbox.paths,
        )
        answers = Answers(router, self.resolver, self.look_ups, policy)
        pipeline = Pipeline(
            router,
            Authenticator(self.verifier, self.telemetry),
            self._admission,
            answers,
            self.recorder,
            self.watch,
        )
        litestar = build_litestar(
            handlers,
            answers=answers,
            policy=policy,
            cursors=cursors,
            index=IndexAnswer(self.follower, policy, guide=settings.docs),
            description=Description(self.follower, answers, policy, about),
            own_usage=own_usage,
            own_errors=ErrorReader(metering.errors.of_key),
            shelf=ReleaseShelf(self.follower, settings.data_path),
            downloads=self._downloads,
            documentation=documentation,
        )
        return Entry(pipeline, litestar, sandbox)

    def _offers(self, route: str) -> bool:
        """Returns whether the current release has the area.

        True if it cannot be opened: endpoints answer that themselves.
        """
        release = self.follower.current
        if self.follower.stands_in_since is not None:
            return True
        return release is None or route not in _AREA_NAMES or route in release.keys

    def _open_engine(self, folder: Path, lookups: Mapping[str, LookupStatement]) -> Engine:
        return Engine(
            folder,
            lookups,
            memory=lookup_memory(self._settings),
            timeout=self._settings.lookup_timeout,
            queue=self._settings.lookup_queue,
            observe=self._observe_query,
            watch=tracing.statement_of,
            in_memory=self._settings.lookups_in_memory,
        )

    def _switched(self, release: OpenRelease) -> None:
        self.near.switch(release.id)
        self.resolver.switch(release.id)
        self.recorder.switch()
        self._shown = (*self._shown, release.id)[-_SHOWN_RELEASES:]
        self._on_release(release.id)

    def _observe_query(self, seconds: float, lookups: int) -> None:
        self.telemetry.observe(QUERY_SECONDS, seconds)
        self.telemetry.count(QUERY_LOOKUPS, amount=lookups)


def _tracer(share: float) -> "SpanTracer | None":
    if share == 0:
        return None
    from service.worker.tracer import open_tracer  # imports OpenTelemetry, an extra

    return open_tracer(share)
