"""Reads a drop in a process of its own, limited in memory, time and files (Decision 8).

What that process says is not trusted: who knows what a file made of it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

import msgspec

from warehouse.drops.pipeline import ReadRequest, ReadResult, read_drop
from warehouse.rules.all_rules import make_finding
from warehouse.schema.printable import printable, printable_struct
from warehouse.schema.progress import ProgressCallback

# DuckDB keeps itself to half a gigabyte; what is above that is the libraries, and what escapes its accounts.
MAX_MEMORY_BYTES = 1536 << 20
MAX_READING_SECONDS = 600
_MAX_LINE_BYTES = 64 << 20
_LAST_WORDS = 4096
# Somebody stops everything: no verdict on the drop.
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_NONSENSE = ReadResult(findings=(make_finding("reader-failed", "reading the drop gave no sensible answer"),))

# What the interpreter and the libraries say when memory is refused to them; the last three are extensions' own slips.
_OUT_OF_MEMORY = (
    "MemoryError",
    "bad_alloc",
    "Out of Memory",
    "cannot allocate memory",
    "error return without exception",
    "without setting an exception",
    "returned a result with an exception set",
)

DropReader = Callable[[ReadRequest, ProgressCallback], ReadResult]
_Process = subprocess.Popen[bytes]


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """Either what is being done, or the outcome."""

    step: str | None = None
    outcome: ReadResult | None = None


def read_in_subprocess(
    request: ReadRequest,
    progress: ProgressCallback,
    *,
    memory: int = MAX_MEMORY_BYTES,
    seconds: float = MAX_READING_SECONDS,
) -> ReadResult:
    """What `read_drop` says, from a limited process; how that process ended, if it did not get to the end."""
    overdue = threading.Event()
    step = ""

    def tell(now: str) -> None:
        nonlocal step
        step = now
        progress(now)

    with tempfile.TemporaryFile() as trouble:
        with _started(memory, seconds, trouble, overdue) as process:
            said = _listen(process, request, tell)
            if said is not None:
                outcome: ReadResult = printable_struct(said)
                return outcome
            process.wait()
        last_words = _tail(trouble)
    if -process.returncode in _STOPS:
        return ReadResult(failure=f"reading the drop was stopped by {signal.Signals(-process.returncode).name}")
    how = f"did not end within {seconds:g} s" if overdue.is_set() else _ending(process.returncode, last_words, memory)
    where = f"; it was {step}" if step else ""
    return ReadResult(findings=(make_finding("reader-failed", f"reading the drop {how}{where}"),))


@contextmanager
def _started(memory: int, seconds: float, trouble: IO[bytes], overdue: threading.Event) -> Iterator[_Process]:
    """The reader; it has ended when the block has, whichever way the block does, and after `seconds` at the latest."""
    process = subprocess.Popen(  # noqa: S603 - this interpreter, our module
        _command(memory),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=trouble,  # a file, because nobody reads a pipe until the end
        env=_environment(),
        start_new_session=True,  # Ctrl-C is for us, who end it
    )

    def end() -> None:
        overdue.set()
        process.kill()

    alarm = threading.Timer(seconds, end)
    alarm.daemon = True
    try:
        alarm.start()
        with process:
            try:
                yield process
            finally:
                process.kill()  # done, or nobody waits for it any more: Ctrl-C, a progress display that broke
    finally:
        alarm.cancel()
        if alarm.is_alive():
            alarm.join()  # or the interpreter may end before it, and libraries complain of that


def _command(memory: int) -> list[str]:
    # -P: a drop's own folder may be the working directory, and what lies there is no module of ours
    return [sys.executable, "-P", "-m", "warehouse.drops.reader_process", str(memory), str(os.getpid())]


def _environment() -> dict[str, str]:
    """Ours without our secrets, which a file that takes over its reader must not find."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("FORECAST_")}
    path = [str(Path(__file__).resolve().parents[2]), *filter(None, [own.get("PYTHONPATH")])]
    # the pools of pyarrow's own would reserve what the limit on memory counts
    return {**own, "PYTHONPATH": os.pathsep.join(path), "ARROW_DEFAULT_MEMORY_POOL": "system"}


def _listen(process: _Process, request: ReadRequest, progress: ProgressCallback) -> ReadResult | None:
    """The outcome; None if the process ended before it had one."""
    if process.stdin is None or process.stdout is None:
        return None
    try:
        process.stdin.write(msgspec.msgpack.encode(request))
        process.stdin.close()
    except BrokenPipeError:
        return None
    last = ""
    while raw := process.stdout.readline(_MAX_LINE_BYTES):
        try:
            line = msgspec.json.decode(raw, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # either it died in the middle of a line, or it is no longer our program that speaks
            return None if process.stdout.read(1) == b"" and not raw.endswith(b"\n") else _NONSENSE
        if line.outcome is not None:
            return line.outcome
        if line.step and line.step != last:
            last = line.step
            progress(printable(last))
    return None


def _tail(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _LAST_WORDS))
    return stream.read().decode(errors="replace").strip()


def _ending(code: int, trouble: str, memory: int) -> str:
    if any(word in trouble for word in _OUT_OF_MEMORY):
        return f"needed more than {memory >> 20} MiB of memory"
    if code == -signal.SIGKILL:
        return "was ended by SIGKILL, as the system does when memory runs out"
    if code < 0:
        return f"was ended by {_signal_name(-code)}, as damaged files and a want of memory can do"
    last = trouble.splitlines()[-1] if trouble else ""
    return f"failed ({printable(last, 200) or f'exit code {code}'})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # those between the real-time ones have no name
        return f"signal {number}"


def serve_request(request: BinaryIO, said: BinaryIO) -> None:
    """What the reader's process does."""

    def tell(line: _Line) -> None:
        said.write(msgspec.json.encode(line) + b"\n")
        said.flush()

    asked = msgspec.msgpack.decode(request.read(), type=ReadRequest)
    tell(_Line(outcome=read_drop(asked, lambda step: tell(_Line(step=printable(step))))))
