"""HTTP/1.1 as bytes on a socket: what a client library would repair, hide or refuse to send."""

import json
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

_CHUNK = 65_536


@dataclass(frozen=True)
class Answer:
    """`headers` are as they came, in order, with names in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The only value of `name`, None if it was not sent."""
        values = [value for other, value in self.headers if other == name]
        assert len(values) < 2, f"{name} was sent {len(values)} times"
        return values[0] if values else None

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection. Every wait ends after `timeout` seconds with a TimeoutError."""

    def __init__(self, port: int, timeout: float = 30.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._buffer = b""

    def __enter__(self) -> "Wire":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, data: bytes | str) -> "Wire":
        self._socket.sendall(data.encode() if isinstance(data, str) else data)
        return self

    def send_until_closed(self, data: bytes | str) -> "Wire":
        """As much of it as the server lets come: it may close before everything is sent."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.send(data)
        return self

    def end_sending(self) -> "Wire":
        self._socket.shutdown(socket.SHUT_WR)
        return self

    def answer(self, *, head_only: bool = False) -> Answer:
        """The next answer; `head_only` if it is to a HEAD."""
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines[1:])
        headers = tuple((name.lower(), value.strip()) for name, _, value in pairs)
        status = int(lines[0].split()[1])
        length = next((int(value) for name, value in headers if name == "content-length"), 0)
        return Answer(status, headers, b"" if head_only or status == 304 else self._exactly(length))

    def rest(self) -> bytes:
        """What comes until the server closes the connection."""
        while self._receive():
            pass
        return self._buffer

    def closes(self) -> bool:
        """Whether the server closes the connection and sends nothing more; fails with TimeoutError if it stays open."""
        return self.rest() == b""

    def is_open(self, seconds: float) -> bool:
        """Whether nothing comes, and the connection stays open, for so long."""
        self._socket.settimeout(seconds)
        try:
            return self._receive()
        except TimeoutError:
            return True

    def _until(self, end: bytes) -> bytes:
        while end not in self._buffer:
            if not self._receive():
                raise ConnectionError(f"closed before an answer was complete: {self._buffer!r}")
        found, _, self._buffer = self._buffer.partition(end)
        return found

    def _exactly(self, length: int) -> bytes:
        while len(self._buffer) < length:
            if not self._receive():
                raise ConnectionError(f"closed within a body: {self._buffer!r}")
        found, self._buffer = self._buffer[:length], self._buffer[length:]
        return found

    def _receive(self) -> bool:
        data = self._socket.recv(_CHUNK)
        self._buffer += data
        return bool(data)


def drip(wire: Wire, data: bytes, pause: float, most: float) -> float:
    """Sends `data` byte by byte, over and over, until the server closes the connection; returns the seconds it took."""
    began = time.monotonic()
    while time.monotonic() - began < most:
        for byte in data:
            try:
                wire.send(bytes([byte]))
                closed = not wire.is_open(pause)
            except OSError:  # reset, if the byte and the end crossed
                closed = True
            if closed:
                return time.monotonic() - began
    raise AssertionError(f"the connection was still open after {most} s")
