"""Bytes that arrived on a connection during a request: they are handled later, head by head.

A single read can bring thousands of requests. If all of them started at once, one connection could fill the memory.
"""

from service.connection.request_parser import RequestParser

# Every head ends with an empty line, so what lies between two of them completes at most one head.
_END_OF_HEAD = b"\r\n\r\n"


class HeldInput:
    """Received and unhandled bytes of one connection; `data` is empty if there are none."""

    __slots__ = ("_start", "data")

    def __init__(self) -> None:
        self.data = b""
        self._start = 0  # of the rest

    def add(self, data: bytes) -> None:
        self.data, self._start = self.data[self._start :] + data if self.data else data, 0

    def clear(self) -> None:
        self.data, self._start = b"", 0

    def next_piece(self, parser: RequestParser | None) -> bytes:
        """Removes and returns the bytes of one request: up to the end of the next head or body, or as many as arrived.

        `parser` may have read a part of the request already.
        """
        data, start = self.data, self._start
        end = data.find(_END_OF_HEAD, start) + len(_END_OF_HEAD)
        if parser is not None and parser.in_message:
            cut = (parser.tail + data[start : start + 3]).find(_END_OF_HEAD)
            if parser.body_left:
                end = start + parser.body_left
            elif cut >= 0:  # the end of the head is cut
                end = start + cut + len(_END_OF_HEAD) - len(parser.tail)
        if not start < end < len(data):
            self.clear()
            return data[start:]
        self._start = end
        return data[start:end]
