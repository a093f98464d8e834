"""Clients that mean no good: they ask without end, read nothing, or keep what they promised to themselves."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import httpx

_CHUNK = 65_536


def connect(base: str) -> socket.socket:
    url = httpx.URL(base)
    return socket.create_connection((url.host, url.port or 80), timeout=1)


def pipeline(base: str, request: bytes, seconds: float) -> int:
    """Sends `request` over and over on one connection, and reads what comes, for so long; returns the bytes sent."""
    sent = 0
    many = memoryview(request * 10_000)
    with connect(base) as connection:
        reader = threading.Thread(target=_read_all, args=(connection,))
        reader.start()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            with contextlib.suppress(TimeoutError):
                start = sent % len(request)
                sent += connection.send(many[start : start + _CHUNK])
        connection.shutdown(socket.SHUT_RDWR)
        reader.join()
    return sent


def _read_all(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            with contextlib.suppress(TimeoutError):
                if not connection.recv(_CHUNK):
                    return


@contextlib.contextmanager
def unread(base: str, request: bytes) -> Iterator[socket.socket]:
    """A connection that has asked for more than the network holds, and reads none of it."""
    with connect(base) as connection:
        with contextlib.suppress(TimeoutError, ConnectionError):
            for _ in range(1000):
                connection.sendall(request * 1000)
        yield connection
