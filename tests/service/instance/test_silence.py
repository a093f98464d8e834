"""Whether a silent worker hangs: told from what the kernel says of it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator

import msgspec
import pytest

from service.instance.silence import LOOK_SECONDS, Silence, ThreadSample, take_sample
from tests.support.waiting import until


def after(samples: Iterable[ThreadSample | None], every: float = LOOK_SECONDS, *, starting: bool = False) -> Silence:
    """A silence after looks, `every` so many seconds, that found `samples`."""
    silence = Silence(starting=starting)
    for number, sample in enumerate(samples):
        silence.look(number * every, sample)
    return silence


def going_on(seconds: float, state: str, *, ran: float = 0, waited: float = 0, wrote: float = 0) -> list[ThreadSample]:
    """Samples of so many seconds, in each of which the thread ran, waited and wrote so much."""
    times = [number * LOOK_SECONDS for number in range(round(seconds / LOOK_SECONDS) + 1)]
    return [ThreadSample(state, 5 + ran * time, 7 + waited * time, 9 + int(wrote * time)) for time in times]


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (going_on(2, "T"), "stopped for 2.0 s"),
        (going_on(2, "D"), "waiting for a disk for 2.0 s"),
        (going_on(2, "S"), "waiting for something else for 2.0 s"),
        (going_on(2, "R", ran=1), "busy for 2.0 s"),
        (going_on(2, "S", ran=0.01), "waiting for something else for 2.0 s"),
        (going_on(4, "R", ran=0.5), "busy for 4.0 s"),
        # a busy thread that waits for another one of its process as it is looked at last
        (
            [*going_on(2, "R", ran=1)[:-1], msgspec.structs.replace(going_on(2, "R", ran=1)[-1], state="S")],
            "busy for 2.0 s",
        ),
    ],
)
def test_what_could_answer_and_does_not_for_two_seconds_hangs(samples: list[ThreadSample], said: str) -> None:
    assert not after(samples[:-1]).hangs
    assert after(samples).hangs
    assert str(after(samples)) == said


@pytest.mark.parametrize(
    "samples",
    [
        going_on(14, "R"),
        going_on(14, "R", ran=0.05, waited=0.95),
        going_on(14, "S", ran=0.05, waited=0.95),
        going_on(14, "D", ran=0.01),
        going_on(14, "R", ran=1, wrote=40),
        [None] * 56,
    ],
    ids=["no processor", "a twentieth of one", "the same, caught asleep", "swapping", "answers others", "not known"],
)
def test_a_worker_that_a_machine_keeps_from_answering_is_left_alone(samples: list[ThreadSample | None]) -> None:
    assert not after(samples).is_long
    assert after([*samples, *samples]).hangs


def test_a_wait_for_a_processor_that_shows_only_when_it_is_over_does_not_count() -> None:
    """The kernel adds a wait up when it ends: until then the thread could run (R)."""
    waiting = [ThreadSample("R", 1, 2, 0)] * 20
    assert not after([*waiting, ThreadSample("S", 1.01, 2 + 20 * LOOK_SECONDS, 0)]).is_long


def test_time_in_which_the_supervisor_did_not_run_counts_little() -> None:
    """It may have been stopped together with its workers, as a container is that is paused."""
    stopped = [ThreadSample("T", 1, 2, 0)] * 4
    assert not after(stopped, every=60).hangs
    assert after([*stopped, stopped[0]], every=60).hangs


@pytest.mark.parametrize("state", ["R", "S", "D"])
def test_a_worker_that_starts_may_take_its_time_if_it_gets_on(state: str) -> None:
    """Loading its code takes seconds on a slow machine. One that does not get on at all hangs."""
    assert not after(going_on(14, state, ran=0.5), starting=True).is_long
    assert after(going_on(28, state, ran=0.5), starting=True).hangs
    assert after(going_on(2, "T"), starting=True).hangs


def test_operators_hear_of_a_silence_before_the_worker_is_replaced() -> None:
    assert not after(going_on(0.75, "T")).is_long
    assert after(going_on(1, "T")).is_long
    assert not after(going_on(1, "T")).hangs


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """Runs what it gets over standard input, line by line."""
    code = "import sys\nfor line in sys.stdin: exec(line)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    yield process
    process.kill()
    process.communicate()


def test_the_kernel_distinguishes_stopped_blocked_and_busy(child: "subprocess.Popen[bytes]") -> None:
    def sample() -> ThreadSample:
        found = take_sample(child.pid)
        assert found is not None
        return found

    def tell(line: str) -> None:
        assert child.stdin is not None
        child.stdin.write(line.encode() + b"\n")
        child.stdin.flush()

    until(lambda: sample().state == "S" and sample().ran > 0)
    wrote = sample().wrote
    tell("print('said', flush=True)")
    until(lambda: sample().wrote > wrote)
    os.kill(child.pid, signal.SIGSTOP)
    until(lambda: sample().state == "T")
    os.kill(child.pid, signal.SIGCONT)
    tell("while True: pass")
    until(lambda: sample().state == "R")
    ran = sample().ran
    until(lambda: sample().ran > ran)
    child.kill()
    child.wait()
    assert take_sample(child.pid) is None
