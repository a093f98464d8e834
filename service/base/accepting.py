"""Accepts connections, many in a turn of the event loop, and looks at what each sends first.

libuv, below uvloop, accepts one connection in each turn of the loop. A turn of a busy worker takes 10 to 20 ms, so a
thousand new connections, as after a deploy or when a balancer comes back, would wait for up to 15 s. Here one is
accepted at first, and twice as many in each turn that leaves some waiting. Not all at once, or the first worker to look
would have them all. Where turns take long, accepting takes as long as they do.

A transport and its protocol cost more than an answer. A connection whose only request can be answered at once gets
neither.
"""

import asyncio
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from service.base import closing
from service.base.polling import Polled, Polling

log = logging.getLogger("forecast.sockets")

_MOST_AT_ONCE = 256
# While some wait, accepting takes up to half of the time, and at most so long at once: the others wait meanwhile.
_MOST_SECONDS = 0.05
# Of what a connection sends first: most requests are far smaller.
_FIRST_BYTES = 16 << 10
# None waits, or who did has gone. After any other error, such as no file left to open, a moment passes.
_NOBODY = (BlockingIOError, ConnectionAbortedError, InterruptedError)
_RETRY_SECONDS = 0.1
# Open files that connections leave free at least, or a quarter of the limit: for releases, stores, logs.
_FILES_LEFT = 64
# At the end, for accepting all that wait.
_LAST_SECONDS = 1.0

# Given the address of a connection's other end.
Make = Callable[[str], "asyncio.Protocol | Polled"]
# Given what a connection sent first and the address of its other end: the whole answer to its only request, or the
# protocol that has to go on. A protocol is told of what was sent by whoever makes it.
FirstLook = Callable[[bytes, str], "bytes | asyncio.Protocol | Polled"]


class Acceptor:
    """Takes what waits at `listening`, in the running loop, from `start` to `close`. Its server owns it.

    `make` makes the protocol of a connection, or what is polled by `polling`. With a `look`, who has sent something by
    the turn after it was accepted gets what that returns instead. `connections` are the server's, which waits for them
    when it stops.
    """

    def __init__(
        self,
        listening: socket.socket,
        make: Make,
        connections: set[Any],
        polling: Polling,
        look: FirstLook | None = None,
    ) -> None:
        self._listening = listening
        self._polling = polling
        self._make = make
        self._connections = connections
        self._look = look
        self._loop = asyncio.get_running_loop()
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most_files = limit - min(_FILES_LEFT, limit // 4) if limit != resource.RLIM_INFINITY else sys.maxsize
        self._next = 1  # how many are taken at most, if turns of the loop are short
        self._left_at: float | None = None  # when the last turn left some waiting, in monotonic seconds
        self._silent: list[tuple[int, str]] = []  # who had sent nothing when accepted: file, address
        self._turn: asyncio.Handle | None = None
        self._retry: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    async def close(self) -> None:
        """Accepts all that wait and closes the listener. Returns when they have been answered, or have protocols."""
        self._loop.remove_reader(self._listening)
        if self._retry is not None:
            self._retry.cancel()
        until = monotonic() + _LAST_SECONDS
        with suppress(OSError):
            while monotonic() < until:
                with suppress(ConnectionAbortedError):
                    self._accept_one()
        self._listening.close()  # at once: if it is the last copy, the kernel resets who connected since
        if self._turn is not None:
            self._turn.cancel()
        self._look_again()
        await self._polling.adopting.settled()

    def _accept(self) -> None:
        now = monotonic()
        last_turn = now - self._left_at if self._left_at is not None else 0.0
        until, taken = now + min(last_turn, _MOST_SECONDS), 0
        try:
            while taken < self._next or monotonic() < until:
                self._accept_one()
                taken += 1
            self._next, self._left_at = min(2 * self._next, _MOST_AT_ONCE), monotonic()
        except OSError as error:
            self._next, self._left_at = 1, None
            if not isinstance(error, _NOBODY):
                self._loop.remove_reader(self._listening)  # it would be called in every turn
                self._retry = self._loop.call_later(_RETRY_SECONDS, self.start)
        if self._silent and self._turn is None:
            self._turn = self._loop.call_soon(self._look_again)

    def _accept_one(self) -> None:
        # a socket's object would cost more than to accept it, and who gets an answer needs none
        file, address = self._listening._accept()  # type: ignore[attr-defined]  # noqa: SLF001
        if file >= self._most_files:  # the kernel gives the lowest number that is free
            closing.drop_unsent(file)
            os.close(file)
            return
        os.set_blocking(file, False)
        if self._look is None:
            self._adopt(file, self._make(address[0]))
        elif not self._looked_at(file, address[0], self._look):
            self._silent.append((file, address[0]))

    def _look_again(self) -> None:
        self._turn = None
        silent, self._silent = self._silent, []
        for file, address in silent:
            with suppress(OSError):  # the kernel has no room for it, and it is closed
                if self._look is None or not self._looked_at(file, address, self._look):
                    self._adopt(file, self._make(address))

    def _looked_at(self, file: int, address: str, look: FirstLook) -> bool:
        """False if nothing was sent yet."""
        try:
            data = os.read(file, _FIRST_BYTES)
        except BlockingIOError:
            return False
        except OSError:  # its other end has gone already
            data = b""
        try:
            answer = look(data, address) if data else b""
        except Exception:
            log.exception("what a connection sent first could not be looked at")
            answer = b""
        if isinstance(answer, bytes):
            rest = _written(file, answer)
            if not rest and closing.all_sent(file):
                os.close(file)
                return True
            answer = closing.LingeringClose(self._connections, rest)
        self._adopt(file, answer)
        return True

    def _adopt(self, file: int, protocol: "asyncio.Protocol | Polled") -> None:
        if isinstance(protocol, asyncio.Protocol):
            self._polling.adopting.adopt(file, protocol)
        else:
            self._polling.open(file, protocol)


def _written(file: int, data: bytes) -> bytes:
    """What is left of `data` when so much was sent as the kernel takes."""
    try:
        return data[os.write(file, data) :] if data else b""
    except BlockingIOError:
        return data
    except OSError:  # its other end has gone
        return b""
