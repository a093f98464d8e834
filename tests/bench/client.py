"""A client on raw sockets and epoll: it sends when it is time to, not when the last answer has come.

A quiet core of it drives about 50,000 requests a second; `Timings.lateness` and `Timings.away` say whether it kept up.
"""

import gc
import os
import re
import select
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

import msgspec

from tests.bench.load import Endpoint

_LENGTH = b"\r\ncontent-length: "
_ANY_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_CHUNK = 16_384
_PATIENCE_SECONDS = 10.0


class Timings(msgspec.Struct, frozen=True):
    """Of one run at a fixed rate. Percentiles are milliseconds from when a request was meant to be sent.

    `wanted`, `rate`: requests per second that were meant, and answers per second that came. `bad`: answers that were
    not 200, connections that broke. `lateness`: 99 % of the requests left at most so many milliseconds late, because
    all connections waited or the client did not keep up. `away`: the longest that the client itself did not run.
    """

    wanted: float
    rate: float
    bad: int
    p50: float
    p99: float
    p999: float
    worst: float
    lateness: float
    away: float


def answer_length(data: bytes | bytearray) -> int:
    """Bytes of the answer that `data` begins with, 0 while it is not all there."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return 0
    start = data.find(_LENGTH, 0, end)
    if start >= 0:  # as the service writes it; looking regardless of case takes five times as long
        length = int(data[start + len(_LENGTH) : data.find(b"\r\n", start + 2)])
    else:
        found = _ANY_LENGTH.search(data, 0, end + 2)
        length = int(found[1]) if found else 0
    return end + 4 + length if len(data) >= end + 4 + length else 0


def connect(endpoint: Endpoint) -> socket.socket:
    host, _, port = endpoint.base.removeprefix("http://").rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=_PATIENCE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def asked_in_turn(endpoint: Endpoint, heads: Sequence[bytes]) -> Iterator[bytes]:
    """The whole answer to each request, on one connection as long as the server keeps it."""
    connection = None
    for head in heads:
        connection = connection or connect(endpoint)
        connection.sendall(head + b"\r\n")
        data, is_open = b"", True
        while is_open and not answer_length(data):
            more = connection.recv(_CHUNK)
            data, is_open = data + more, bool(more)
        yield data
        if not is_open or b"\r\nconnection: close" in data.partition(b"\r\n\r\n")[0].lower():
            connection.close()
            connection = None
    if connection is not None:
        connection.close()


@contextmanager
def idle_connections(endpoint: Endpoint, head: bytes, count: int) -> Iterator[None]:
    """`count` connections that asked once and stay open."""
    opened = []
    try:
        for _ in range(count):
            connection = connect(endpoint)
            opened.append(connection)
            connection.sendall(head + b"\r\n")
            data = b""
            while not answer_length(data):
                more = connection.recv(_CHUNK)
                if not more:
                    raise ConnectionError(f"closed after {len(opened)} connections")
                data += more
        yield
    finally:
        for connection in opened:
            connection.close()


class OpenLoop:
    """Sends requests at `rate` per second over `connections`; each has a request id that no other has."""

    def __init__(self, endpoint: Endpoint, heads: Sequence[bytes], rate: float, connections: int = 64) -> None:
        self._heads = heads
        self._rate = rate
        self._sockets = {one.fileno(): one for one in (connect(endpoint) for _ in range(connections))}
        self._free = list(self._sockets)
        self._meant: dict[int, float] = {}
        self._parts: dict[int, bytes] = {}
        self._poll = select.epoll()
        for number, one in self._sockets.items():
            one.setblocking(False)
            self._poll.register(number, select.EPOLLIN)
        self._times: list[float] = []
        self._late: list[float] = []
        self._bad = 0
        self._away = 0.0

    def run(self, seconds: float) -> Timings:
        gc.collect()
        gc.disable()  # its pauses would be taken for the server's
        try:
            return self._run(round(self._rate * seconds))
        finally:
            gc.enable()
            self._poll.close()
            for one in self._sockets.values():
                one.close()

    def _run(self, total: int) -> Timings:
        began = perf_counter()
        sent, deadline, last = 0, began + total / self._rate + _PATIENCE_SECONDS, began
        while len(self._times) + self._bad < total and (now := perf_counter()) < deadline and self._sockets:
            self._away, last = max(self._away, now - last), now
            due = min(total, int((now - began) * self._rate) + 1)
            while sent < due and self._free:
                self._send(sent, began + sent / self._rate)
                sent += 1
            for number, _ in self._poll.poll(0):
                self._receive(number)
        taken = perf_counter() - began
        self._bad += total - len(self._times) - self._bad
        return self._timings(taken)

    def _send(self, count: int, meant: float) -> None:
        number = self._free.pop()
        self._meant[number] = meant
        head = self._heads[count % len(self._heads)]
        os.write(number, b"%bx-request-id: open-%x\r\n\r\n" % (head, count))
        self._late.append(perf_counter() - meant)

    def _receive(self, number: int) -> None:
        data = os.read(number, _CHUNK)
        if not data:
            self._poll.unregister(number)
            self._sockets.pop(number).close()
            return
        if number in self._parts:
            data = self._parts.pop(number) + data
        if not answer_length(data):
            self._parts[number] = data
            return
        if data.startswith(b"HTTP/1.1 200"):
            self._times.append(perf_counter() - self._meant[number])
        else:
            self._bad += 1
        self._free.append(number)

    def _timings(self, taken: float) -> Timings:
        times, late = sorted(self._times), sorted(self._late)
        return Timings(
            wanted=self._rate,
            rate=len(times) / taken,
            bad=self._bad,
            p50=_milliseconds(times, 0.5),
            p99=_milliseconds(times, 0.99),
            p999=_milliseconds(times, 0.999),
            worst=_milliseconds(times, 1.0),
            lateness=_milliseconds(late, 0.99),
            away=self._away * 1000,
        )


def _milliseconds(ascending: list[float], share: float) -> float:
    """The smallest value that `share` of the values do not exceed; NaN where there are none."""
    if not ascending:
        return float("nan")
    return ascending[min(len(ascending) - 1, int(len(ascending) * share))] * 1000
