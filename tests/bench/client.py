"""What clients on raw sockets need: a connection, and where an answer ends."""

import re
import socket
from collections.abc import Iterator, Sequence

from tests.bench.load import Endpoint

_LENGTH = b"\r\ncontent-length: "
_ANY_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_CHUNK = 16_384
_PATIENCE_SECONDS = 10.0


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
