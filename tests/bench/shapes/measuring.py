"""Shape by shape: this service and its peer in alternating rounds."""

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.contenders import TIERS, Contender, start_peers, start_tiers
from tests.bench.load import Sample, check_programs, measure, write_requests
from tests.bench.machine import machine
from tests.bench.shapes.catalog import CROWDS, KEPT, SHAPE_PEERS, SHAPES, Crowd, Shape
from tests.bench.shapes.checking import Checked
from tests.bench.shapes.crowds import Waits, beside_a_load
from tests.bench.shapes.requests import Requests
from tests.bench.shapes.results import Measured, MeasuredCrowd, ShapesResults, measured
from tests.bench.stage import CLIENT_CORE, BenchError, Stage, console, stage
from tests.bench.verify import compared

_TIERS = [one for one in TIERS if one.name in ("near", "DuckDB")]
# What a shape costs beside its samples, such as its check.
_AROUND_SECONDS = 2
# Every ZIP code is looked up once for each of two.
_ALL_SECONDS = 60
_START_SECONDS = 60
# Many connections that wrk closed are still to be taken leave of: the next sample does not begin among them.
_MANY, _SETTLE_SECONDS = 1000, 1.0
# By then everything was asked for once, or the shape has failed.
_MOST_RUN_INS = 90


def about_minutes(names: Sequence[str], rounds: int, seconds: int) -> int:
    """How long a run takes."""
    shapes = [
        _AROUND_SECONDS
        + (_ALL_SECONDS if one.asked == "all" else 0)
        + 2 * (one.least_seconds + rounds * max(seconds, one.least_seconds))
        for one in SHAPES
        if one.name in names
    ]
    crowds = [2 * rounds * (one.seconds + 2) for one in CROWDS if one.name in names]
    return round((_START_SECONDS + sum(shapes) + sum(crowds)) / 60 + 0.5)


def measure_shapes(names: Sequence[str], rounds: int, seconds: int) -> ShapesResults:
    """Those of `names` whose peers are installed, each for `rounds` times `seconds`.

    Raises:
        BenchError: if something needed is missing.
    """
    check_programs()
    shapes = [one for one in SHAPES if one.name in names]
    crowds = [one for one in CROWDS if one.name in names]
    before = os.getloadavg()[0]
    with stage() as set_up:
        console.print(
            f"publishing, starting everybody; all of it takes about {about_minutes(names, rounds, seconds)} min"
        )
        set_up.publish()
        wanted = {one.peer for one in shapes} | ({KEPT} if crowds else set())
        run = _Run(set_up, wanted)
        for one in shapes:
            run.shape(one, rounds, seconds)
        os.sched_setaffinity(0, {CLIENT_CORE})  # whoever is started, is; what follows is a client
        for crowd in crowds:
            run.crowd(crowd, rounds)
    return ShapesResults(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        load=(before, os.getloadavg()[0]),
        rounds=rounds,
        seconds=seconds,
        shapes=run.shapes,
        crowds=run.crowds,
        failed=run.failed,
        notes={peer.name: peer.note for peer in SHAPE_PEERS if peer.note and peer.name in wanted},
        missing=run.missing,
    )


class _Run:
    """Everybody who is needed, started."""

    def __init__(self, set_up: Stage, peers: set[str]) -> None:
        tiers = start_tiers(set_up, _TIERS)
        self._near = tiers[0]
        others, self.missing = start_peers(
            set_up, self._near.endpoint.base, [peer for peer in SHAPE_PEERS if peer.name in peers]
        )
        self._all = {one.name: one for one in (*tiers, *others)}
        self._folder = set_up.folder
        self._requests = Requests(set_up)
        self.shapes: list[Measured] = []
        self.crowds: list[MeasuredCrowd] = []
        self.failed: dict[str, str] = {}
        cold = [one for one in others if one.group == "miss"]
        if cold:
            compared(tiers[-1], cold, self._requests.cold())

    def shape(self, shape: Shape, rounds: int, seconds: int) -> None:
        """Nothing if its peer is not installed; with wrong answers, it is one that failed."""
        if shape.peer not in self._all:
            return
        try:
            sides = [_Side(self, shape, self._all[name]) for name in (shape.ours, shape.peer)]
            for number in range(rounds):
                for side in sides if number % 2 == 0 else sides[::-1]:
                    side.sample(max(seconds, shape.least_seconds))
        except BenchError as error:
            self.failed[shape.name] = str(error)
            console.print(str(error), style="red", markup=False)
            return
        ours, theirs = (side.samples for side in sides)
        found = measured(shape.name, shape.what, shape.ours, shape.peer, shape.floor, ours, theirs)
        self.shapes.append(found)
        console.print(f"{shape.what}: {found.rate.median:.2f}, p99 {found.p99.median:.2f}", style="dim")

    def crowd(self, wanted: Crowd, rounds: int) -> None:
        if KEPT not in self._all:
            return
        waits: dict[str, list[Waits]] = {self._near.name: [], KEPT: []}
        for number in range(rounds):
            for name in waits if number % 2 == 0 else reversed(waits):
                head = self.heads(SHAPES[0], self._all[name])[0]
                waits[name].append(beside_a_load(self._all[name].endpoint, head, wanted.connections, wanted.seconds))
        self.crowds.append(MeasuredCrowd(wanted.name, wanted.what, wanted.connections, waits))
        console.print(f"{wanted.what}: measured", style="dim")

    def heads(self, shape: Shape, contender: Contender) -> list[bytes]:
        return self._requests.heads(shape, contender)

    def checked(self, shape: Shape, contender: Contender, heads: Sequence[bytes]) -> Checked:
        return Checked(shape, contender, heads, self._near.endpoint.base)

    def file(self, heads: Sequence[bytes], name: str) -> Path:
        return write_requests(self._folder / name, heads)


class _Side:
    """One contender in one shape: checked, everything asked for once, then its samples."""

    def __init__(self, run: _Run, shape: Shape, contender: Contender) -> None:
        self._shape = shape
        self._contender = contender
        heads = run.heads(shape, contender)
        self._count = len(heads)
        self._file = run.file(heads, f"{shape.name}.{'ours' if contender.ours else 'theirs'}")
        self._checked = run.checked(shape, contender, heads)
        self._next = 0
        self.samples: list[Sample] = []
        if shape.asked != "cold":
            self._run_in()

    def sample(self, seconds: int) -> None:
        if self._shape.asked == "cold":
            self._contender.forget()
        sample = self._measure(seconds)
        self._checked.holds(sample)
        self.samples.append(sample)

    def _run_in(self) -> None:
        """Until everything was asked for."""
        for _ in range(_MOST_RUN_INS):
            self._measure(self._shape.least_seconds)
            if self._next >= self._count:
                return
        raise BenchError(f"{self._shape.what}: {self._contender.name} did not answer everything once")

    def _measure(self, seconds: int) -> Sample:
        sample = measure(
            self._contender.endpoint.base,
            self._file,
            unique=self._shape.unique,
            seconds=seconds,
            start=self._next,
            connections=self._shape.connections,
            refused=self._shape.status is not None and self._shape.status >= 400,
        )
        self._next += sample.answers
        if self._shape.connections >= _MANY:
            time.sleep(_SETTLE_SECONDS)
        return sample
