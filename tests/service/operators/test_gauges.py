"""Metrics of what an instance runs on."""

import msgspec

from service.base.telemetry import REQUEST_SECONDS, Snapshot, Telemetry
from service.operators.metrics import render_metrics
from service.operators.overview import EVENT_KINDS, Keys, Store, StoreNode
from service.operators.state import InstanceState
from tests.service.operators.test_metrics import samples
from tests.service.operators.test_state import WELL, but, instance


def gauges(state: InstanceState) -> dict[tuple[str, str], float]:
    """By name and the value of the label, if there is one."""
    return {
        (name, labels[0][1] if labels else ""): value for (name, labels), value in samples(state, Snapshot()).items()
    }


def test_the_two_stores_have_their_figures() -> None:
    keys = Store(name="keys", up=True, memory=10, memory_limit=None, evicted=0, latency=0.001)
    found = gauges(msgspec.structs.replace(instance(WELL), stores=(keys, Store(name="cache", up=False))))
    assert found["forecast_store_memory_bytes", "keys"] == 10
    assert found["forecast_store_memory_limit_bytes", "keys"] == 0
    assert found["forecast_store_evicted_keys_total", "keys"] == 0
    assert found["forecast_store_latency_seconds", "keys"] == 0.001
    assert ("forecast_store_latency_seconds", "cache") not in found


def test_each_node_of_a_cluster_has_its_figures() -> None:
    nodes = (
        StoreNode(node="h1:6379", up=True, memory=10, memory_limit=100, evicted=2, latency=0.001),
        StoreNode(node="h2:6379", up=False),
    )
    cache = Store(name="cache", up=False, memory=10, nodes=nodes)
    found = gauges(msgspec.structs.replace(instance(WELL), stores=(cache,)))
    assert (found["forecast_cache_node_up", "h1:6379"], found["forecast_cache_node_up", "h2:6379"]) == (1, 0)
    assert found["forecast_cache_node_memory_bytes", "h1:6379"] == 10
    assert found["forecast_cache_node_memory_limit_bytes", "h1:6379"] == 100
    assert found["forecast_cache_node_evicted_keys_total", "h1:6379"] == 2
    assert found["forecast_cache_node_latency_seconds", "h1:6379"] == 0.001
    assert ("forecast_cache_node_latency_seconds", "h2:6379") not in found
    assert not [name for name, _ in gauges(instance(WELL)) if name.startswith("forecast_cache_node")]


def test_used_room_is_shown_beside_its_limit() -> None:
    state = msgspec.structs.replace(
        instance(
            but(connections=3, connections_limit=100, waiting=2), but(connections=4, connections_limit=100, waiting=5)
        ),
        lookup_queue=256,
        disk_free=5,
        disk_size=9,
    )
    found = gauges(state)
    assert (found["forecast_connections", ""], found["forecast_connections_limit", ""]) == (7, 200)
    assert [found["forecast_worker_connections", pid] for pid in ("100", "101")] == [3, 4]
    assert found["forecast_warehouse_waiting_lookups", ""] == 7
    assert found["forecast_warehouse_waiting_lookups_limit", ""] == 512
    assert (found["forecast_disk_free_bytes", ""], found["forecast_disk_size_bytes", ""]) == (5, 9)
    assert ("forecast_disk_free_bytes", "") not in gauges(instance(WELL))


def test_keys_that_expire_are_counted_once_they_were() -> None:
    keys = Keys(expire_within_7_days=1, expire_within_30_days=4)
    found = gauges(msgspec.structs.replace(instance(WELL), keys=keys))
    assert (found["forecast_keys_expiring", "7d"], found["forecast_keys_expiring", "30d"]) == (1, 4)
    assert ("forecast_keys_expiring", "7d") not in gauges(instance(WELL))


def test_each_worker_has_its_latency() -> None:
    slow = Telemetry()
    slow.observe(REQUEST_SECONDS, 2.0, "forecast")
    slow.observe(REQUEST_SECONDS, 2.0, "projects")
    found = samples(instance(WELL, but(telemetry=slow.snapshot()), None), Snapshot())
    assert found["forecast_worker_request_seconds_count", (("pid", "100"),)] == 0
    assert found["forecast_worker_request_seconds_sum", (("pid", "101"),)] == 4.0
    assert ("forecast_worker_request_seconds_count", (("pid", "102"),)) not in found


def test_events_are_counted_from_the_first_scrape_on() -> None:
    text = render_metrics(instance(WELL), Snapshot(), {"purge": 2}).decode()
    assert 'forecast_events_total{kind="purge"} 2.0' in text
    assert all(f'forecast_events_total{{kind="{kind}"}}' in text for kind in EVENT_KINDS)
    assert "forecast_build_info{" in text
