"""The last 24 hours of one instance in memory: seconds of the last minutes, minutes of the last day.

Each level keeps what had been counted at its times. A span is the difference of two of them: nothing is added up.
"""

from bisect import bisect_left
from collections import deque
from itertools import pairwise
from typing import Literal

import msgspec

from service.operators.figures import Figures, quantile
from service.operators.overview import History, HitRate, Point, Traffic

Span = Literal["10m", "2h", "24h"]
# Seconds between two times, and how many are kept: some 3 MB in all.
_LEVELS: dict[Span, tuple[float, int]] = {"10m": (1.0, 601), "2h": (10.0, 721), "24h": (60.0, 1441)}
# A look may come a little early.
_EARLY_SECONDS = 0.5


class Mark(msgspec.Struct, frozen=True, gc=False):
    """What had been counted at one time."""

    at: float  # Unix seconds
    figures: Figures


class FigureHistory:
    """Owned by the instance's observer, which records about once a second."""

    def __init__(self, at: float) -> None:
        self._levels: dict[Span, deque[Mark]] = {span: deque(maxlen=kept) for span, (_, kept) in _LEVELS.items()}
        self._drawn: dict[Span, tuple[Mark, History]] = {}
        self.now = Mark(at, Figures())
        self.record(at, self.now.figures)

    def record(self, at: float, figures: Figures) -> None:
        """`figures` are those since the instance began."""
        self.now = Mark(at, figures)
        for span, (step, _) in _LEVELS.items():
            marks = self._levels[span]
            if not marks or at - marks[-1].at >= step - _EARLY_SECONDS or at < marks[-1].at:
                if marks and at < marks[-1].at:
                    marks.clear()  # the clock was set back
                marks.append(self.now)

    def back(self, seconds: float, at: float | None = None) -> Mark:
        """The latest mark that is `seconds` old at the time `at` (None: now), else the oldest."""
        wanted = (self.now.at if at is None else at) - seconds
        for marks in self._levels.values():
            if marks[0].at <= wanted:
                index = bisect_left(marks, wanted, key=lambda mark: mark.at)
                return marks[min(index, len(marks) - 1)]
        return next(reversed(self._levels.values()))[0]

    def history(self, span: Span) -> History:
        marks = self._levels[span]
        drawn = self._drawn.get(span)
        if drawn is None or drawn[0] is not marks[-1]:
            points = tuple(point(*pair) for pair in pairwise(marks))
            drawn = self._drawn[span] = marks[-1], History(step=_LEVELS[span][0], points=points)
        return drawn[1]

    def latest(self) -> Point:
        """What the last second added."""
        marks = self._levels["10m"]
        return point(marks[-2] if len(marks) > 1 else marks[-1], marks[-1])


def point(before: Mark, after: Mark) -> Point:
    seconds = max(after.at - before.at, 0.001)
    found = after.figures.since(before.figures)
    return Point(
        at=after.at,
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
    )


def hit_rate(before: Mark, after: Mark) -> HitRate:
    found = after.figures.since(before.figures)
    answers = found.near + found.shared + found.warehouse
    return HitRate(
        seconds=after.at - before.at,
        near=found.near,
        shared=found.shared,
        warehouse=found.warehouse,
        previous=found.previous,
        not_found=found.not_found,
        rate=(found.near + found.shared) / answers if answers else None,
    )


def traffic(before: Mark, after: Mark) -> Traffic:
    seconds = max(after.at - before.at, 0.001)
    found = after.figures.since(before.figures)
    return Traffic(
        seconds=after.at - before.at,
        requests=found.asked / seconds,
        errors=found.of_class(5) / seconds,
        by_status={str(status): count / seconds for status, count in sorted(found.statuses.items())},
        p50=quantile(found.requests, 0.5),
        p99=quantile(found.requests, 0.99),
        p999=quantile(found.requests, 0.999),
    )
