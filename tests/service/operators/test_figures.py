"""Figures out of what workers count."""

import pytest

from service.base.telemetry import (
    ANSWERS,
    LATENCY_BOUNDS,
    QUERY_SECONDS,
    REQUEST_SECONDS,
    REQUESTS,
    Telemetry,
)
from service.operators.figures import figures_of, quantile


def test_answers_are_summed_over_workers_areas_and_releases() -> None:
    workers = [Telemetry(), Telemetry()]
    for worker in workers:
        for release in ("r1", "r2"):
            worker.count(ANSWERS, "forecast", "near", release, amount=2)
            worker.count(ANSWERS, "projects", "shared", release)
        worker.count(ANSWERS, "forecast", "previous", "r0")
    figures = figures_of(worker.snapshot() for worker in workers)
    assert (figures.near, figures.shared, figures.warehouse, figures.previous) == (8, 4, 0, 2)
    assert figures.releases == {"r1": (6, 6), "r2": (6, 6)}


def test_requests_are_counted_by_status_refused_ones_included() -> None:
    worker = Telemetry()
    worker.count(REQUESTS, "forecast", "200", "answered", amount=5)
    worker.count(REQUESTS, "forecast", "404", "no_matching_records", amount=2)
    worker.count(REQUESTS, "none", "404", "not_found")
    worker.count(REQUESTS, "none", "414", "uri_too_long")
    figures = figures_of([worker.snapshot()])
    assert figures.statuses == {200: 5, 404: 3, 414: 1}
    assert (figures.asked, figures.of_class(4), figures.not_found) == (9, 4, 2)


def test_durations_are_summed_by_bucket() -> None:
    worker = Telemetry()
    worker.observe(REQUEST_SECONDS, 0.00005, "forecast")
    worker.observe(REQUEST_SECONDS, 99.0, "projects")
    worker.observe(QUERY_SECONDS, 0.00005)
    figures = figures_of([worker.snapshot()])
    assert (figures.requests[0], figures.requests[-1], sum(figures.requests)) == (1, 1, 2)
    assert sum(figures.queries) == 1


def test_a_quantile_is_estimated_as_prometheus_does() -> None:
    counts = [0] * (len(LATENCY_BOUNDS) + 1)
    assert quantile(counts, 0.5) is None
    counts[0] = 100
    assert quantile(counts, 0.5) == LATENCY_BOUNDS[0] / 2
    counts[1] = 100
    assert quantile(counts, 0.75) == pytest.approx((LATENCY_BOUNDS[0] + LATENCY_BOUNDS[1]) / 2)
    counts[-1] = 1000
    assert quantile(counts, 0.99) == LATENCY_BOUNDS[-1]
