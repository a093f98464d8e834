"""The instance's metrics in Prometheus's text format: sums over its workers, including those that ended."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from service.base.telemetry import COUNTERS, HISTOGRAMS, Snapshot
from service.inbox.status import Status
from service.operators import gauges
from service.operators.gauges import cumulative, gauge
from service.operators.overview import EventKind
from service.operators.reasons import readiness, went_back
from service.operators.state import InstanceState


class _Families:
    """A collector for one scrape of the metrics `metrics`."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


Partners = Iterable[tuple[str, Mapping[int, int]]]  # name, requests by status
_NO_EVENTS: Mapping[EventKind, int] = MappingProxyType({})


def render_metrics(
    state: InstanceState, sums: Snapshot, events: Mapping[EventKind, int] = _NO_EVENTS, partners: Partners = ()
) -> bytes:
    """Returns the text of one scrape. `sums` includes workers that ended; `events` are counted by kind, and the
    requests of `partners` by status.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(metric_families(state, sums, events, partners)))
    return generate_latest(registry)


def metric_families(
    state: InstanceState, sums: Snapshot, events: Mapping[EventKind, int] = _NO_EVENTS, partners: Partners = ()
) -> list[Metric]:
    return [
        *gauges.build(),
        *gauges.runbooks(state),
        *_counters(sums),
        *_histograms(sums),
        *_gauges(state),
        *gauges.workers(state),
        *gauges.stores(state),
        *gauges.clock(state),
        *gauges.folder(state),
        *gauges.keys(state),
        *gauges.events(events),
        *_partners(partners),
        *_inbox(state.inbox),
        *_drops(state),
    ]


def _partners(partners: Partners) -> Iterator[Metric]:
    text = "Requests of the busiest partners, estimated from a sample; only with FORECAST_PARTNER_METRICS."
    requests = CounterMetricFamily("forecast_partner_requests", text, labels=("partner", "status"))
    for partner, statuses in partners:
        for status, count in statuses.items():
            requests.add_metric((partner, str(status)), count)
    yield requests


def _counters(sums: Snapshot) -> Iterator[Metric]:
    for family in COUNTERS:
        metric = CounterMetricFamily(family.name, family.help, labels=family.labels)
        for name, labels, value in sums.counters:
            if name == family.name:
                metric.add_metric(labels, value)
        yield metric


def _histograms(sums: Snapshot) -> Iterator[Metric]:
    for family in HISTOGRAMS:
        metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for name, labels, histogram in sums.histograms:
            if name == family.name:
                metric.add_metric(labels, cumulative(histogram), histogram.total)
        yield metric


def _gauges(state: InstanceState) -> Iterator[Metric]:
    reports = state.reports
    yield gauge("forecast_workers", "Workers that serve.", len(reports))
    yield gauge("forecast_workers_wanted", "Workers that should serve.", state.wanted_workers)
    restarts = CounterMetricFamily("forecast_worker_restarts", "Workers that died or hung and were replaced.")
    restarts.add_metric((), state.restarts)
    yield restarts
    yield gauge("forecast_ready", "1 if the readiness check answers 200.", readiness(state).status != "unavailable")
    up = GaugeMetricFamily("forecast_store_up", "1 if every worker reaches the store.", labels=("store",))
    up.add_metric(("keys",), bool(reports) and all(report.keys_up for report in reports))
    up.add_metric(("cache",), bool(reports) and all(report.cache_up for report in reports))
    yield up
    text = "Problems in the configuration of the two Redis; /health/ready lists them."
    yield gauge("forecast_store_problems", text, len(state.store_problems))
    foreign = any(report.keys_problem for report in reports)
    yield gauge(
        "forecast_key_store_foreign",
        "1 if the key store lost its keys, belongs to another pepper, has a damaged sentinel, or refuses reads.",
        foreign,
    )
    text = "1 if the key store lost changes of keys that were seen before, for example in a failover."
    yield gauge("forecast_key_store_went_back", text, bool(went_back(state)))
    stuck = any(report.usage_problem for report in reports)
    yield gauge("forecast_usage_stuck", "1 if usage cannot be stored although the key store answers.", stuck)
    astray = state.mirror_problem is not None
    yield gauge("forecast_releases_astray", "1 if the data folder differs from the store of releases.", astray)
    text = "Requests whose usage the key store has not confirmed yet."
    yield gauge("forecast_usage_waiting", text, sum(report.usage_waits for report in reports))
    push = sum(report.push_connected for report in reports)
    yield gauge("forecast_revocation_push_connections", "Workers to which revocations are pushed.", push)
    releases = GaugeMetricFamily(
        "forecast_release", "Workers by the release they serve.", labels=("release", "illustrative")
    )
    published = GaugeMetricFamily(
        "forecast_release_published_timestamp_seconds", "When the release was published.", labels=("release",)
    )
    for release in sorted({report.release for report in reports if report.release}):
        serving = [report for report in reports if report.release == release]
        releases.add_metric((release, str(serving[0].illustrative).lower()), len(serving))
        published.add_metric((release,), serving[0].published_at or 0)
    yield releases
    yield published
    failing = sum(report.release_problem is not None for report in reports)
    text = "Workers that cannot open the current release, or whose look-ups in it fail."
    yield gauge("forecast_release_problems", text, failing)
    hung = sum(worker.state == "hanging" for worker in state.workers)
    text = "Workers that do not respond, or in which a look-up or the release follower hangs."
    yield gauge("forecast_hung_workers", text, hung)
    text = "Memory of the near caches, over all workers."
    yield gauge("forecast_near_cache_bytes", text, sum(report.near_bytes for report in reports))
    text = "Answers in the near caches, over all workers."
    yield gauge("forecast_near_cache_entries", text, sum(report.near_entries for report in reports))


def _inbox(status: Status) -> Iterator[Metric]:
    """Yields the inbox's metrics; they are the same on every instance of a data folder."""
    for name, text, value in (
        (
            "forecast_inbox_published",
            "Drops of the inbox that were published, or were already current.",
            status.published,
        ),
        ("forecast_inbox_refused", "Drops of the inbox that were refused, or discarded by a person.", status.refused),
    ):
        counter = CounterMetricFamily(name, text)
        counter.add_metric((), value)
        yield counter
    text = "Drops in the inbox that are arriving, waiting, or being published."
    yield gauge("forecast_inbox_waiting", text, status.waiting)
    text = "Files and folders in the inbox that cannot be drops, such as a zip file; the watcher's log says why."
    yield gauge("forecast_inbox_ignored", text, status.ignored)
    text = "Drops of the inbox that cannot be published for reasons outside the drop; they are retried."
    yield gauge("forecast_inbox_failing", text, len(status.failing))
    yield gauge("forecast_inbox_held", "Drops of the inbox that wait for a person's approval.", status.held)
    text = "Seconds since the oldest held drop was held; 0: no drop is held."
    yield gauge("forecast_inbox_held_oldest_age_seconds", text, status.held_age())
    name, text = "forecast_inbox_last_refusal_timestamp_seconds", "When a drop was last refused; 0: never."
    yield gauge(name, text, status.last_refusal or 0)


def _drops(state: InstanceState) -> Iterator[Metric]:
    text = "Seconds since a drop went live or was already current; 0: never. A rollback does not count."
    yield gauge("forecast_last_drop_age_seconds", text, state.last_drop_age or 0)
    text = "Seconds by which the next drop is overdue; 0: not overdue, or FORECAST_DROP_EVERY is unset."
    yield gauge("forecast_drop_overdue_seconds", text, state.drop_overdue)
