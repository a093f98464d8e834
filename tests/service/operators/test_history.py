"""The last 24 hours in memory."""

import tracemalloc
from copy import deepcopy
from itertools import pairwise

import msgspec

from service.base.telemetry import LATENCY_BOUNDS
from service.operators.figures import Figures
from service.operators.history import FigureHistory, Span, hit_rate, traffic
from service.operators.overview import Store

BUCKETS = len(LATENCY_BOUNDS) + 1


def counted(number: int) -> Figures:
    """After `number` seconds in which each brought three near hits, a miss, and an error."""
    return Figures(
        near=3 * number,
        warehouse=number,
        not_found=number,
        statuses={200: 4 * number, 404: number, 503: number},
        requests=[6 * number] + [0] * (BUCKETS - 1),
        queries=[number] + [0] * (BUCKETS - 1),
    )


def recorded(seconds: int) -> FigureHistory:
    history = FigureHistory(1000.0)
    for second in range(1, seconds + 1):
        history.record(1000.0 + second, counted(second), 0.0)
    return history


def test_a_span_is_what_was_counted_in_it() -> None:
    history = recorded(5000)
    minute, hour = history.back(60), history.back(3600)
    assert (history.now.tick - minute.tick, history.now.tick - hour.tick) == (60, 3600)
    rate = hit_rate(hour, history.now)
    assert (rate.near, rate.warehouse, rate.not_found, rate.rate) == (10_800, 3600, 3600, 0.75)
    lately = traffic(minute, history.now)
    assert (lately.requests, lately.errors, lately.by_status) == (6.0, 1.0, {"200": 4.0, "404": 1.0, "503": 1.0})


def test_a_young_instance_says_how_much_a_span_covers() -> None:
    history = recorded(30)
    assert hit_rate(history.back(3600), history.now).seconds == 30
    assert hit_rate(history.now, history.now).rate is None
    assert traffic(history.now, history.now).p99 is None


def test_each_span_has_its_steps_in_a_few_megabytes() -> None:
    history = recorded(90_000)
    tracemalloc.start()
    copied = deepcopy(history)  # to trace each record would take seconds
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 5 << 20
    assert copied.latest() == history.latest()
    spans: tuple[tuple[Span, int, int], ...] = (("10m", 1, 600), ("2h", 10, 720), ("24h", 60, 1440))
    for span, step, points in spans:
        found = history.history(span)
        assert (found.step, len(found.points)) == (step, points)
        gaps = {round(after.at - before.at) for before, after in pairwise(found.points)}
        assert gaps == {step}
        last = found.points[-1]
        assert (last.near, last.warehouse, last.ok, last.refused, last.failed) == (3, 1, 4, 1, 1)


def test_a_clock_that_is_set_moves_the_times_and_no_figure() -> None:
    history = recorded(100)
    before = [point.at for point in history.history("10m").points]
    history.record(1101.0, counted(101), -3600.0)
    assert history.latest() == msgspec.structs.replace(history.latest(), near=3, warehouse=1, at=1101.0 - 3600)
    assert hit_rate(history.back(60), history.now).seconds == 60
    after = [point.at for point in history.history("10m").points]
    assert after[:-1] == [at - 3600 for at in before]
    assert after == sorted(after)


def test_a_point_has_the_hit_rate_of_each_release_and_what_the_cache_lost() -> None:
    history = FigureHistory(1000.0)
    cache = Store(name="cache", up=True, memory=7_000, evicted=100)
    first = msgspec.structs.replace(counted(1), releases={"r1": (9, 10)})
    history.record(1001.0, first, 0.0, 3, cache)
    second = msgspec.structs.replace(counted(2), releases={"r1": (9, 10), "r2": (1, 4)})
    history.record(1002.0, second, 0.0, 5, msgspec.structs.replace(cache, evicted=102))
    before, after = history.history("10m").points
    assert (before.releases, before.connections, before.evictions) == ({"r1": 0.9}, 3, None)
    assert (after.releases, after.connections, after.evictions, after.cache_bytes) == ({"r2": 0.25}, 5, 2, 7000)
    assert sum(after.times) == 6
    history.record(1003.0, second, 0.0, 5, msgspec.structs.replace(cache, evicted=1))
    assert history.latest().evictions is None, "it was restarted"
