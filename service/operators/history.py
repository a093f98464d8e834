"""The last 24 hours of one instance, over restarts (kept.py): seconds of the last minutes, minutes of the last day.

Each level keeps the total counts at its times. The figures of a span are the difference of two of them.
"""

from bisect import bisect_left
from collections import deque
from itertools import pairwise
from typing import Literal

import msgspec

from service.operators.figures import Figures, quantile
from service.operators.overview import History, HitRate, Point, Store, Traffic

Span = Literal["10m", "2h", "24h"]
# Seconds between two times, and how many are kept: about 3 MB in all.
_LEVELS: dict[Span, tuple[float, int]] = {"10m": (1.0, 601), "2h": (10.0, 721), "24h": (60.0, 1441)}
# Marks further apart have no instance, or a hanging one, between them.
_MOST_STEPS = 10
# A record may come a little early.
_EARLY_SECONDS = 0.5


class Mark(msgspec.Struct, frozen=True, gc=False):
    """The total counts at one time."""

    tick: float  # monotonic seconds: the machine's clock may be set meanwhile
    figures: Figures
    connections: int = 0
    cache_bytes: int | None = None  # memory of the shared cache; None: unknown
    evicted: int | None = None  # entries, since the shared cache started


class FigureHistory:
    """Owned by the instance's observer, which records about once a second. `tick` is now, in monotonic seconds."""

    def __init__(self, tick: float) -> None:
        self._levels: dict[Span, deque[Mark]] = {span: deque(maxlen=kept) for span, (_, kept) in _LEVELS.items()}
        self._drawn: dict[Span, tuple[Mark, History]] = {}
        self.now = Mark(tick, Figures())
        self._offset = 0.0
        self._before = Figures()  # the counts before the last restart
        self.record(tick, self.now.figures, self._offset)

    def record(
        self, tick: float, figures: Figures, offset: float, connections: int = 0, cache: Store | None = None
    ) -> None:
        """`figures` count since the instance started; `offset` converts monotonic to Unix seconds, as of now."""
        known = (cache.memory, cache.evicted) if cache is not None else (None, None)
        self.now, self._offset = Mark(tick, self._before.plus(figures), connections, *known), offset
        for span, (step, _) in _LEVELS.items():
            marks = self._levels[span]
            if not marks or tick - marks[-1].tick >= step - _EARLY_SECONDS:
                marks.append(self.now)

    def marks(self) -> dict[Span, list[Mark]]:
        """Returns the marks to keep over a restart."""
        return {span: list(marks) for span, marks in self._levels.items()}

    def restore(self, kept: dict[Span, list[Mark]], shift: float) -> None:
        """Continues the marks of the instance before a restart; `shift` converts their times. Call it once, at first.

        Raises ValueError if another version wrote them.
        """
        for span, marks in kept.items():
            earlier = [
                msgspec.structs.replace(mark, tick=mark.tick + shift)
                for mark in marks
                if mark.tick + shift < self.now.tick
            ]
            if any(len(mark.figures.requests) != len(self.now.figures.requests) for mark in earlier):
                raise ValueError("another version wrote it")
            self._before = max(self._before, *(mark.figures for mark in earlier), key=lambda one: one.asked)
            self._levels[span].extendleft(reversed(earlier))
        self.now = Mark(self.now.tick, self._before.plus(self.now.figures))
        for level in self._levels.values():  # nothing is counted between the instances
            level[-1] = self.now

    def back(self, seconds: float, tick: float | None = None) -> Mark:
        """Returns the first mark from `seconds` before `tick` (None: now) on, or the oldest of all."""
        wanted = (self.now.tick if tick is None else tick) - seconds
        for marks in self._levels.values():
            if marks[0].tick <= wanted:
                index = bisect_left(marks, wanted, key=lambda mark: mark.tick)
                return marks[min(index, len(marks) - 1)]
        return next(reversed(self._levels.values()))[0]

    def history(self, span: Span) -> History:
        marks = self._levels[span]
        drawn = self._drawn.get(span)
        if drawn is None or drawn[0] is not marks[-1]:
            step = _LEVELS[span][0]
            pairs = (pair for pair in pairwise(marks) if pair[1].tick - pair[0].tick < _MOST_STEPS * step)
            points = tuple(point(*pair, self._offset) for pair in pairs)
            drawn = self._drawn[span] = marks[-1], History(step=step, points=points)
        return drawn[1]

    def latest(self) -> Point:
        """Returns the figures of the last second."""
        marks = self._levels["10m"]
        return point(marks[-2] if len(marks) > 1 else marks[-1], marks[-1], self._offset)


def point(before: Mark, after: Mark, offset: float) -> Point:
    seconds = max(after.tick - before.tick, 0.001)
    found = after.figures.since(before.figures)
    known = before.evicted is not None and after.evicted is not None and after.evicted >= before.evicted
    lost = (after.evicted or 0) - (before.evicted or 0) if known else None
    return Point(
        at=after.tick + offset,
        near=found.near / seconds,
        shared=found.shared / seconds,
        warehouse=found.warehouse / seconds,
        not_found=found.not_found / seconds,
        ok=found.of_class(2, 3) / seconds,
        refused=found.of_class(4) / seconds,
        failed=found.of_class(5) / seconds,
        p50=quantile(found.requests, 0.5),
        p99=quantile(found.requests, 0.99),
        p999=quantile(found.requests, 0.999),
        times=tuple(found.requests),
        releases={name: cached / answers for name, (cached, answers) in found.releases.items() if answers > 0},
        connections=after.connections,
        cache_bytes=after.cache_bytes,
        evictions=None if lost is None else lost / seconds,
    )


def hit_rate(before: Mark, after: Mark) -> HitRate:
    found = after.figures.since(before.figures)
    answers = found.near + found.shared + found.warehouse
    return HitRate(
        seconds=after.tick - before.tick,
        near=found.near,
        shared=found.shared,
        warehouse=found.warehouse,
        previous=found.previous,
        not_found=found.not_found,
        rate=(found.near + found.shared) / answers if answers else None,
    )


def traffic(before: Mark, after: Mark) -> Traffic:
    seconds = max(after.tick - before.tick, 0.001)
    found = after.figures.since(before.figures)
    return Traffic(
        seconds=after.tick - before.tick,
        requests=found.asked / seconds,
        errors=found.of_class(5) / seconds,
        by_status={str(status): count / seconds for status, count in sorted(found.statuses.items())},
        p50=quantile(found.requests, 0.5),
        p99=quantile(found.requests, 0.99),
        p999=quantile(found.requests, 0.999),
    )
