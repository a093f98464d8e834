"""Metrics of an instance's machine, stores, workers, keys and events."""

import platform
from collections.abc import Iterator, Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from config import resources
from service.base.telemetry import LATENCY_BOUNDS, Histogram
from service.operators.observer import installed_version, requests_of
from service.operators.overview import EventKind
from service.operators.state import InstanceState

EVENT_KINDS: tuple[EventKind, ...] = ("release", "rollback", "purge", "key", "worker", "store", "inbox", "instance")


def gauge(name: str, text: str, value: float) -> Metric:
    metric = GaugeMetricFamily(name, text)
    metric.add_metric((), value)
    return metric


def cumulative(histogram: Histogram) -> list[tuple[str, float]]:
    """Returns cumulative buckets, as Prometheus has them: each counts all durations up to its bound."""
    buckets, below = [], 0
    for bound, count in zip((*LATENCY_BOUNDS, float("inf")), histogram.counts, strict=True):
        below += count
        buckets.append(("+Inf" if bound == float("inf") else repr(bound), float(below)))
    return buckets


def build() -> Iterator[Metric]:
    build = InfoMetricFamily("forecast_build", "The version that runs.")
    build.add_metric((), {"version": installed_version(), "python": platform.python_version()})
    yield build


def runbooks(state: InstanceState) -> Iterator[Metric]:
    found = InfoMetricFamily("forecast_runbooks", "Where the pages of the runbooks are; alerts link them.")
    found.add_metric([], {"url": state.runbooks})
    yield found


def workers(state: InstanceState) -> Iterator[Metric]:
    memory = GaugeMetricFamily("forecast_worker_resident_memory_bytes", "Memory by worker.", labels=("pid",))
    started = GaugeMetricFamily("forecast_worker_start_time_seconds", "When a worker was started.", labels=("pid",))
    served = GaugeMetricFamily("forecast_worker_release", "The release of a worker.", labels=("pid", "release"))
    opened = GaugeMetricFamily("forecast_worker_connections", "Open connections of partners.", labels=("pid",))
    near = GaugeMetricFamily("forecast_worker_near_cache_bytes", "Memory of its near cache.", labels=("pid",))
    seconds = HistogramMetricFamily(
        "forecast_worker_request_seconds", "Time from a request's headers to its answer, by worker.", labels=("pid",)
    )
    for worker in state.workers:
        memory.add_metric((str(worker.pid),), worker.resident_bytes)
        started.add_metric((str(worker.pid),), worker.started_at)
        if worker.report is not None:
            served.add_metric((str(worker.pid), worker.report.release or ""), 1)
            opened.add_metric((str(worker.pid),), worker.report.connections)
            near.add_metric((str(worker.pid),), worker.report.near_bytes)
            requests = requests_of(worker.report.telemetry)
            seconds.add_metric((str(worker.pid),), cumulative(requests), requests.total)
    yield from (memory, started, served, opened, near, seconds)
    text = "Memory that the instance may use: the lowest limit of its cgroups, or the machine's memory."
    yield gauge("forecast_memory_limit_bytes", text, resources.memory())
    reports = state.reports
    text = "Open connections of partners."
    yield gauge("forecast_connections", text, sum(report.connections for report in reports))
    text = "Workers of all known instances; they share rates and quotas."
    yield gauge("forecast_all_workers", text, state.all_workers)
    text = "Maximum number of open connections, over all workers."
    yield gauge("forecast_connections_limit", text, sum(report.connections_limit for report in reports))
    text = "Look-ups in the warehouse that wait or run."
    yield gauge("forecast_warehouse_waiting_lookups", text, sum(report.waiting for report in reports))
    text = "Maximum number of look-ups that wait or run; more get a 503."
    yield gauge("forecast_warehouse_waiting_lookups_limit", text, state.lookup_queue * state.wanted_workers)


def stores(state: InstanceState) -> Iterator[Metric]:
    memory = GaugeMetricFamily("forecast_store_memory_bytes", "Memory that a Redis uses.", labels=("store",))
    limit = GaugeMetricFamily("forecast_store_memory_limit_bytes", "Its maxmemory; 0: no limit.", labels=("store",))
    latency = GaugeMetricFamily("forecast_store_latency_seconds", "Duration of its last check.", labels=("store",))
    evicted = CounterMetricFamily("forecast_store_evicted_keys", "Keys evicted since it started.", labels=("store",))
    for store in state.stores:
        if store.memory is not None:
            memory.add_metric((store.name,), store.memory)
            limit.add_metric((store.name,), store.memory_limit or 0)
        if store.evicted is not None:
            evicted.add_metric((store.name,), store.evicted)
        if store.latency is not None:
            latency.add_metric((store.name,), store.latency)
    yield from (memory, limit, latency, evicted)
    yield from _nodes(state)


def _nodes(state: InstanceState) -> Iterator[Metric]:
    """Yields the metrics of a cluster's nodes; without samples if there is no cluster."""
    nodes = [node for store in state.stores for node in store.nodes]
    for kind, name, text, values in (
        (GaugeMetricFamily, "up", "1 if every worker reaches the node.", [node.up for node in nodes]),
        (GaugeMetricFamily, "memory_bytes", "Memory that the node uses.", [node.memory for node in nodes]),
        (
            GaugeMetricFamily,
            "memory_limit_bytes",
            "Its maxmemory, if any.",
            [node.memory_limit for node in nodes],
        ),
        (GaugeMetricFamily, "latency_seconds", "Duration of its last check.", [node.latency for node in nodes]),
        (CounterMetricFamily, "evicted_keys", "Keys evicted since it started.", [node.evicted for node in nodes]),
    ):
        metric = kind(f"forecast_cache_node_{name}", text, labels=("node",))
        for node, value in zip(nodes, values, strict=True):
            if value is not None:
                metric.add_metric((node.node,), value)
        yield metric


def clock(state: InstanceState) -> Iterator[Metric]:
    """Yields the metric; without a sample while it is unknown."""
    text = "By how many seconds this machine's clock is ahead of the key store's."
    metric = GaugeMetricFamily("forecast_clock_ahead_seconds", text)
    if state.clock_ahead is not None:
        metric.add_metric((), state.clock_ahead)
    yield metric


def folder(state: InstanceState) -> Iterator[Metric]:
    """Yields the metrics; without samples while they are unknown."""
    for name, text, value in (
        ("forecast_disk_free_bytes", "Free space of the data folder's disk.", state.disk_free),
        ("forecast_disk_size_bytes", "Size of the data folder's disk.", state.disk_size),
    ):
        metric = GaugeMetricFamily(name, text)
        if value is not None:
            metric.add_metric((), value)
        yield metric


def keys(state: InstanceState) -> Iterator[Metric]:
    """Yields the metric; without samples while it is unknown."""
    expiring = GaugeMetricFamily("forecast_keys_expiring", "Active keys that expire soon.", labels=("within",))
    for within, count in (("7d", state.keys.expire_within_7_days), ("30d", state.keys.expire_within_30_days)):
        if count is not None:
            expiring.add_metric((within,), count)
    yield expiring


def events(counted: Mapping[EventKind, int]) -> Iterator[Metric]:
    """Yields the metric of events. `counted` has their number by kind."""
    happened = CounterMetricFamily("forecast_events", "Events of the instance.", labels=("kind",))
    for kind in EVENT_KINDS:
        happened.add_metric((kind,), counted.get(kind, 0))
    yield happened
