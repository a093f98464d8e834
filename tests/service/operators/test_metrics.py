"""The instance's metrics, as Prometheus reads them."""

import time

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from service.base.telemetry import COUNTERS, HISTOGRAMS, REQUEST_SECONDS, REQUESTS, Snapshot, Telemetry
from service.inbox.status import Status
from service.operators.metrics import render_metrics
from service.operators.state import InstanceState
from tests.service.operators.test_state import WELL, but, instance


def samples(state: InstanceState, sums: Snapshot) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample by name and labels; fails if one is there twice."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for family in text_string_to_metric_families(render_metrics(state, sums).decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def test_every_family_is_declared_before_it_is_counted_with_its_labels() -> None:
    """So that dashboards and alarms find their names."""
    text = render_metrics(instance(WELL), Snapshot()).decode()
    assert all(f"# TYPE {family.name}" in text for family in (*COUNTERS, *HISTOGRAMS))
    telemetry = Telemetry()
    telemetry.count(REQUESTS, "forecast", "200", "answered")
    labels = (("area", "forecast"), ("outcome", "answered"), ("status", "200"))
    assert samples(instance(WELL), telemetry.snapshot())["forecast_requests_total", labels] == 1


def test_buckets_are_cumulative() -> None:
    telemetry = Telemetry()
    for seconds in (0.0001, 0.003, 0.003, 60):
        telemetry.observe(REQUEST_SECONDS, seconds, "forecast")
    found = samples(instance(WELL), telemetry.snapshot())

    def bucket(bound: str) -> float:
        return found["forecast_request_seconds_bucket", (("area", "forecast"), ("le", bound))]

    assert [bucket(bound) for bound in ("0.0001", "0.0025", "0.005", "5.0", "+Inf")] == [1, 1, 3, 3, 4]
    assert found["forecast_request_seconds_count", (("area", "forecast"),)] == 4
    assert abs(found["forecast_request_seconds_sum", (("area", "forecast"),)] - 60.0061) < 1e-9


def test_gauges_are_of_the_whole_instance() -> None:
    found = samples(instance(WELL, but(cache_up=False, release="r2", push_connected=False), None), Snapshot())
    assert found["forecast_workers", ()] == 2
    assert found["forecast_workers_wanted", ()] == 3
    assert found["forecast_ready", ()] == 1
    assert found["forecast_store_up", (("store", "keys"),)] == 1
    assert found["forecast_store_up", (("store", "cache"),)] == 0
    assert found["forecast_revocation_push_connections", ()] == 1
    assert found["forecast_usage_waiting", ()] == 2 * WELL.usage_waits
    assert found["forecast_near_cache_bytes", ()] == 2 * WELL.near_bytes
    assert found["forecast_near_cache_entries", ()] == 2 * WELL.near_entries
    assert found["forecast_release", (("illustrative", "false"), ("release", "r1"))] == 1
    assert found["forecast_release", (("illustrative", "false"), ("release", "r2"))] == 1


def test_an_instance_that_is_not_there_yet_has_metrics() -> None:
    found = samples(instance(None), Snapshot())
    assert found["forecast_ready", ()] == 0
    assert found["forecast_store_up", (("store", "keys"),)] == 0


def test_a_foreign_key_store_is_a_metric() -> None:
    assert samples(instance(but(keys_problem="another pepper")), Snapshot())["forecast_key_store_foreign", ()] == 1
    assert samples(instance(but(usage_problem="usage waits")), Snapshot())["forecast_usage_stuck", ()] == 1
    astray = msgspec.structs.replace(instance(WELL), mirror_problem="the store is away")
    assert samples(astray, Snapshot())["forecast_releases_astray", ()] == 1
    assert samples(instance(WELL), Snapshot())["forecast_key_store_foreign", ()] == 0


def test_the_inbox_has_its_figures() -> None:
    names = ("published_total", "refused_total", "waiting", "ignored", "held", "last_refusal_timestamp_seconds")

    def figures(state: InstanceState) -> list[float]:
        found = samples(state, Snapshot())
        return [found[f"forecast_inbox_{name}", ()] for name in names]

    assert figures(instance(WELL)) == [0, 0, 0, 0, 0, 0]
    status = Status(published=3, refused=2, waiting=1, ignored=5, held=4, last_refusal=1e9)
    assert figures(msgspec.structs.replace(instance(WELL), inbox=status)) == [3, 2, 1, 5, 4, 1e9]


def test_the_inbox_and_its_last_drop_have_their_ages() -> None:
    """0 while there is none, so that an alarm needs no exception."""
    names = ("inbox_held_oldest_age_seconds", "last_drop_age_seconds", "drop_overdue_seconds")

    def figures(state: InstanceState) -> list[float]:
        found = samples(state, Snapshot())
        return [found[f"forecast_{name}", ()] for name in names]

    assert figures(instance(WELL)) == [0, 0, 0]
    held = Status(held=1, held_since=time.time() - 100)
    state = msgspec.structs.replace(instance(WELL), inbox=held, last_drop_age=90.0, drop_every=60.0)
    age, *others = figures(state)
    assert 100 <= age < 200
    assert others == [90, 30]


def test_partners_are_named_only_if_they_are_given() -> None:
    named = [("acme", {200: 7, 404: 2}), ("bolt", {200: 1})]
    assert 'partner="' not in render_metrics(instance(WELL), Snapshot()).decode()
    text = render_metrics(instance(WELL), Snapshot(), partners=named).decode()
    assert 'forecast_partner_requests_total{partner="acme",status="404"} 2.0' in text
