"""Accepts connections, many in a turn of the event loop, and reads the first bytes of each.

libuv, below uvloop, accepts one connection in each turn of the loop. A turn of a busy worker takes 10 to 20 ms, so a
thousand new connections, as after a deploy or when a balancer recovers, would wait for up to 15 s. Here one is accepted
at first, and twice as many in each turn that leaves some waiting. Not all at once, or the first worker would accept
them all. Accepting may take as long as the other turns of the loop.
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

from service.connection import closing
from service.connection.channel import Polled
from service.connection.polling import Polling

log = logging.getLogger("forecast.sockets")

_MOST_AT_ONCE = 256
# While some wait, accepting takes up to half of the time, and at most so long at once: other connections wait
# meanwhile.
_MOST_SECONDS = 0.05
# Limit of the first read: most requests are far smaller.
_FIRST_BYTES = 16 << 10
# None waits, or the client has disconnected. After any other error, such as too many open files, accepting pauses.
_NOBODY = (BlockingIOError, ConnectionAbortedError, InterruptedError)
_RETRY_SECONDS = 0.1
# Open files that connections leave free, or a quarter of the limit if that is less: for releases, stores, logs.
_FILES_LEFT = 64
# Timeout for accepting all that wait, at the end.
_LAST_SECONDS = 1.0

# Host and port of the peer.
Address = tuple[str, int]
Make = Callable[[Address], Polled]


class Acceptor:
    """Accepts connections at `listening`, in the running loop, from `start` to `close`. Its server owns it.

    `make` makes a connection, which `polling` polls.
    """

    def __init__(self, listening: socket.socket, make: Make, polling: Polling) -> None:
        self._listening = listening
        self._make = make
        self._polling = polling
        self._loop = asyncio.get_running_loop()
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most_files = limit - min(_FILES_LEFT, limit // 4) if limit != resource.RLIM_INFINITY else sys.maxsize
        self._next = 1  # most to accept in a turn, if turns of the loop are short
        self._left_at: float | None = None  # when the last turn left some waiting, in monotonic seconds
        self._retry: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    def close(self) -> None:
        """Accepts all that wait, and closes the listener."""
        self._loop.remove_reader(self._listening)
        if self._retry is not None:
            self._retry.cancel()
        until = monotonic() + _LAST_SECONDS
        with suppress(OSError):
            while monotonic() < until:
                with suppress(ConnectionAbortedError):
                    self._accept_one()
        self._listening.close()  # at once: if it is the last copy, the kernel resets later connections

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

    def _accept_one(self) -> None:
        # a socket object would cost more than accepting, and an answered connection needs none
        file, address = self._listening._accept()  # type: ignore[attr-defined]  # noqa: SLF001
        if file >= self._most_files:  # the kernel gives the lowest number that is free
            closing.drop_unsent(file)
            os.close(file)
            return
        os.set_blocking(file, False)
        try:
            first = os.read(file, _FIRST_BYTES)
        except BlockingIOError:
            self._polling.open(file, self._make(address[:2]))
            return
        except OSError:
            first = b""
        if first:
            self._polling.open(file, self._make(address[:2]), first)
        else:  # its peer has disconnected already
            os.close(file)
