"""The most frequent of many names, in little memory: Space-Saving (Metwally, Agrawal, El Abbadi: Efficient Computation
of Frequent and Top-k Elements in Data Streams, ICDT 2005), over about the last hour.
"""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from heapq import heappush, heapreplace
from math import exp

import msgspec

from service.base.ipc import PartnerSample, Sample, SampleKind
from service.operators.figures import quantile
from service.operators.overview import Partner, Ranked, Rankings

# Names counted of each kind. A name with more than one in NAMES of the counts is always among them.
NAMES = 500
SHOWN = 20
SHOWN_PARTNERS = 100
_MOST_PARTNERS = 1000
_PACE_SECONDS = 60.0
# The last hour is the current half-hour and the one before.
WINDOW_SECONDS = 1800.0

# A canonical query: its ZIP code, its city, its filters as JSON. A page's limit and cursor follow on other lines.
_CANONICAL = re.compile(r"(?:zip:(\d{5}))?\+?(?:city:([A-Z]{2}):([^{\n]*))?(\{[^\n]*)?(?:\n.*)?", re.DOTALL)
_FILTER = re.compile(r'"(\w+)":"([^"]*)"')

_Name = tuple[str, str]  # name, detail
_Counts = dict[SampleKind, list[tuple[_Name, int, int]]]  # name, count, its largest possible excess


class KeptRankings(msgspec.Struct, frozen=True):
    """The current window of counts and the one before, with their starts in monotonic seconds."""

    now: _Counts
    before: _Counts
    since: float
    before_since: float
    partners: dict[str, PartnerSample]
    partners_before: dict[str, PartnerSample]


class SpaceSaving:
    """Counts at most `size` names. A new name takes over the place and the count of the least frequent."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.counts: dict[_Name, tuple[int, int]] = {}  # count, and its largest possible excess
        self._lightest: list[tuple[int, _Name]] = []  # a heap of all names, each with an earlier or its current count

    def add(self, name: _Name, count: int) -> None:
        counts = self.counts
        before = counts.get(name)
        if before is not None:
            counts[name] = before[0] + count, before[1]
        elif len(counts) < self._size:
            self.put(name, count, 0)
        else:
            while (least := counts[self._lightest[0][1]][0]) != self._lightest[0][0]:
                heapreplace(self._lightest, (least, self._lightest[0][1]))
            _, lightest = heapreplace(self._lightest, (least + count, name))
            del counts[lightest]
            counts[name] = least + count, least

    def put(self, name: _Name, count: int, error: int) -> None:
        """Adds a new name, for which there is room."""
        self.counts[name] = count, error
        heappush(self._lightest, (count, name))


def as_sent(name: str) -> str:
    """Returns a sampled query with its parameters as partners send them. Other names stay the same.

    All pages of a list get the same name.
    """
    area, _, canonical = name.partition(" ")
    found = _CANONICAL.fullmatch(canonical)
    if found is None or not (found[1] or found[2]):
        return name
    parameters = [("zip_code", found[1]), ("city_name", found[3]), ("state_code", found[2])]
    parameters += _FILTER.findall(found[4] or "")
    return f"{area} {'&'.join(f'{parameter}={value}' for parameter, value in parameters if value)}"


class RankingBoard:
    """Counts the samples of one instance's workers. Its supervisor owns it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._since = self._before_since = self._began  # start of the current window, and of the previous one
        self._now = _window()
        self._before = _window()
        self._partners: dict[str, PartnerSample] = {}
        self._partners_before: dict[str, PartnerSample] = {}
        # by partner: all requests by status, the requests a second, and when that was
        self._totals: dict[str, tuple[Counter[int], float, float]] = {}

    def add(self, samples: Iterable[Sample], partners: Iterable[PartnerSample] = ()) -> None:
        self._turn()
        now = self._clock()
        for partner in partners:
            requests = sum(partner.statuses.values())
            total, pace, at = self._totals.get(partner.partner, (Counter(), 0.0, now))
            total.update(partner.statuses)
            self._totals[partner.partner] = (
                total,
                pace * exp((at - now) / _PACE_SECONDS) + requests / _PACE_SECONDS,
                now,
            )
            _partner_in(self._partners, partner.partner).add(partner)
        for seen in samples:
            self._now[seen.kind].add((as_sent(seen.name), seen.detail), seen.count)

    def rankings(self) -> Rankings:
        self._turn()
        return Rankings(
            seconds=self._clock() - self._before_since,
            queries=self._ranked("query"),
            missed=self._ranked("missed"),
            unknown=self._ranked("unknown"),
            keys=self._ranked("key"),
            limited=self._ranked("limited"),
            refused=self._ranked("refused"),
        )

    def partners(self) -> tuple[Partner, ...]:
        """Returns the busiest partners."""
        self._turn()
        windows = (self._partners_before, self._partners)
        requests = Counter[str]()
        for window in windows:
            requests.update({name: sum(found.statuses.values()) for name, found in window.items()})
        busiest = sorted(requests, key=lambda name: (-requests[name], name))[:SHOWN_PARTNERS]
        sums = {name: PartnerSample(name) for name in busiest}
        for window in windows:
            for name in sums.keys() & window.keys():
                sums[name].add(window[name])
        return tuple(self._partner(found) for found in sums.values())

    def _partner(self, found: PartnerSample) -> Partner:
        _, pace, at = self._totals.get(found.partner, (Counter(), 0.0, 0.0))
        return Partner(
            name=found.partner,
            requests=sum(found.statuses.values()),
            per_second=pace * exp((at - self._clock()) / _PACE_SECONDS),
            statuses={str(status): count for status, count in sorted(found.statuses.items())},
            p50=quantile(found.seconds.counts, 0.5),
            p99=quantile(found.seconds.counts, 0.99),
            hit_rate=found.cached / found.answers if found.answers else None,
            quota_used=found.quota,
            rate=found.rate,
            last_error=found.last_error,
        )

    def totals(self, most: int) -> list[tuple[str, Mapping[int, int]]]:
        """Returns all requests by status of the busiest partners since the instance started."""
        busiest = sorted(self._totals.items(), key=lambda one: (-one[1][0].total(), one[0]))
        return [(name, total) for name, (total, _, _) in busiest[:most]]

    def keep(self) -> KeptRankings:
        now, before = (
            {kind: [(name, *counts) for name, counts in sketch.counts.items()] for kind, sketch in window.items()}
            for window in (self._now, self._before)
        )
        return KeptRankings(
            now, before, self._since, self._before_since, dict(self._partners), dict(self._partners_before)
        )

    def restore(self, kept: KeptRankings, shift: float) -> None:
        """Continues the counts of before a restart; `shift` converts their times."""
        for window, counts in ((self._now, kept.now), (self._before, kept.before)):
            for kind, names in counts.items():
                for name, count, error in names[:NAMES]:
                    window[kind].put(name, count, error)
        self._partners, self._partners_before = kept.partners, kept.partners_before
        self._since, self._before_since = (min(at + shift, self._began) for at in (kept.since, kept.before_since))

    def _ranked(self, kind: SampleKind) -> tuple[Ranked, ...]:
        sums: defaultdict[_Name, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for window in (self._before, self._now):
            for name, (count, error) in window[kind].counts.items():
                sums[name] = sums[name][0] + count, sums[name][1] + error
        heaviest = sorted(sums.items(), key=lambda one: (-one[1][0], one[0]))[:SHOWN]
        # leaves out counts that may be mostly error: many names, each with a few requests
        return tuple(
            Ranked(name, count, error, detail) for (name, detail), (count, error) in heaviest if error <= count / 2
        )

    def _turn(self) -> None:
        now = self._clock()
        if now - self._since < WINDOW_SECONDS:
            return
        idle = now - self._since >= 2 * WINDOW_SECONDS
        self._before, self._now = _window() if idle else self._now, _window()
        self._partners_before, self._partners = {} if idle else self._partners, {}
        self._totals = dict(sorted(self._totals.items(), key=lambda one: -one[1][2])[:_MOST_PARTNERS])
        self._before_since, self._since = now if idle else self._since, now


def _window() -> defaultdict[SampleKind, SpaceSaving]:
    return defaultdict(lambda: SpaceSaving(NAMES))


def _partner_in(window: dict[str, PartnerSample], name: str) -> PartnerSample:
    if len(window) >= _MOST_PARTNERS and name not in window:
        return PartnerSample(name)  # counted nowhere
    return window.setdefault(name, PartnerSample(name))
