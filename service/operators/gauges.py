"""Metrics of an instance's workers, stores, machine and keys, and how a metric is built."""

import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

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
from service.operators.overview import StoreNode
from service.operators.state import InstanceState


def family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    text: str,
    samples: Iterable[tuple[Any, ...]],
    *labels: str,
) -> Metric:
    """Returns a metric. A sample has a value for each label, then its own: without one (None), it is left out."""
    metric = kind(name, text, labels=labels)
    for *values, value in samples:
        if value is not None:
            metric.add_metric([str(label) for label in values], value)
    return metric


labelled = partial(family, GaugeMetricFamily)


def gauge(name: str, text: str, value: float | None) -> Metric:
    return labelled(name, text, [(value,)])


def cumulative(histogram: Histogram) -> list[tuple[str, float]]:
    """Returns cumulative buckets, as Prometheus has them: each counts all durations up to its bound."""
    buckets, below = [], 0
    for bound, count in zip((*LATENCY_BOUNDS, float("inf")), histogram.counts, strict=True):
        below += count
        buckets.append(("+Inf" if bound == float("inf") else repr(bound), float(below)))
    return buckets


def build(state: InstanceState) -> Iterator[Metric]:
    members = {"version": installed_version(), "python": platform.python_version()}
    yield InfoMetricFamily("forecast_build", "The version that runs.", members)
    text = "Where the pages of the runbooks are; alerts link them."
    yield InfoMetricFamily("forecast_runbooks", text, {"url": state.runbooks})


def workers(state: InstanceState) -> Iterator[Metric]:
    text, samples = "Memory by worker.", [(worker.pid, worker.resident_bytes) for worker in state.workers]
    yield labelled("forecast_worker_resident_memory_bytes", text, samples, "pid")
    text, started = "When a worker was started.", [(worker.pid, worker.started_at) for worker in state.workers]
    yield labelled("forecast_worker_start_time_seconds", text, started, "pid")
    known = [(str(worker.pid), worker.report) for worker in state.workers if worker.report is not None]
    releases = [(pid, report.release or "", 1) for pid, report in known]
    yield labelled("forecast_worker_release", "The release of a worker.", releases, "pid", "release")
    opened = [(pid, report.connections) for pid, report in known]
    yield labelled("forecast_worker_connections", "Open connections of partners.", opened, "pid")
    near = [(pid, report.near_bytes) for pid, report in known]
    yield labelled("forecast_worker_near_cache_bytes", "Memory of its near cache.", near, "pid")
    text = "Time from a request's headers to its answer, by worker."
    seconds = HistogramMetricFamily("forecast_worker_request_seconds", text, labels=("pid",))
    for pid, report in known:
        requests = requests_of(report.telemetry)
        seconds.add_metric((pid,), cumulative(requests), requests.total)
    yield seconds
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


def releases(state: InstanceState) -> Iterator[Metric]:
    reports = {report.release: report for report in state.reports if report.release}
    serving = Counter(report.release for report in state.reports)
    served = [(name, str(reports[name].illustrative).lower(), serving[name]) for name in sorted(reports)]
    yield labelled("forecast_release", "Workers by the release they serve.", served, "release", "illustrative")
    published = [(name, reports[name].published_at or 0) for name in sorted(reports)]
    text = "When the release was published."
    yield labelled("forecast_release_published_timestamp_seconds", text, published, "release")


def stores(state: InstanceState) -> Iterator[Metric]:
    reports = state.reports
    up = [
        ("keys", bool(reports) and all(report.keys_up for report in reports)),
        ("cache", bool(reports) and all(report.cache_up for report in reports)),
    ]
    yield labelled("forecast_store_up", "1 if every worker reaches the store.", up, "store")
    memory = [(store.name, store.memory) for store in state.stores]
    yield labelled("forecast_store_memory_bytes", "Memory that a Redis uses.", memory, "store")
    limits = [(store.name, store.memory_limit or 0) for store in state.stores if store.memory is not None]
    yield labelled("forecast_store_memory_limit_bytes", "Its maxmemory; 0: no limit.", limits, "store")
    latency = [(store.name, store.latency) for store in state.stores]
    yield labelled("forecast_store_latency_seconds", "Duration of its last check.", latency, "store")
    evicted, text = [(store.name, store.evicted) for store in state.stores], "Keys evicted since it started."
    yield family(CounterMetricFamily, "forecast_store_evicted_keys", text, evicted, "store")
    yield from _nodes([node for store in state.stores for node in store.nodes])


def _nodes(nodes: list[StoreNode]) -> Iterator[Metric]:
    """Yields the metrics of a cluster's nodes; without samples if there is no cluster."""
    up = [(node.node, node.up) for node in nodes]
    yield labelled("forecast_cache_node_up", "1 if every worker reaches the node.", up, "node")
    memory = [(node.node, node.memory) for node in nodes]
    yield labelled("forecast_cache_node_memory_bytes", "Memory that the node uses.", memory, "node")
    limits = [(node.node, node.memory_limit) for node in nodes]
    yield labelled("forecast_cache_node_memory_limit_bytes", "Its maxmemory, if any.", limits, "node")
    latency = [(node.node, node.latency) for node in nodes]
    yield labelled("forecast_cache_node_latency_seconds", "Duration of its last check.", latency, "node")
    evicted, text = [(node.node, node.evicted) for node in nodes], "Keys evicted since it started."
    yield family(CounterMetricFamily, "forecast_cache_node_evicted_keys", text, evicted, "node")


def surroundings(state: InstanceState) -> Iterator[Metric]:
    """Yields the metrics of the machine and of keys; without samples while they are unknown."""
    text = "Memory that the instance may use: the lowest limit of its cgroups, or the machine's memory."
    yield gauge("forecast_memory_limit_bytes", text, resources.memory())
    text = "By how many seconds this machine's clock is ahead of the key store's."
    yield gauge("forecast_clock_ahead_seconds", text, state.clock_ahead)
    yield gauge("forecast_disk_free_bytes", "Free space of the data folder's disk.", state.disk_free)
    yield gauge("forecast_disk_size_bytes", "Size of the data folder's disk.", state.disk_size)
    expiring = [("7d", state.keys.expire_within_7_days), ("30d", state.keys.expire_within_30_days)]
    yield labelled("forecast_keys_expiring", "Active keys that expire soon.", expiring, "within")
