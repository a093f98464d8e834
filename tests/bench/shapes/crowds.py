"""Connections that are opened at once while the worker is saturated: how long each waits, and what each gets.

wrk does not show them: a connection that is never answered is in none of its figures. The load beside them is wrk's all
the same, with one request of fixed bytes, which costs the client less than anybody needs to answer it.
"""

import contextlib
import gc
import select
import socket
import statistics
import subprocess
import time
from collections.abc import Iterator
from time import perf_counter

import msgspec

from tests.bench.client import answer_length
from tests.bench.load import Endpoint, turns_of_servers
from tests.bench.stage import CLIENT_CORE

# Of the load beside.
_LOADING = 64
_RUN_IN_SECONDS = 1.0
# How many are opened before answers are looked at again.
_OPENED_AT_ONCE = 50
_CHUNK = 65_536


class Waits(msgspec.Struct, frozen=True):
    """Of one crowd. `least`, `median`, `longest`: milliseconds from when a connection was opened to its first answer;
    one that got none waited all the time. `unanswered`: how many those were; `broken`: closed or refused by the server.
    `fewest`, `typical`: answers of a connection, least and median. `busy`: share of the time that the server ran, or
    could have run while the machine ran something else.
    """

    least: float
    median: float
    longest: float
    unanswered: int
    broken: int
    fewest: int
    typical: float
    busy: float


class _Member:
    """One connection: what of an answer has come, when the first was there, how many were."""

    __slots__ = ("answers", "began", "connection", "data", "waited")

    def __init__(self, connection: socket.socket, began: float) -> None:
        self.connection = connection
        self.began = began
        self.data = b""
        self.waited: float | None = None
        self.answers = 0


class CrowdClient:
    """Opens `count` connections as fast as it can; each asks again as soon as it is answered, until the time is up
    or all of them broke."""

    def __init__(self, endpoint: Endpoint, head: bytes, count: int) -> None:
        host, _, port = endpoint.base.removeprefix("http://").rpartition(":")
        self._address = (host, int(port))
        self._request = head + b"\r\n"
        self._count = count
        self._poll = select.epoll()
        self._members: dict[int, _Member] = {}
        self._broken = 0

    def run(self, seconds: float) -> tuple[list[_Member], int]:
        """The connections, and how many of them broke."""
        gc.collect()
        gc.disable()  # its pauses would be taken for the server's
        opened: list[_Member] = []
        try:
            end = perf_counter() + seconds
            while (now := perf_counter()) < end and self._broken < self._count:
                opened += [self._open() for _ in range(min(_OPENED_AT_ONCE, self._count - len(opened)))]
                for number, event in self._poll.poll(0 if len(opened) < self._count else end - now):
                    self._go_on(self._members[number], event)
            return opened, self._broken
        finally:
            gc.enable()
            self._poll.close()
            for member in opened:
                member.connection.close()

    def _open(self) -> _Member:
        connection = socket.socket()
        connection.setblocking(False)
        member = _Member(connection, perf_counter())
        connection.connect_ex(self._address)
        self._members[connection.fileno()] = member
        self._poll.register(connection, select.EPOLLOUT)
        return member

    def _go_on(self, member: _Member, event: int) -> None:
        try:
            if event & select.EPOLLOUT:
                member.connection.send(self._request)
                self._poll.modify(member.connection, select.EPOLLIN)
                return
            more = member.connection.recv(_CHUNK)
        except OSError:
            more = b""
        if not more:
            self._poll.unregister(member.connection)
            self._broken += 1
            return
        member.data += more
        if not answer_length(member.data):
            return
        if not member.data.startswith(b"HTTP/1.1 200"):
            self._poll.unregister(member.connection)
            self._broken += 1
            return
        member.data = b""
        member.answers += 1
        if member.waited is None:
            member.waited = perf_counter() - member.began
        with contextlib.suppress(OSError):  # seen as broken when it is read
            member.connection.send(self._request)


def beside_a_load(endpoint: Endpoint, head: bytes, count: int, seconds: float) -> Waits:
    """A crowd of `count`, beside a load that saturates the server by itself."""
    with _loaded(endpoint, head, seconds) as load:
        before, began = turns_of_servers(), perf_counter()
        members, broken = CrowdClient(endpoint, head, count).run(seconds)
        taken, after = perf_counter() - began, turns_of_servers()
    # of the one that worked most; waiting for the processor, it was busy too
    turns = [sum(now) - sum(before[pid]) for pid, now in after.items() if pid in before and pid != str(load)]
    busy = max(turns) / 1e9 / taken
    return waits_of([(one.waited, one.answers) for one in members], seconds, broken, busy)


def waits_of(members: list[tuple[float | None, int]], seconds: float, broken: int, busy: float) -> Waits:
    """`members`: of each connection the seconds to its first answer, if it got one, and how many answers it got."""
    waits = [(seconds if waited is None else waited) * 1000 for waited, _ in members]
    answers = [answers for _, answers in members]
    return Waits(
        least=min(waits),
        median=statistics.median(waits),
        longest=max(waits),
        unanswered=sum(waited is None for waited, _ in members),
        broken=broken,
        fewest=min(answers),
        typical=statistics.median(answers),
        busy=busy,
    )


@contextlib.contextmanager
def _loaded(endpoint: Endpoint, head: bytes, seconds: float) -> Iterator[int]:
    """wrk asks for the same thing again and again until the block ends. Yields its number."""
    target = head.split(b" ")[1].decode()
    patience = round(_RUN_IN_SECONDS + seconds + 5)
    command = ["taskset", "-c", str(CLIENT_CORE), "wrk", "-t1", f"-c{_LOADING}", f"-d{patience}s"]
    command += ["-H", f"x-api-key: {endpoint.key}", f"{endpoint.base}{target}"]
    loading = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(_RUN_IN_SECONDS)
        yield loading.pid
    finally:
        loading.kill()
        loading.wait()
