"""The figures of a worker: plain numbers in one event loop, no locks, no shared memory.

The supervisor adds up the snapshots of all workers, and operators/metrics.py prints the sums.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Sequence

import msgspec

# Upper bounds of a histogram's buckets, in seconds.
LATENCY_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Family(msgspec.Struct, frozen=True):
    """One metric: a constant of this module."""

    name: str
    help: str
    labels: tuple[str, ...]


REQUESTS = Family("forecast_requests", "Requests answered.", ("area", "status", "outcome"))
TEST_REQUESTS = Family("forecast_test_requests", "Requests of test keys, in no other figure.", ("status", "outcome"))
LOOKUPS = Family(
    "forecast_cache_lookups",
    "Look-ups in each tier; a request may make several. For the hit rate, use forecast_answers_total.",
    ("tier", "outcome"),
)
STORES_FAILED = Family("forecast_cache_stores_failed", "Answers that the shared cache did not take.", ("reason",))
NEAR_LEFT = Family("forecast_near_cache_left", "Entries that left the near cache.", ("reason",))
ANSWERS = Family(
    "forecast_answers",
    "Answers of data areas (200 and 304), by the tier that had them. The hit rate comes from these.",
    ("area", "tier", "release"),
)
OLDER = "older"  # instead of the names of old releases
KEY_CHECKS = Family("forecast_key_checks", "API key checks.", ("outcome",))
REJECTED = Family("forecast_connections_rejected", "Requests refused before they could be routed.", ("code",))
REQUEST_SECONDS = Family("forecast_request_seconds", "Time from the request's headers to its answer.", ("area",))
LOOKUP_SECONDS = Family("forecast_cache_lookup_seconds", "Time of one look-up in a tier.", ("tier",))
QUERY_SECONDS = Family("forecast_warehouse_query_seconds", "Time of one DuckDB query, waiting excluded.", ())
QUERY_LOOKUPS = Family("forecast_warehouse_lookups", "Look-ups in DuckDB; those that wait together share a query.", ())
TASK_FAILURES = Family("forecast_task_failures", "Unexpected failures of background tasks, which continue.", ("task",))
LINES_DROPPED = Family("forecast_log_lines_dropped", "Lines of the request log that standard error did not take.", ())
TRACES_DROPPED = Family("forecast_traces_dropped", "Traced requests that the collector did not take.", ())
ERRORS_DROPPED = Family("forecast_own_errors_dropped", "Errors that are not kept for the partners they went to.", ())
COUNTERS = (
    REQUESTS,
    TEST_REQUESTS,
    ANSWERS,
    LOOKUPS,
    STORES_FAILED,
    NEAR_LEFT,
    KEY_CHECKS,
    REJECTED,
    QUERY_LOOKUPS,
    TASK_FAILURES,
    LINES_DROPPED,
    TRACES_DROPPED,
    ERRORS_DROPPED,
)
HISTOGRAMS = (REQUEST_SECONDS, LOOKUP_SECONDS, QUERY_SECONDS)

Sample = tuple[str, tuple[str, ...]]  # family name, label values
Labelled = tuple[Family, tuple[str, ...]]  # with a constant above


class Counter:
    """A number that only rises, for the life of its Telemetry.

    Code that counts often keeps the object: finding it takes longer than counting.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Histogram(msgspec.Struct):
    """Observed durations. `counts` is by bucket; its last element counts durations above every bound."""

    counts: list[int]
    total: float = 0.0  # seconds

    @classmethod
    def empty(cls) -> "Histogram":
        return cls([0] * (len(LATENCY_BOUNDS) + 1))

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(LATENCY_BOUNDS, seconds)] += 1
        self.total += seconds

    def add(self, other: "Histogram") -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


class JointCount:
    """Figures that a request counts in: each observation adds 1 to some counters, and its time to a histogram."""

    __slots__ = ("_counters", "_histogram")

    def __init__(self, histogram: Histogram, counters: Sequence[Counter]) -> None:
        self._histogram = histogram
        self._counters = counters

    def observe(self, seconds: float) -> None:
        self._histogram.observe(seconds)
        for counter in self._counters:
            counter.value += 1


class Snapshot(msgspec.Struct):
    """The figures of one worker since it started, as sent to the supervisor: metric, labels, value."""

    counters: list[tuple[str, tuple[str, ...], int]] = []
    histograms: list[tuple[str, tuple[str, ...], Histogram]] = []

    def fold(self, family: Family, label: str, but: Collection[str]) -> None:
        """Counts all samples of `family` whose `label` is not in `but` as OLDER: changing names must not pile up where
        snapshots are added up.
        """
        place = family.labels.index(label)
        for index, (name, values, value) in enumerate(self.counters):
            if name == family.name and values[place] not in but:
                self.counters[index] = name, (*values[:place], OLDER, *values[place + 1 :]), value


class Telemetry:
    """The figures of one worker, for as long as it lives; in the supervisor, the sum over workers."""

    def __init__(self) -> None:
        self._counters: defaultdict[Sample, Counter] = defaultdict(Counter)
        self._histograms: defaultdict[Sample, Histogram] = defaultdict(Histogram.empty)

    def counter(self, family: Family, *labels: str) -> Counter:
        return self._counters[family.name, labels]

    def histogram(self, family: Family, *labels: str) -> Histogram:
        return self._histograms[family.name, labels]

    def joint(self, timed: Labelled, *counted: Labelled) -> JointCount:
        """Returns a count in several figures at once: `timed` belongs to a histogram, the others to counters."""
        return JointCount(self.histogram(timed[0], *timed[1]), [self.counter(of, *labels) for of, labels in counted])

    def count(self, family: Family, *labels: str, amount: int = 1) -> None:
        self._counters[family.name, labels].value += amount

    def total(self, family: Family, value: int, *labels: str) -> None:
        """Sets a sum that is counted elsewhere, where a call for each count would cost too much."""
        self._counters[family.name, labels].value = value

    def observe(self, family: Family, seconds: float, *labels: str) -> None:
        self._histograms[family.name, labels].observe(seconds)

    def sum(self, family: Family, **labels: str) -> int:
        """Returns the sum of the counters of `family` that have these labels."""
        wanted = [(family.labels.index(name), value) for name, value in labels.items()]
        return sum(
            counter.value
            for (name, values), counter in self._counters.items()
            if name == family.name and all(values[place] == value for place, value in wanted)
        )

    def add(self, snapshot: Snapshot) -> None:
        for name, labels, value in snapshot.counters:
            self._counters[name, labels].value += value
        for name, labels, histogram in snapshot.histograms:
            self._histograms[name, labels].add(histogram)

    def snapshot(self) -> Snapshot:
        return Snapshot(
            [(name, labels, counter.value) for (name, labels), counter in self._counters.items()],
            [(name, labels, histogram) for (name, labels), histogram in self._histograms.items()],
        )
