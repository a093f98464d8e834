"""One request at a time: what arrives behind a request under way is held until that one is answered.

A single read can bring thousands of requests. uvicorn begins all of them at once, and resumes reading after each
answer, so that one connection could fill the memory.
"""

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl

# Every head ends with an empty line, so what lies between two of them completes at most one head.
END_OF_HEAD = b"\r\n\r\n"


class HoldingFlow(FlowControl):
    """The flow control of one connection, which makes it with its transport.

    It also holds what has arrived too early. While it holds something, reading stays paused, whoever resumes it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        # what has arrived and was not looked at; None while nothing stands in the way of what arrives next
        self.held: bytes | None = None
        self._start = 0  # where in `held` the next head begins
        self._ended = False

    def resume_reading(self) -> None:
        if not self.held:
            super().resume_reading()

    def hold(self, data: bytes) -> None:
        """Behind what is held already. After the end, nothing is looked at any more."""
        if not self._ended:
            # if reading was paused before, it is not: uvloop begins to read after `connection_made`, whatever that did
            self.read_paused = False
            self.pause_reading()
            self.held, self._start = (self.held[self._start :] if self.held else b"") + data, 0

    def next_head(self, body: int = 0) -> bytes:
        """The next head of what is held, or a body of so many bytes, or what there is of it. With the last one, reading
        is resumed."""
        held, start = self.held or b"", self._start
        end = start + body if body else held.find(END_OF_HEAD, start) + len(END_OF_HEAD)
        if not start < end < len(held):
            self.held = None
            self.resume_reading()
            return held[start:]
        self._start = end
        return held[start:end]

    def end(self) -> None:
        """What is held is dropped, and so is what arrives from now on."""
        self._ended = True
        self.held = b""
