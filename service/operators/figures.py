"""The figures behind the page's charts and rates, from the workers' counters."""

from collections.abc import Iterable, Sequence

import msgspec

from service.base.telemetry import (
    ANSWERS,
    LATENCY_BOUNDS,
    OLDER,
    QUERY_SECONDS,
    REQUEST_SECONDS,
    REQUESTS,
    Histogram,
    Snapshot,
)

_BUCKETS = len(LATENCY_BOUNDS) + 1
# The error code of a name that is not in the release.
NOT_FOUND = "no_matching_records"


class Figures(msgspec.Struct):
    """Counts since the instance started, or of one span. `requests` and `queries` are counted by duration."""

    near: int = 0
    shared: int = 0
    warehouse: int = 0
    previous: int = 0
    not_found: int = 0
    statuses: dict[int, int] = {}
    releases: dict[str, tuple[int, int]] = {}  # answers from a cache, and answers; without OLDER
    requests: list[int] = msgspec.field(default_factory=lambda: [0] * _BUCKETS)
    queries: list[int] = msgspec.field(default_factory=lambda: [0] * _BUCKETS)

    @property
    def asked(self) -> int:
        return sum(self.statuses.values())

    def of_class(self, *hundreds: int) -> int:
        """Returns the number of requests answered with statuses of these hundreds."""
        return sum(count for status, count in self.statuses.items() if status // 100 in hundreds)

    def plus(self, other: "Figures") -> "Figures":
        """Returns the sum of both counts."""
        return other.since(Figures().since(self))

    def since(self, before: "Figures") -> "Figures":
        """Returns the difference to the earlier counts `before`."""
        statuses = self.statuses.keys() | before.statuses.keys()
        counted = {status: self.statuses.get(status, 0) - before.statuses.get(status, 0) for status in statuses}
        return Figures(
            near=self.near - before.near,
            shared=self.shared - before.shared,
            warehouse=self.warehouse - before.warehouse,
            previous=self.previous - before.previous,
            not_found=self.not_found - before.not_found,
            statuses={status: count for status, count in counted.items() if count},
            releases=_without(self.releases, before.releases),
            requests=[now - then for now, then in zip(self.requests, before.requests, strict=True)],
            queries=[now - then for now, then in zip(self.queries, before.queries, strict=True)],
        )


def figures_of(snapshots: Iterable[Snapshot]) -> Figures:
    """Returns the sum of the workers' counts."""
    figures = Figures()
    for snapshot in snapshots:
        for name, labels, value in snapshot.counters:
            if name == ANSWERS.name:
                tier = labels[1]
                setattr(figures, tier, getattr(figures, tier) + value)
                if labels[2] != OLDER and tier != "previous":
                    cached, answers = figures.releases.get(labels[2], (0, 0))
                    cached += value if tier != "warehouse" else 0
                    figures.releases[labels[2]] = cached, answers + value
            elif name == REQUESTS.name:
                status = int(labels[1])
                figures.statuses[status] = figures.statuses.get(status, 0) + value
                if labels[2] == NOT_FOUND:
                    figures.not_found += value
        figures.requests = _with(figures.requests, snapshot, REQUEST_SECONDS.name)
        figures.queries = _with(figures.queries, snapshot, QUERY_SECONDS.name)
    return figures


def _without(all_of_them: dict[str, tuple[int, int]], before: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    found = {}
    for release in all_of_them.keys() | before.keys():
        (cached, answers), (earlier, asked) = all_of_them.get(release, (0, 0)), before.get(release, (0, 0))
        if answers != asked:
            found[release] = cached - earlier, answers - asked
    return found


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Returns the duration, in seconds, that `share` of `counts` did not exceed; None if all counts are 0.

    Like Prometheus's histogram_quantile, it assumes that values are evenly spread within a bucket.
    """
    total = sum(counts)
    if not total:
        return None
    wanted, below, lower = share * total, 0, 0.0
    for bound, count in zip(LATENCY_BOUNDS, counts, strict=False):
        if count and below + count >= wanted:
            return lower + (bound - lower) * (wanted - below) / count
        below, lower = below + count, bound
    return LATENCY_BOUNDS[-1]


def _with(counts: list[int], snapshot: Snapshot, family: str) -> list[int]:
    found: list[Histogram] = [histogram for name, _, histogram in snapshot.histograms if name == family]
    return [sum(bucket) for bucket in zip(counts, *(histogram.counts for histogram in found), strict=True)]
