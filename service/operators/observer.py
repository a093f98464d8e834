"""Watches one instance: once a second it records the counts, and notices events and problems."""

import os
import socket
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from service.base.telemetry import REQUEST_SECONDS, Histogram, Snapshot
from service.operators.events import EventBoard
from service.operators.figures import Figures, figures_of, quantile
from service.operators.history import FigureHistory, Mark, Span, hit_rate, traffic
from service.operators.kept import MOST_EVENTS, Kept
from service.operators.overview import (
    History,
    Inbox,
    Instance,
    Overview,
    Release,
    Switch,
    Warehouse,
    Worker,
)
from service.operators.ranking import RankingBoard
from service.operators.state import InstanceState, WorkerState
from service.operators.verdict import VerdictBoard

MINUTE, HOUR = 60.0, 3600.0
_MARK_SECONDS = 0.9  # least time between two marks of a worker, of which a minute is kept
# Span of the hit rates before and after a release switch.
_SWITCH_SECONDS = 300.0
_EVENTS_SHOWN = 50


class Observer:
    """The observer of one instance. Its supervisor owns it, and calls `look` about once a second.

    `clock` returns Unix seconds, for times that are shown; `ticks` monotonic seconds, for calculations.
    """

    def __init__(
        self,
        instance: str,
        data_folder: str,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self.board = RankingBoard(ticks)
        self.events = EventBoard(clock)
        self._instance_id = instance
        self._data_folder = data_folder
        self._clock = clock
        self._ticks = ticks
        self._began = ticks()
        self._offset = 0.0  # converts monotonic to Unix seconds, as of the last look
        self._history = FigureHistory(self._began)
        self._state: InstanceState | None = None
        self._workers: dict[int, deque[tuple[float, Histogram]]] = {}  # by pid: requests of the last minute
        self.verdicts = VerdictBoard(self._began)
        self._served: str | None = None  # the release that all workers served last
        self._served_since = self._began
        self._switch: tuple[float, float, str, str] | None = None  # when, the switch before, from and to which release
        self.events.add("instance", "the instance started")

    def keep(self) -> Kept:
        """Returns what the instance remembers over a restart."""
        events = self.events.newest(MOST_EVENTS, MOST_EVENTS)
        offset = self._clock() - self._ticks()  # there may have been no look yet
        return Kept(offset, self._history.marks(), events, self.board.keep())

    def restore(self, kept: Kept) -> None:
        """Continues what the last instance remembered. Call it before the first look."""
        shift = kept.offset - (self._clock() - self._ticks())
        self._history.restore(kept.marks, shift)
        self.events.restore(kept.events)
        self.board.restore(kept.rankings, shift)

    def look(self, state: InstanceState, ended: Snapshot) -> None:
        """Records `state`. `ended` has the figures of workers that ended."""
        tick = self._ticks()
        self._offset = self._clock() - tick
        # includes workers that do not respond now: their counts must not disappear
        counted = [worker.report.telemetry for worker in state.workers if worker.report is not None]
        cache = next((store for store in state.stores if store.name == "cache"), None)
        connections = sum(report.connections for report in state.reports)
        self._history.record(tick, figures_of([ended, *counted]), self._offset, connections, cache)
        self._record_workers(tick, state.workers)
        self._record_switch(tick, state)
        if self._state is not None:
            self.events.compare(self._state, state)
        self._state = state
        now = self._history.now.figures
        minute = now.since(self._history.back(MINUTE).figures)
        self.verdicts.look(tick, state, minute, now.of_class(5))

    def _record_switch(self, tick: float, state: InstanceState) -> None:
        """Records a switch once all workers serve the same release."""
        release, before = state.served, self._served
        if release is None or release == before:
            return
        by = f", by {state.switched_by}" if state.switched_by else ""
        if before is None:
            self.events.add("release", f"release {release} is live")
        else:
            self._switch = tick, self._served_since, before, release
            # a release is named after its build time
            if release < before:
                self.events.add("rollback", f"rolled back to release {release}{by}; it was {before}")
            else:
                self.events.add("release", f"release {release} is live{by}; it was {before}")
        self._served, self._served_since = release, tick

    def overview(self) -> Overview | None:
        """Returns the overview; None before the first look."""
        state, now = self._state, self._history.now
        if state is None:
            return None
        minute, hour = self._history.back(MINUTE), self._history.back(HOUR)
        return Overview(
            at=now.tick + self._offset,
            verdict=self.verdicts.verdict(self._offset),
            instance=self._instance(state),
            hit_rate_now=hit_rate(minute, now),
            hit_rate_hour=hit_rate(hour, now),
            traffic_now=traffic(minute, now),
            traffic_hour=traffic(hour, now),
            releases=_releases(state),
            switch=self._switched(),
            rankings=self.board.rankings(),
            partners=self.board.partners(),
            stores=state.stores,
            warehouse=_warehouse(minute, now, state),
            workers=tuple(self._worker(worker) for worker in state.workers),
            inbox=_inbox(state),
            keys=state.keys,
            events=self.events.newest(_EVENTS_SHOWN),
            latest=self._history.latest(),
        )

    def history(self, span: Span) -> History:
        return self._history.history(span)

    # --- parts ---------------------------------------------------------------------------------------------------

    def _instance(self, state: InstanceState) -> Instance:
        return Instance(
            id=self._instance_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=installed_version(),
            started_at=self._began + self._offset,
            restarts=state.restarts,
            connections=sum(report.connections for report in state.reports),
            data_folder=self._data_folder,
            disk_free=state.disk_free,
            disk_size=state.disk_size,
        )

    def _switched(self) -> Switch | None:
        if self._switch is None:
            return None
        tick, since, before, after = self._switch
        then = self._history.back(0, tick)
        later = self._history.back(0, min(self._history.now.tick, tick + _SWITCH_SECONDS))
        return Switch(
            at=tick + self._offset,
            before=before,
            after=after,
            rate_before=hit_rate(self._history.back(min(_SWITCH_SECONDS, tick - since), tick), then).rate,
            rate_after=hit_rate(then, later).rate,
        )

    def _record_workers(self, tick: float, workers: tuple[WorkerState, ...]) -> None:
        self._workers = {worker.pid: self._workers.get(worker.pid, deque(maxlen=61)) for worker in workers}
        for worker in workers:
            marks = self._workers[worker.pid]
            if worker.report is None:
                continue
            if len(marks) > 1 and marks[-1][0] - marks[-2][0] < _MARK_SECONDS:
                marks.pop()  # the newest stays; callers may look at any time
            marks.append((tick, requests_of(worker.report.telemetry)))

    def _worker(self, worker: WorkerState) -> Worker:
        marks, report = self._workers[worker.pid], worker.report
        counts, seconds = [0], 1.0
        if len(marks) > 1:
            (began, before), (ended, after) = marks[0], marks[-1]
            counts = [now - then for now, then in zip(after.counts, before.counts, strict=True)]
            seconds = max(ended - began, 0.001)
        return Worker(
            pid=worker.pid,
            state=worker.state,
            release=report.release if report else None,
            memory=worker.resident_bytes,
            started_at=worker.started_at,
            requests=sum(counts) / seconds,
            p99=quantile(counts, 0.99),
            connections=report.connections if report else 0,
            near_entries=report.near_entries if report else 0,
            near_bytes=report.near_bytes if report else 0,
        )


def requests_of(snapshot: Snapshot) -> Histogram:
    """Returns the durations of a worker's requests, over all areas."""
    total = Histogram.empty()
    for name, _, histogram in snapshot.histograms:
        if name == REQUEST_SECONDS.name:
            total.add(histogram)
    return total


def installed_version() -> str:
    try:
        return version("population-housing-forecast")
    except PackageNotFoundError:  # run from a folder that was never installed
        return "unknown"


def _releases(state: InstanceState) -> tuple[Release, ...]:
    illustrative = {report.release for report in state.reports if report.illustrative}
    current = state.served
    # the current release may be newer than the last reading of the folder, or older than the releases it lists
    names = [*filter(None, [current]), *(name for name in state.releases if name != current)]
    return tuple(
        Release(id=name, published_at=published_at(name), current=name == current, illustrative=name in illustrative)
        for name in names
    )


def published_at(release: str) -> float:
    """Returns the build time in a release's name, in Unix seconds; 0 if the name has none."""
    try:
        return datetime.strptime(release[:16], "%Y%m%dT%H%M%S%z").timestamp()
    except ValueError:
        return 0.0


def _warehouse(before: Mark, after: Mark, state: InstanceState) -> Warehouse:
    found: Figures = after.figures.since(before.figures)
    return Warehouse(
        waiting=sum(report.waiting for report in state.reports),
        queries=sum(found.queries) / max(after.tick - before.tick, 0.001),
        p50=quantile(found.queries, 0.5),
        p99=quantile(found.queries, 0.99),
    )


def _inbox(state: InstanceState) -> Inbox:
    inbox = state.inbox
    return Inbox(
        watched=state.watches_inbox,
        published=inbox.published,
        refused=inbox.refused,
        waiting=inbox.waiting,
        held=inbox.held,
        failing=len(inbox.failing),
        ignored=inbox.ignored,
        last_drop_at=state.last_drop_at,
        overdue=state.drop_overdue,
    )
