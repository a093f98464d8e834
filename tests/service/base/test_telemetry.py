"""What a worker counts about itself, and how the counts of many become one."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from service.base.telemetry import (
    ANSWERS,
    LATENCY_BOUNDS,
    QUERY_LOOKUPS,
    QUERY_SECONDS,
    REQUEST_SECONDS,
    REQUESTS,
    Histogram,
    Snapshot,
    Telemetry,
)


def _counted(telemetry: Telemetry) -> dict[tuple[str, tuple[str, ...]], int]:
    return {(name, labels): value for name, labels, value in telemetry.snapshot().counters}


def test_what_is_counted_is_in_the_snapshot() -> None:
    telemetry = Telemetry()
    telemetry.count(REQUESTS, "forecast", "200", "answered")
    telemetry.count(REQUESTS, "forecast", "404", "no_matching_records")
    telemetry.count(QUERY_LOOKUPS, amount=3)
    telemetry.count(QUERY_LOOKUPS)
    assert _counted(telemetry) == {
        ("forecast_requests", ("forecast", "200", "answered")): 1,
        ("forecast_requests", ("forecast", "404", "no_matching_records")): 1,
        ("forecast_warehouse_lookups", ()): 4,
    }


def test_what_is_counted_elsewhere_is_set_and_still_adds_up() -> None:
    telemetry = Telemetry()
    for so_far in (3, 7):
        telemetry.total(REQUESTS, so_far, "forecast", "200", "answered")
    other = Telemetry()
    other.total(REQUESTS, 10, "forecast", "200", "answered")
    telemetry.add(other.snapshot())
    assert _counted(telemetry) == {("forecast_requests", ("forecast", "200", "answered")): 17}


@given(st.lists(st.floats(0, 0.001) | st.floats(0, 10)))
def test_what_counts_jointly_is_in_each_figure_whenever_they_are_read(times: list[float]) -> None:
    jointly, singly = Telemetry(), Telemetry()
    answered, from_near = ("forecast", "200", "answered"), ("forecast", "near", "r1")
    for seconds in times:
        joint = jointly.joint((REQUEST_SECONDS, ("forecast",)), (REQUESTS, answered), (ANSWERS, from_near))
        joint.observe(seconds)
        singly.count(REQUESTS, *answered)
        singly.count(ANSWERS, *from_near)
        singly.observe(REQUEST_SECONDS, seconds, "forecast")
        assert jointly.sum(ANSWERS, tier="near") == singly.sum(ANSWERS, tier="near")
    assert _counted(jointly) == _counted(singly)
    assert [h.counts for *_, h in jointly.snapshot().histograms] == [h.counts for *_, h in singly.snapshot().histograms]
    timed = jointly.histogram(REQUEST_SECONDS, "forecast"), singly.histogram(REQUEST_SECONDS, "forecast")
    assert abs(timed[0].total - timed[1].total) < 1e-9
    assert jointly.counter(REQUESTS, *answered).value == len(times)


@given(st.lists(st.floats(0, 10), max_size=50), st.lists(st.floats(0, 10), max_size=50))
def test_adding_snapshots_is_observing_everything_in_one_place(one: list[float], other: list[float]) -> None:
    first, second, both = Telemetry(), Telemetry(), Telemetry()
    for part, seconds in ((first, one), (second, other)):
        for value in seconds:
            for telemetry in (part, both):
                telemetry.observe(QUERY_SECONDS, value)
                telemetry.count(REQUESTS, "forecast", "200", "answered")
    first.add(msgspec.json.decode(msgspec.json.encode(second.snapshot()), type=Snapshot))
    assert _counted(first) == _counted(both)
    sums, whole = first.snapshot().histograms, both.snapshot().histograms
    assert [histogram.counts for _, _, histogram in sums] == [histogram.counts for _, _, histogram in whole]
    assert all(
        abs(a.total - b.total) < 1e-9 * max(1, b.total) for (_, _, a), (_, _, b) in zip(sums, whole, strict=True)
    )


def test_a_bound_belongs_to_the_bucket_below_it() -> None:
    histogram = Histogram.empty()
    for seconds in (*LATENCY_BOUNDS, 6.0):
        histogram.observe(seconds)
    assert histogram.counts == [1] * (len(LATENCY_BOUNDS) + 1)
