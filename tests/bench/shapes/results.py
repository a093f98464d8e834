"""What the shapes found: samples, and ratios of each round."""

import statistics
from collections.abc import Sequence

import msgspec

from tests.bench.load import Sample
from tests.bench.report import Run
from tests.bench.shapes.catalog import Floor
from tests.bench.shapes.crowds import Waits


class Spread(msgspec.Struct, frozen=True):
    """Of all rounds."""

    median: float
    least: float
    most: float


class Measured(msgspec.Struct, frozen=True):
    """A shape: a sample per round of `tier`, which is this project's, and of `peer`.

    `rate`: the tier's answers per second over the peer's, `p99`: its 99th percentile over the peer's, `cost`: the
    peer's processor time per answer over the tier's. All of them within rounds.
    """

    name: str
    what: str
    tier: str
    peer: str
    floor: Floor | None
    ours: list[Sample]
    theirs: list[Sample]
    rate: Spread
    p99: Spread
    cost: Spread

    @property
    def holds(self) -> bool | None:
        """Whether it reaches its floors, if it has any."""
        if self.floor is None:
            return None
        return self.rate.median >= self.floor.rate and (self.floor.p99 is None or self.p99.median <= self.floor.p99)


class MeasuredCrowd(msgspec.Struct, frozen=True):
    """A crowd: what its connections waited for and got, a record per round of each contender."""

    name: str
    what: str
    connections: int
    waits: dict[str, list[Waits]]


class ShapesResults(Run, frozen=True, kw_only=True):
    """`failed`: shapes with wrong answers, which do not count, and the first of them."""

    shapes: list[Measured]
    crowds: list[MeasuredCrowd]
    failed: dict[str, str]


def measured(
    name: str, what: str, tier: str, peer: str, floor: Floor | None, ours: list[Sample], theirs: list[Sample]
) -> Measured:
    rounds = list(zip(ours, theirs, strict=True))
    return Measured(
        name=name,
        what=what,
        tier=tier,
        peer=peer,
        floor=floor,
        ours=ours,
        theirs=theirs,
        rate=spread([one.rate / other.rate for one, other in rounds]),
        p99=spread([one.p99 / other.p99 for one, other in rounds if other.p99]),
        cost=spread([other.cost / one.cost for one, other in rounds if one.cost]),
    )


def spread(values: Sequence[float]) -> Spread:
    """Zero where there are none."""
    return Spread(statistics.median(values), min(values), max(values)) if values else Spread(0.0, 0.0, 0.0)
