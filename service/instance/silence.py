"""Decides whether a silent worker hangs or only waits for a processor.

On an overloaded machine, healthy workers are silent too. So only runnable time counts: the worker held a processor or
needed none. Time in which the supervisor itself was late counts little.
"""

from collections import Counter
from pathlib import Path

import msgspec

# The interval at which workers are checked.
LOOK_SECONDS = 0.25
# Maximum that counts for one check, however late it is: the supervisor may have lacked a processor, too.
_LONGEST_STEP_SECONDS = 2 * LOOK_SECONDS
# Operators see the silence after the first; the worker is replaced after the second. The longest turn of a healthy
# loop, the garbage collection after a national release was opened, takes 0.05 s of a processor.
_REPORT_SECONDS = 1.0
_HANGS_SECONDS = 2.0
# Maximum silence of a worker whose state is unknown.
_LONGEST_SECONDS = 15.0
_STATE_TEXTS = {"T": "stopped", "t": "stopped", "D": "waiting for a disk", "R": "busy"}


class ThreadSample(msgspec.Struct, frozen=True):
    """The kernel's figures of a worker's main thread, which runs its event loop, since its start."""

    state: str  # R: runs or could run; S: waits; D: waits in the kernel; T: stopped (proc(5))
    ran: float  # seconds with a processor
    waited: float  # seconds spent waiting for a processor, until it last got one
    wrote: int  # number of writes to files and connections


class Silence:
    """One silence of a worker, from the first check that finds it silent; owned by the worker's `WorkerProcess`.

    `starting`: it has no event loop yet, and no request waits for it.
    """

    def __init__(self, *, starting: bool = False) -> None:
        self._starting = starting
        self._all = 0.0
        self._runnable = 0.0
        self._last: tuple[float, ThreadSample | None] | None = None
        self._states = Counter[str]()  # how often each was seen

    def look(self, now: float, sample: ThreadSample | None) -> None:
        """Adds one check; call every `LOOK_SECONDS`. `now` is in seconds; `sample` is None if unknown."""
        if self._last is not None:
            then, before = self._last
            step = min(now - then, _LONGEST_STEP_SECONDS)
            self._all += step
            self._runnable += _runnable_time(before, sample, step, patient=self._starting)
        self._last = (now, sample)
        if sample is not None:
            self._states[sample.state] += 1

    @property
    def is_long(self) -> bool:
        """Whether operators should see it."""
        return self._runnable >= _REPORT_SECONDS or self.hangs

    @property
    def hangs(self) -> bool:
        return self._runnable >= _HANGS_SECONDS or self._all >= _LONGEST_SECONDS

    def __str__(self) -> str:
        # the most frequent state: a busy worker waits now and then for its other threads
        [(state, _)] = self._states.most_common(1) or [("", 0)]
        text = _STATE_TEXTS.get(state, "waiting for something else") if state else "silent"
        return f"{text} for {self._all:.1f} s"


def _runnable_time(before: ThreadSample | None, sample: ThreadSample | None, step: float, *, patient: bool) -> float:
    """Returns the seconds of `step`, the time between two samples, in which the worker could have answered.

    With `patient`, returns 0 if the worker made any progress.
    """
    if before is None or sample is None or sample.wrote != before.wrote:
        return 0.0  # it writes replies: a long turn of a loop with thousands of requests
    ran = sample.ran - before.ran
    if ran > 0 and (patient or sample.state == "D"):
        return 0.0  # D: the machine pages memory in from disk
    if sample.state == "R":
        return min(step, ran)  # `waited` does not yet include the current wait for a processor
    return max(0.0, step - (sample.waited - before.waited))


def take_sample(pid: int) -> ThreadSample | None:
    """Samples the main thread of the process; returns None if the kernel does not show all figures."""
    folder = Path(f"/proc/{pid}/task/{pid}")
    try:
        state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        ran, waited, _ = (folder / "schedstat").read_text().split()
        counts = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
        return ThreadSample(state, int(ran) / 1e9, int(waited) / 1e9, int(counts["syscw"]))
    except (OSError, ValueError, KeyError, IndexError):
        return None
