"""Whether a worker that does not report hangs, or is only given no processor.

A machine that is overloaded keeps good workers silent. So only time counts in which a worker could have answered: it
held a processor, or wanted none. Time in which the supervisor itself was late counts little.
"""

from collections import Counter
from pathlib import Path

import msgspec

# How often a worker is to be looked at.
LOOK_SECONDS = 0.25
# Of one look, however late it comes: the supervisor, too, may have been given no processor.
_LONGEST_STEP_SECONDS = 2 * LOOK_SECONDS
# Operators are told after the first; after the second, the worker is replaced. The longest good turn of a loop, the
# garbage collection when a national release was opened, takes 0.05 s of a processor.
_TOLD_SECONDS = 1.0
_HANGS_SECONDS = 2.0
# Of silence altogether, where it cannot be told what the worker does.
_LONGEST_SECONDS = 15.0
_WORDS = {"T": "stopped", "t": "stopped", "D": "waiting for a disk", "R": "busy"}


class Sample(msgspec.Struct, frozen=True):
    """What the kernel says of a worker's main thread, which runs its event loop. Seconds are since its start."""

    state: str  # R: runs or could run; S: waits; D: waits in the kernel; T: stopped (proc(5))
    ran: float  # seconds with a processor
    waited: float  # seconds without one that it could have used, until it last got one
    wrote: int  # times that it wrote to a file or a connection


class Silence:
    """One silence of a worker, from the first look that finds it silent; owned by the worker's `WorkerProcess`.

    `starting`: it has no event loop yet, and nobody waits for it.
    """

    def __init__(self, *, starting: bool = False) -> None:
        self._starting = starting
        self._all = 0.0
        self._able = 0.0  # in which it could have answered
        self._last: tuple[float, Sample | None] | None = None
        self._states = Counter[str]()  # how often each was seen

    def look(self, now: float, sample: Sample | None) -> None:
        """Call every `LOOK_SECONDS`. `now` is in seconds; `sample` is None if nothing is known."""
        if self._last is not None:
            then, before = self._last
            step = min(now - then, _LONGEST_STEP_SECONDS)
            self._all += step
            self._able += _able(before, sample, step, patient=self._starting)
        self._last = (now, sample)
        if sample is not None:
            self._states[sample.state] += 1

    @property
    def is_long(self) -> bool:
        """Whether operators should hear of it."""
        return self._able >= _TOLD_SECONDS or self.hangs

    @property
    def hangs(self) -> bool:
        return self._able >= _HANGS_SECONDS or self._all >= _LONGEST_SECONDS

    def __str__(self) -> str:
        # what it did most of the time: one that is busy waits now and then for its other threads
        [(state, _)] = self._states.most_common(1) or [("", 0)]
        what = _WORDS.get(state, "waiting for something else") if state else "silent"
        return f"{what} for {self._all:.1f} s"


def _able(before: Sample | None, sample: Sample | None, step: float, *, patient: bool) -> float:
    """Of `step` seconds from one sample to the next, those in which the worker could have answered.

    `patient`: none if it gets on with anything at all.
    """
    if before is None or sample is None or sample.wrote != before.wrote:
        return 0.0  # what writes answers somebody: a long turn of a loop that has thousands of requests
    ran = sample.ran - before.ran
    if ran > 0 and (patient or sample.state == "D"):
        return 0.0  # D: the machine reads from disk, bit by bit, what should be in memory
    if sample.state == "R":
        return min(step, ran)  # what it still waits for a processor is not in `waited` yet
    return max(0.0, step - (sample.waited - before.waited))


def take_sample(pid: int) -> Sample | None:
    """The main thread of the process as it is now; None if the kernel does not say all of it."""
    folder = Path(f"/proc/{pid}/task/{pid}")
    try:
        state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        ran, waited, _ = (folder / "schedstat").read_text().split()
        counts = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
        return Sample(state, int(ran) / 1e9, int(waited) / 1e9, int(counts["syscw"]))
    except (OSError, ValueError, KeyError, IndexError):
        return None
