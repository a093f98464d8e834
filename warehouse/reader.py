"""Reads a drop in a process of its own, limited in memory, time and files (Decision 8).

As a program (``python -m warehouse.reader``): the request comes on standard input; steps and, last, the outcome go to
standard output, a line of JSON each.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import msgspec

from warehouse.findings import Finding
from warehouse.intake import Progress, Read, Request, read
from warehouse.rules.all import found

# DuckDB keeps itself to half a gigabyte; what is above that is the libraries, and what escapes its accounts.
MOST_MEMORY = 1536 << 20
MOST_SECONDS = 600
_MOST_FILE_BYTES = 16 << 30
_MOST_OPEN_FILES = 1024
_PR_SET_PDEATHSIG = 1
# Somebody stops everything: no verdict on the drop.
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Reader = Callable[[Request, Progress], Read]


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """Either what is being done, or the outcome."""

    step: str | None = None
    outcome: Read | None = None


def read_apart(
    request: Request, progress: Progress, *, memory: int = MOST_MEMORY, seconds: float = MOST_SECONDS
) -> Read:
    """What `intake.read` says, from a limited process; how that process ended, if it did not get to the end."""
    command = [sys.executable, "-m", "warehouse.reader", str(memory)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:  # noqa: S603 - ourselves
        overdue = threading.Event()

        def end() -> None:
            overdue.set()
            process.kill()

        alarm = threading.Timer(seconds, end)
        alarm.daemon = True
        alarm.start()
        try:
            said = _listen(process, request, progress)
        except BaseException:
            process.kill()  # Ctrl-C, or a progress display that broke: nobody waits for it any more
            raise
        finally:
            alarm.cancel()
        if said is not None:
            return said
        trouble = (process.stderr.read() if process.stderr else b"").decode(errors="replace")
    if -process.returncode in _STOPS:
        return Read(failure=f"reading the drop was stopped by {signal.Signals(-process.returncode).name}")
    return Read(findings=(_failed(process.returncode, trouble, overdue.is_set(), memory, seconds),))


def _listen(process: "subprocess.Popen[bytes]", request: Request, progress: Progress) -> Read | None:
    if process.stdin is None or process.stdout is None:
        return None
    try:
        process.stdin.write(msgspec.json.encode(request))
        process.stdin.close()
    except BrokenPipeError:
        return None
    last = ""
    for raw in process.stdout:
        try:
            line = msgspec.json.decode(raw, type=_Line)
        except msgspec.DecodeError:
            return None  # it died in the middle of a line
        if line.outcome is not None:
            return line.outcome
        if line.step and line.step != last:
            last = line.step
            progress(last)
    return None


def _failed(code: int, trouble: str, overdue: bool, memory: int, seconds: float) -> Finding:
    last = trouble.strip().splitlines()[-1] if trouble.strip() else ""
    if overdue:
        what = f"did not end within {seconds:g} s"
    elif "MemoryError" in trouble or "bad_alloc" in trouble or code == -signal.SIGKILL:
        what = f"needed more than {memory >> 20} MiB of memory"
    elif code == -signal.SIGXFSZ:
        what = f"wrote more than {_MOST_FILE_BYTES >> 30} GiB"
    elif code < 0:
        what = f"was ended by {signal.Signals(-code).name}, as damaged files can do"
    else:
        what = f"failed ({last or f'exit code {code}'})"
    return found("reader-failed", f"reading the drop {what}")


def _limit(memory: int) -> None:
    for what, limit in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, _MOST_FILE_BYTES),
        (resource.RLIMIT_NOFILE, _MOST_OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, most = resource.getrlimit(what)
        resource.setrlimit(what, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def _belong_to_parent() -> None:
    """What is read is of no use without whoever asked for it, who alone decides when to stop."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
    for number in (signal.SIGTERM, signal.SIGINT):  # meant for the parent, when the whole group is sent them
        signal.signal(number, signal.SIG_IGN)


def main() -> None:
    _belong_to_parent()
    _limit(int(sys.argv[1]))
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)

    def tell(line: _Line) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
        sys.stdout.buffer.flush()

    tell(_Line(outcome=read(request, lambda step: tell(_Line(step=step)))))


if __name__ == "__main__":
    main()
