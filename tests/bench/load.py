"""One sample: wrk on the client's processor, and what it cost on the server's."""

import contextlib
import os
import resource
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.bench.stage import CLIENT_CORE, FORECAST, BenchError

_SCRIPT = Path(__file__).parent / "requests.lua"
# wrk calls what takes longer a time-out. With 10,000 connections a wait of its default, 2 s, is an answer like others.
_PATIENCE_SECONDS = 10
_TICKS = os.sysconf("SC_CLK_TCK")


class Endpoint(msgspec.Struct, frozen=True):
    """Where and how somebody is asked: `path` comes before the ZIP code, `after` behind it."""

    base: str
    key: str
    path: str = f"{FORECAST}?zip_code="
    after: str = ""

    def target(self, zip_code: str) -> str:
        return f"{self.path}{zip_code}{self.after}"


class Sample(msgspec.Struct, frozen=True):
    """What one run of wrk saw.

    `rate`: answers per second. `bad`: answers that were not 2xx or 3xx (or, if refusals were wanted, that were none),
    broken connections, time-outs. `p50`, `p99`: milliseconds. `cost`: processor time of all server processes per
    answer, microseconds. `client`: share of its processor that wrk used; near 1, it and not the server was the limit.
    `size`: bytes per answer, headers included. `answers`: how many there were.
    """

    rate: float
    bad: int
    p50: float
    p99: float
    cost: float
    client: float
    size: float
    answers: int = 0


def request_heads(
    endpoint: Endpoint, asked: Sequence[str], keys: Sequence[str] = (), more: Sequence[str] = (), version: str = "1.1"
) -> list[bytes]:
    """Requests without their end: a header can follow. `keys` are used in turn, else the endpoint's; `more`: headers.

    As many as it takes to ask for everything, and to use every key.
    """
    host = endpoint.base.removeprefix("http://")
    keys = keys or [endpoint.key]
    return [
        "\r\n".join(
            [
                f"GET {endpoint.target(asked[number % len(asked)])} HTTP/{version}",
                f"host: {host}",
                f"x-api-key: {keys[number % len(keys)]}",
                *more,
                "",
            ]
        ).encode()
        for number in range(max(len(asked), len(keys)))
    ]


def write_requests(file: Path, heads: Sequence[bytes]) -> Path:
    """As requests.lua reads them."""
    file.write_bytes(b"".join(head + b"\r\n" for head in heads))
    return file


def check_programs() -> None:
    """Raises BenchError if wrk or taskset is missing."""
    for program in ("wrk", "taskset"):
        if shutil.which(program) is None:
            raise BenchError(f"needs {program}: `make bench-peers`, or on Debian: apt-get install wrk util-linux")


def measure(
    base: str,
    requests: Path,
    *,
    unique: bool,
    seconds: int,
    start: int = 0,
    connections: int = 32,
    refused: bool = False,
) -> Sample:
    """Sends the requests in a file to `base` in turn, from the one numbered `start`.

    `unique`: with x-request-id, traceparent and x-forwarded-for that no request had before. `refused`: answers are
    meant to be 400 or more.
    """
    env = {
        **os.environ,
        "REQUESTS": str(requests),
        "START": str(start),
        "UNIQUE": "1" if unique else "",
        "SEED": secrets.token_hex(8),
    }
    command = ["taskset", "-c", str(CLIENT_CORE), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s"]
    command += ["--timeout", f"{_PATIENCE_SECONDS}s", "-s", str(_SCRIPT), base]
    served, asked = _used_by_servers(), _used_by_client()
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    served, asked = _used_by_servers() - served, _used_by_client() - asked
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT")), None)
    if line is None:
        raise BenchError(f"wrk failed: {done.stderr or done.stdout}")
    answers, microseconds, refusals, failed, p50, p99, size = (int(word) for word in line.split()[1:])
    if not answers:
        raise BenchError(f"{base} answered nothing")
    taken = microseconds / 1e6
    bad = failed + (answers - refusals if refused else refusals)
    return Sample(
        rate=answers / taken,
        bad=bad,
        p50=p50 / 1e3,
        p99=p99 / 1e3,
        cost=served * 1e6 / answers,
        client=asked / taken,
        size=size / answers,
        answers=answers,
    )


def _used_by_client() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _used_by_servers() -> float:
    """Seconds of processor time that all our living descendants used; of them, only the one under load works."""
    used = 0.0
    for folder in _descendants():
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            used += (int(fields[11]) + int(fields[12])) / _TICKS
    return used


def turns_of_servers() -> dict[str, tuple[int, int]]:
    """Nanoseconds that each of our living descendants ran, and that it could have run while something else did."""
    turns = {}
    for folder in _descendants():
        with contextlib.suppress(OSError):
            ran, waited, _ = (folder / "schedstat").read_text().split()
            turns[folder.name] = int(ran), int(waited)
    return turns


def _descendants() -> list[Path]:
    """Their folders in /proc."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return [Path("/proc", str(pid)) for pid in ours - {os.getpid()}]
