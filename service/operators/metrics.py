"""The instance's metrics in Prometheus's text format: sums over its workers, including those that ended."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from service.base.telemetry import COUNTERS, HISTOGRAMS, Snapshot
from service.inbox.status import Status
from service.operators import gauges
from service.operators.gauges import cumulative, family, gauge
from service.operators.overview import EVENT_KINDS, EventKind
from service.operators.reasons import readiness, went_back
from service.operators.state import InstanceState


class _Scrape(Collector):
    """A collector of finished metrics."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


Partners = Iterable[tuple[str, Mapping[int, int]]]  # name, requests by status
_NO_EVENTS: Mapping[EventKind, int] = MappingProxyType({})


def render_metrics(
    state: InstanceState, sums: Snapshot, events: Mapping[EventKind, int] = _NO_EVENTS, partners: Partners = ()
) -> bytes:
    """Returns the text of one scrape. `sums` includes workers that ended; `events` are counted by kind, and the
    requests of `partners` by status.
    """
    return generate_latest(_Scrape(metric_families(state, sums, events, partners)))


def metric_families(
    state: InstanceState, sums: Snapshot, events: Mapping[EventKind, int] = _NO_EVENTS, partners: Partners = ()
) -> list[Metric]:
    return [
        *gauges.build(state),
        *_counters(sums),
        *_histograms(sums),
        *_gauges(state),
        *gauges.workers(state),
        *gauges.releases(state),
        *gauges.stores(state),
        *gauges.surroundings(state),
        *_events(events),
        *_partners(partners),
        *_inbox(state.inbox),
        *_drops(state),
    ]


def _counters(sums: Snapshot) -> Iterator[Metric]:
    for kind in COUNTERS:
        samples = [(*labels, value) for name, labels, value in sums.counters if name == kind.name]
        yield family(CounterMetricFamily, kind.name, kind.help, samples, *kind.labels)


def _histograms(sums: Snapshot) -> Iterator[Metric]:
    for kind in HISTOGRAMS:
        metric = HistogramMetricFamily(kind.name, kind.help, labels=kind.labels)
        for name, labels, histogram in sums.histograms:
            if name == kind.name:
                metric.add_metric(labels, cumulative(histogram), histogram.total)
        yield metric


def _gauges(state: InstanceState) -> Iterator[Metric]:
    reports = state.reports
    yield gauge("forecast_workers", "Workers that serve.", len(reports))
    yield gauge("forecast_workers_wanted", "Workers that should serve.", state.wanted_workers)
    text = "Workers that died or hung and were replaced."
    yield family(CounterMetricFamily, "forecast_worker_restarts", text, [(state.restarts,)])
    yield gauge("forecast_ready", "1 if the readiness check answers 200.", readiness(state).status != "unavailable")
    text = "Problems in the configuration of the two Redis; /health/ready lists them."
    yield gauge("forecast_store_problems", text, len(state.store_problems))
    text = "1 if the key store lost its keys, belongs to another pepper, has a damaged sentinel, or refuses reads."
    yield gauge("forecast_key_store_foreign", text, any(report.keys_problem for report in reports))
    text = "1 if the key store lost changes of keys that were seen before, for example in a failover."
    yield gauge("forecast_key_store_went_back", text, bool(went_back(state)))
    text = "1 if usage cannot be stored although the key store answers."
    yield gauge("forecast_usage_stuck", text, any(report.usage_problem for report in reports))
    text = "1 if the data folder differs from the store of releases."
    yield gauge("forecast_releases_astray", text, state.mirror_problem is not None)
    text = "Requests whose usage the key store has not confirmed yet."
    yield gauge("forecast_usage_waiting", text, sum(report.usage_waits for report in reports))
    text = "Workers to which revocations are pushed."
    yield gauge("forecast_revocation_push_connections", text, sum(report.push_connected for report in reports))
    text = "Workers that cannot open the current release, or whose look-ups in it fail."
    yield gauge("forecast_release_problems", text, sum(report.release_problem is not None for report in reports))
    text = "Workers that do not respond, or in which a look-up or the release follower hangs."
    yield gauge("forecast_hung_workers", text, sum(worker.state == "hanging" for worker in state.workers))
    text = "Memory of the near caches, over all workers."
    yield gauge("forecast_near_cache_bytes", text, sum(report.near_bytes for report in reports))
    text = "Answers in the near caches, over all workers."
    yield gauge("forecast_near_cache_entries", text, sum(report.near_entries for report in reports))


def _events(counted: Mapping[EventKind, int]) -> Iterator[Metric]:
    samples = [(kind, counted.get(kind, 0)) for kind in EVENT_KINDS]
    yield family(CounterMetricFamily, "forecast_events", "Events of the instance.", samples, "kind")


def _partners(partners: Partners) -> Iterator[Metric]:
    text = "Requests of the busiest partners, estimated from a sample; only with FORECAST_PARTNER_METRICS."
    samples = [(partner, status, count) for partner, statuses in partners for status, count in statuses.items()]
    yield family(CounterMetricFamily, "forecast_partner_requests", text, samples, "partner", "status")


def _inbox(status: Status) -> Iterator[Metric]:
    """Yields the inbox's metrics; they are the same on every instance of a data folder."""
    text = "Drops of the inbox that were published, or were already current."
    yield family(CounterMetricFamily, "forecast_inbox_published", text, [(status.published,)])
    text = "Drops of the inbox that were refused, or discarded by a person."
    yield family(CounterMetricFamily, "forecast_inbox_refused", text, [(status.refused,)])
    text = "Drops in the inbox that are arriving, waiting, or being published."
    yield gauge("forecast_inbox_waiting", text, status.waiting)
    text = "Files and folders in the inbox that cannot be drops, such as a zip file; the watcher's log says why."
    yield gauge("forecast_inbox_ignored", text, status.ignored)
    text = "Drops of the inbox that cannot be published for reasons outside the drop; they are retried."
    yield gauge("forecast_inbox_failing", text, len(status.failing))
    yield gauge("forecast_inbox_held", "Drops of the inbox that wait for a person's approval.", status.held)
    text = "Seconds since the oldest held drop was held; 0: no drop is held."
    yield gauge("forecast_inbox_held_oldest_age_seconds", text, status.held_age())
    text = "When a drop was last refused; 0: never."
    yield gauge("forecast_inbox_last_refusal_timestamp_seconds", text, status.last_refusal or 0)


def _drops(state: InstanceState) -> Iterator[Metric]:
    text = "Seconds since a drop went live or was already current; 0: never. A rollback does not count."
    yield gauge("forecast_last_drop_age_seconds", text, state.last_drop_age or 0)
    text = "Seconds by which the next drop is overdue; 0: not overdue, or FORECAST_DROP_EVERY is unset."
    yield gauge("forecast_drop_overdue_seconds", text, state.drop_overdue)
