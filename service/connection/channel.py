"""The sending side of a connection: its write buffer, a slow reader, and a lingering close."""

import asyncio
import logging
import os
import select
from time import monotonic
from typing import Protocol

from service.connection import closing

log = logging.getLogger("forecast.sockets")

# Answers of this size or more are written at once: they would evict each other from the processor's caches.
_LARGE_BYTES = 8 << 10
# How many pieces the kernel takes at once (IOV_MAX).
_MOST_PIECES = 1024
# Most requests are far smaller; larger ones need a second read.
_READ_BYTES, _REST_BYTES = 4 << 10, 60 << 10
# How often a slow reader, or one of the last answer, is checked.
_CHECK_SECONDS = 1.0
# Limit of bytes that are discarded after the last answer; more wait in the kernel, and at the sender.
_MOST_DISCARDED = 256 << 10


class Polled(Protocol):
    """A connection that is polled, until it is lost."""

    channel: "Channel"  # set before anything else

    def opened(self) -> None:
        """Called when the connection stays: its first bytes, if any, did not end it."""
        ...

    def received(self, data: bytes, now: float) -> None:
        """Called with received bytes. `now` is in monotonic seconds."""
        ...

    def received_end(self) -> None:
        """Called when the other end sends no more."""
        ...

    def blocked(self) -> None:
        """Called when the reader accepts no more for now."""
        ...

    def unblocked(self) -> None:
        """Called when the reader has read everything."""
        ...

    def lost(self) -> None:
        """Called when the channel is closed."""
        ...


class Poller(Protocol):
    """The interface that polls the sockets of channels."""

    loop: asyncio.AbstractEventLoop

    def poll(self, file: int, events: int) -> None: ...

    def forget(self, file: int) -> None: ...

    def write_soon(self, channel: "Channel") -> None: ...


class Channel:
    """The sending side of a connection. `file` is below 0 once it is closed. Its polling owns it."""

    __slots__ = ("_alarm", "_all_received", "_discarded", "_events", "_left", "_pieces", "_polling",
                 "_stays", "_took_at", "connection", "ends", "file", "is_blocked")  # fmt: skip

    def __init__(self, file: int, polling: Poller, connection: Polled) -> None:
        self.file = file
        self.is_blocked = False  # the reader has not read all written bytes
        self.ends = False  # no more reads or writes, except of bytes written before
        self._polling = polling
        self.connection: Polled | None = connection  # None once it is closed
        self._events = select.EPOLLIN  # that are polled, once it stays
        self._stays = False
        self._pieces: list[bytes] = []  # to be written, while the channel is blocked or in the polling's turn
        self._alarm: asyncio.TimerHandle | None = None
        self._took_at = 0.0  # when the reader last read something, in monotonic seconds
        self._left = 0  # bytes that it had not read then
        self._all_received = False  # the other end sends no more
        self._discarded = 0  # bytes that arrived after the end

    def write(self, head: bytes, body: bytes) -> None:
        """Writes `head` and `body` with others of this turn; a large body at once."""
        if self.ends:
            return
        if not self._pieces:
            self._polling.write_soon(self)
        self._pieces += (head, body)
        if len(body) >= _LARGE_BYTES and not self.is_blocked:
            self.flush()

    def flush(self) -> None:
        """Writes as much as the reader accepts. Notifies its connection if it became blocked or unblocked."""
        pieces = self._pieces
        if not pieces:
            return
        try:
            if len(pieces[-1]) < _LARGE_BYTES:  # joining these costs less than the kernel takes for each piece
                joined = b"".join(pieces)
                is_sent = (sent := os.write(self.file, joined)) == len(joined)
            else:
                is_sent = (sent := os.writev(self.file, pieces[:_MOST_PIECES])) == self._size
        except BlockingIOError:
            is_sent, sent = False, 0
        except OSError:
            self.abort()
            return
        if is_sent:
            self._pieces = []
            if self.is_blocked:
                self._unblock()
            return
        self._drop(sent)
        if not self.is_blocked:
            self._block()

    @property
    def _size(self) -> int:
        """Bytes still to be written."""
        return sum(map(len, self._pieces))

    def _drop(self, sent: int) -> None:
        """Drops the bytes that were sent."""
        taken = 0
        while sent >= len(self._pieces[taken]):
            sent -= len(self._pieces[taken])
            taken += 1
        self._pieces = [self._pieces[taken][sent:], *self._pieces[taken + 1 :]]

    def _block(self) -> None:
        self.is_blocked = True
        self._poll(self._events | select.EPOLLOUT)
        self._watch_reader()
        if self.connection is not None and not self.ends:
            self.connection.blocked()

    def _unblock(self) -> None:
        self.is_blocked = False
        self._poll(self._events & ~select.EPOLLOUT)
        if self.ends:
            self._end_writing()
            return
        self._stop_watching()
        if self.connection is not None:
            self.connection.unblocked()

    def read(self, reads: bool) -> None:
        """Sets whether to read from now on."""
        if not self.ends and not self._all_received:
            self._poll(self._events | select.EPOLLIN if reads else self._events & ~select.EPOLLIN)

    def _poll(self, events: int) -> None:
        if events != self._events and self.file >= 0:
            if self._stays:
                self._polling.poll(self.file, events)
            self._events = events

    def close(self, *, more_may_arrive: bool = False) -> None:
        """Closes so that all written bytes arrive: a lingering close (RFC 9112, 9.6).

        Bytes that a client sends after the close make the kernel reset the connection, and drop unsent bytes. So
        arriving bytes are discarded until the client has everything, or reads nothing for `READ_SECONDS`.
        `more_may_arrive`: also if everything is sent already.
        """
        if self.ends:
            return
        self.flush()
        if self.file < 0:  # the other end has gone
            return
        if not self._pieces and not more_may_arrive and closing.all_sent(self.file):
            self.abort()
            return
        self.ends = True
        self._poll(self._events | select.EPOLLIN)
        if not self.is_blocked:
            self._end_writing()
        if self.file >= 0:  # the peer may have disconnected
            self._watch_reader()

    def _end_writing(self) -> None:
        try:
            closing.end_writing(self.file)
        except OSError:  # the other end has gone
            self.abort()

    def abort(self) -> None:
        """Closes at once, unless it is closed. Notifies the connection."""
        connection, self.connection = self.connection, None
        if connection is None:
            return
        self._stop_watching()
        file, self.file, self.ends, self._pieces = self.file, -1, True, []
        self._polling.forget(file)
        os.close(file)
        try:
            connection.lost()
        except Exception:  # it must not affect the other connections of the turn
            log.exception("a lost connection could not be ended")

    def reset(self) -> None:
        """Closes, and makes the kernel drop unsent bytes: they could be megabytes for a reader that never comes."""
        if self.file >= 0:
            closing.drop_unsent(self.file)
        self.abort()

    def stay(self) -> None:
        """Adds the connection to the poll. Raises OSError if the kernel has no room for it."""
        if self.file >= 0 and self.connection is not None:
            self._stays = True
            self._polling.poll(self.file, self._events)
            if not self.ends:
                self.connection.opened()

    def take(self) -> bytes | None:
        """Returns the bytes received for the connection, if any."""
        try:
            data = os.read(self.file, _READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            self.abort()
            return None
        if len(data) == _READ_BYTES:
            data += _rest(self.file)
        if not data:
            self._received_end()
            return None
        if not self.ends:
            return data
        self._discarded += len(data)
        if self._discarded > _MOST_DISCARDED:
            self._poll(self._events & ~select.EPOLLIN)
        return None

    def _received_end(self) -> None:
        if self.ends and not self._pieces:
            self.abort()  # the peer has everything, or does not want it
            return
        self._all_received = True
        self._poll(self._events & ~select.EPOLLIN)  # the end would be reported repeatedly
        if not self.ends and self.connection is not None:
            self.connection.received_end()

    # --- a slow reader, or one of the last answer ------------------------------------------------------------------

    def _watch_reader(self) -> None:
        if self._alarm is None:
            self._took_at, self._left = monotonic(), self._size + closing.not_acknowledged(self.file)
            self._alarm = self._polling.loop.call_later(_CHECK_SECONDS, self._check_reader)

    def _stop_watching(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _check_reader(self) -> None:
        now, left = monotonic(), self._size + closing.not_acknowledged(self.file)
        if left != self._left:
            self._left, self._took_at = left, now
        if self.ends and not left:
            self.abort()
        elif now - self._took_at > closing.READ_SECONDS:
            self.reset()
        else:
            self._alarm = self._polling.loop.call_later(_CHECK_SECONDS, self._check_reader)


def _rest(file: int) -> bytes:
    try:
        return os.read(file, _REST_BYTES)
    except OSError:  # there is none; or the peer has disconnected, which the next turn reports
        return b""
