"""Reads a drop in a separate process with limits on memory, time and files (Decision 8).

Its reply is not trusted, because a hostile file may have taken over the process.
"""

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

import msgspec

from config.decoders import decoder_of
from config.processes import interpreter
from config.resources import memory_kills, out_of_memory
from config.text import printable, printable_struct
from warehouse.drops.messages import ReaderLine, ReadRequest, ReadResult
from warehouse.rules.all_rules import make_finding
from warehouse.schema.errors import DropError
from warehouse.schema.progress import ProgressCallback

# DuckDB limits itself to half a gigabyte. The rest is for libraries, and for memory that DuckDB does not count.
MAX_MEMORY_BYTES = 1536 << 20
MAX_READING_SECONDS = 600  # wall-clock time
_MAX_LINE_BYTES = 64 << 20
_NEEDED = "publishing a drop of the whole country needs 350 MB beside the instance"
_TAIL_BYTES = 4096  # of standard error
# These signals stop all processes. The drop is not the cause.
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_UNEXPECTED_REPLY = ReadResult(
    findings=(make_finding("reader-failed", "the process that reads the drop sent an unexpected reply"),)
)

# Messages of the interpreter and libraries if memory runs out. The last three are from extensions that handle it badly.
_OUT_OF_MEMORY = (
    "MemoryError",
    "bad_alloc",
    "Out of Memory",
    "cannot allocate memory",
    "failed to map segment",  # from loading a library
    "error return without exception",
    "without setting an exception",
    "returned a result with an exception set",
)

DropReader = Callable[[ReadRequest, ProgressCallback], ReadResult]
_Process = subprocess.Popen[bytes]


def read_in_subprocess(
    request: ReadRequest,
    progress: ProgressCallback,
    *,
    memory: int = MAX_MEMORY_BYTES,
    seconds: float = MAX_READING_SECONDS,
) -> ReadResult:
    """Returns the result of `read_drop` (pipeline.py), run in a process with at most `memory` bytes and `seconds`.

    If the process does not finish, the result has a finding, or a `failure`, with the way it ended.
    """
    overdue, kills = threading.Event(), memory_kills()
    step = ""

    def report(current: str) -> None:
        nonlocal step
        if current != step:
            step = current
            progress(current)

    with tempfile.TemporaryFile() as errors:
        with _started(memory, seconds, errors, overdue) as process:
            received = _receive(process, request, report)
            if received is not None:
                outcome: ReadResult = printable_struct(received)
                return outcome
            process.wait()
        last_errors = _tail(errors)
    if -process.returncode in _STOPS:
        return ReadResult(failure=f"reading the drop was stopped by {signal.Signals(-process.returncode).name}")
    how = f"did not end within {seconds:g} s" if overdue.is_set() else _ending(process.returncode, last_errors, memory)
    remedy: dict[str, str] = {}
    if process.returncode == -signal.SIGKILL and memory_kills() > kills:
        how, remedy = f"was {out_of_memory(_NEEDED)}", {"remedy": "allow more memory, or publish on another machine"}
    where = f"; it was {step}" if step else ""
    return ReadResult(findings=(make_finding("reader-failed", f"reading the drop {how}{where}", **remedy),))


@contextmanager
def _started(memory: int, seconds: float, errors: IO[bytes], overdue: threading.Event) -> Iterator[_Process]:
    """Starts the reader process, and kills it after `seconds`, or when the block ends in any way."""
    process = subprocess.Popen(  # noqa: S603 - this interpreter, our module
        interpreter("warehouse.drops.reader_main", memory, os.getpid()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,  # a file, because a pipe would fill up
        env=_environment(),
        start_new_session=True,  # Ctrl-C signals only this process, which ends the reader
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
                process.kill()  # it has finished, or the caller gave up (Ctrl-C, an error in `progress`)
    finally:
        alarm.cancel()
        if alarm.is_alive():
            alarm.join()  # some libraries complain if the interpreter exits before this thread


def _environment() -> dict[str, str]:
    """Returns our environment without secrets: a file that takes over the reader must not find them."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("FORECAST_")}
    # pyarrow's own memory pools would reserve address space that the limit counts
    return {**own, "ARROW_DEFAULT_MEMORY_POOL": "system"}


def _receive(process: _Process, request: ReadRequest, progress: ProgressCallback) -> ReadResult | None:
    """Returns the outcome, or None if the process ended before sending one."""
    if process.stdin is None or process.stdout is None:
        return None
    try:
        encoded = msgspec.msgpack.encode(request)
    except UnicodeEncodeError as error:
        raise DropError(f"{printable(error.object)}: the name is not UTF-8; rename it") from None
    try:
        process.stdin.write(encoded)
        process.stdin.close()
    except BrokenPipeError:
        return None
    while raw := process.stdout.readline(_MAX_LINE_BYTES):
        try:
            line = decoder_of(ReaderLine).decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # it ended in the middle of a line, or it no longer runs our program
            return None if process.stdout.read(1) == b"" and not raw.endswith(b"\n") else _UNEXPECTED_REPLY
        if line.outcome is not None:
            return line.outcome
        if line.step:
            progress(printable(line.step))
    return None


def _tail(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _TAIL_BYTES))
    return stream.read().decode(errors="replace").strip()


def _ending(code: int, errors: str, memory: int) -> str:
    if any(word in errors for word in _OUT_OF_MEMORY):
        return f"needed more than {memory >> 20} MiB of memory"
    if code == -signal.SIGKILL:
        return "was ended by SIGKILL, which the system sends when memory runs out"
    if code < 0:
        return f"was ended by {_signal_name(-code)}, which a damaged file or a lack of memory can cause"
    last = errors.splitlines()[-1] if errors else ""
    return f"failed ({printable(last, 200) or f'exit code {code}'})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # some real-time signals have no name
        return f"signal {number}"
