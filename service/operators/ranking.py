"""The most frequent of many names, in little memory: Space-Saving (Metwally, Agrawal, El Abbadi: Efficient Computation
of Frequent and Top-k Elements in Data Streams, ICDT 2005), over about the last hour.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from heapq import heappush, heapreplace

import msgspec

from service.base.ipc import Sample, SampleKind
from service.operators.overview import Ranked, Rankings

# Names counted of each kind. A name with more than one in NAMES of the counts is always among them.
NAMES = 500
SHOWN = 20
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

    def add(self, samples: Iterable[Sample]) -> None:
        self._turn()
        for seen in samples:
            self._now[seen.kind].add((as_sent(seen.name), seen.detail), seen.count)

    def rankings(self) -> Rankings:
        self._turn()
        keys = self._ranked("key", NAMES)
        partners: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for key in keys:
            count, error = partners[key.detail]
            partners[key.detail] = count + key.count, error + key.error
        return Rankings(
            seconds=self._clock() - self._before_since,
            queries=self._ranked("query"),
            missed=self._ranked("missed"),
            unknown=self._ranked("unknown"),
            partners=tuple(
                Ranked(name, count, error)
                for name, (count, error) in sorted(partners.items(), key=lambda one: -one[1][0])[:SHOWN]
            ),
            keys=keys[:SHOWN],
            limited=self._ranked("limited"),
            refused=self._ranked("refused"),
        )

    def keep(self) -> KeptRankings:
        now, before = (
            {kind: [(name, *counts) for name, counts in sketch.counts.items()] for kind, sketch in window.items()}
            for window in (self._now, self._before)
        )
        return KeptRankings(now, before, self._since, self._before_since)

    def restore(self, kept: KeptRankings, shift: float) -> None:
        """Continues the counts of before a restart; `shift` converts their times."""
        for window, counts in ((self._now, kept.now), (self._before, kept.before)):
            for kind, names in counts.items():
                for name, count, error in names[:NAMES]:
                    window[kind].put(name, count, error)
        self._since, self._before_since = (min(at + shift, self._began) for at in (kept.since, kept.before_since))

    def _ranked(self, kind: SampleKind, most: int = SHOWN) -> tuple[Ranked, ...]:
        sums: defaultdict[_Name, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for window in (self._before, self._now):
            for name, (count, error) in window[kind].counts.items():
                sums[name] = sums[name][0] + count, sums[name][1] + error
        heaviest = sorted(sums.items(), key=lambda one: (-one[1][0], one[0]))[:most]
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
        self._before_since, self._since = now if idle else self._since, now


def _window() -> defaultdict[SampleKind, SpaceSaving]:
    return defaultdict(lambda: SpaceSaving(NAMES))
