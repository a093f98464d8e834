"""Connections that are read and written in batches, below the loop's transports.

A turn takes what is ready, reads from all of it, then answers all, then writes all. Interpreter and kernel drive each
other's code out of the processor's caches; with thirty connections answers take an eighth less time than in turns of
read, answer and write.

libuv, below uvloop, goes on to ask for what is ready, up to 48 times, as long as more than a thousand connections are:
a turn of the loop then takes up to a second, and whatever needs several turns takes seconds. Here all connections are
one file to the loop, which looks at its others after each batch. And a transport is memory: of ten thousand, the
processor's caches hold few.
"""

import asyncio
import logging
import os
import select
import socket
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any, Protocol

from config.once_per_turn import OncePerTurn
from service.base import closing


class Adopting:
    """Part of one listener; `settled` at its end."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[object]] = set()

    def adopt(self, file: int, protocol: asyncio.Protocol, failed: Callable[[], None] | None = None) -> None:
        """In a later turn, `protocol` has the connection; or `failed` is called if its other end has gone."""
        task = self._loop.create_task(self._adopted(socket.socket(fileno=file), protocol, failed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Returns when all that are under way have their transports."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _adopted(
        self, connection: socket.socket, protocol: asyncio.Protocol, failed: Callable[[], None] | None
    ) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection)
        except OSError:
            connection.close()
            if failed is not None:
                failed()


log = logging.getLogger("forecast.sockets")

# More would have waited too long when they are written to.
_MOST_AT_ONCE = 256
# Answers from this size on are written at once: they would push each other out of the processor's caches.
_LARGE_BYTES = 8 << 10
# Most requests are far smaller; what is larger is read a second time.
_READ_BYTES, _REST_BYTES = 4 << 10, 60 << 10
# So many are answered as of the same moment: a look at the clock for each made a hit 1 % slower.
_ONE_MOMENT = 8
_DEFECT = "what arrived on a connection could not be answered"


class Polled(Protocol):
    """A connection that is polled, from `opened` until it is lost, or closes its channel, or hands it over."""

    channel: "Channel"  # there from `opened` on
    closes: bool  # with the next answer

    def opened(self) -> None: ...

    def received(self, data: bytes, now: float) -> bytes | None:
        """What to write at once, if anything. `now` is in monotonic seconds."""
        ...

    def unwritten(self, rest: bytes, *, is_last: bool) -> None:
        """The reader takes no more, and has to get `rest`. `is_last`: `closes` was set when the answer was made."""
        ...

    def answered_last(self) -> None:
        """An answer is written, and `closes` was set when it was made."""
        ...

    def lost(self) -> None:
        """The other end has gone, or there was a defect. There is no channel any more."""
        ...


# `closes` as it was when the answer was made.
_Answer = tuple[Polled, bytes, bool]


class Channel:
    """What a connection that is polled writes to, and ends. `file` is below 0 when it is over."""

    __slots__ = ("_connection", "_polling", "file")

    def __init__(self, file: int, polling: "Polling", connection: Polled) -> None:
        self.file = file
        self._polling = polling
        self._connection: Polled | None = connection

    def write_soon(self, answer: bytes) -> None:
        """With others, before anything else of the connection is read. `answered_last` or `unwritten` may follow. Until
        then, the connection may be closed, but not handed over."""
        if self._connection is not None:
            self._polling.write_soon(self._connection, answer)

    def close(self, connections: set[Any]) -> None:
        """So that its last answer arrives whole: it may linger, with a protocol of its own among `connections`."""
        self._polling.write_now()
        if self._connection is None:
            return
        self._connection, file = None, self._leave()
        if closing.all_sent(file):
            os.close(file)
        else:
            self._polling.adopting.adopt(file, closing.LingeringClose(connections))

    def abort(self) -> None:
        """At once, unless it is over. The connection is told that it is lost."""
        connection, self._connection = self._connection, None
        if connection is not None:
            os.close(self._leave())
            try:
                connection.lost()
            except Exception:  # it must not take what was read from others
                log.exception("a connection that is lost could not be ended")

    def reset(self) -> None:
        """The same, and what is not sent is dropped."""
        if self._connection is not None:
            closing.drop_unsent(self.file)
        self.abort()

    def hand_over(self, protocol: asyncio.Protocol, failed: Callable[[], None]) -> None:
        """In a later turn, `protocol` has the connection; `failed` is called if its other end has gone."""
        self._connection = None  # which refers to this: both would wait for the garbage collector
        self._polling.adopting.adopt(self._leave(), protocol, failed)

    def _leave(self) -> int:
        file, self.file = self.file, -1
        self._polling.forget(file)
        return file


class Polling:
    """The connections of one listener that are polled, until `close`; its server owns it."""

    def __init__(self, adopting: Adopting) -> None:
        self.adopting = adopting
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._connections: dict[int, Polled] = {}
        self._answers: list[_Answer] = []  # to be written soon
        self._soon = OncePerTurn(self.write_now)
        self._loop.add_reader(self._epoll.fileno(), self._turn)

    def open(self, file: int, connection: Polled) -> None:
        """From now on, `connection` has the open, non-blocking socket `file`."""
        try:
            self._epoll.register(file, select.EPOLLIN)
        except OSError:  # the kernel has no room for more
            os.close(file)
            raise
        connection.channel = Channel(file, self, connection)
        self._connections[file] = connection
        self._guard(connection, connection.opened)

    def forget(self, file: int) -> None:
        del self._connections[file]
        self._epoll.unregister(file)

    def close(self) -> None:
        """Whoever is left is lost."""
        self.write_now()
        for connection in list(self._connections.values()):
            connection.channel.abort()
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _guard(self, connection: Polled, act: Callable[[], None]) -> None:
        """A defect ends one connection, as the loop does it, and takes nothing from the others of its turn."""
        try:
            act()
        except Exception:
            log.exception(_DEFECT)
            connection.channel.abort()

    def write_soon(self, connection: Polled, answer: bytes) -> None:
        self._answers.append((connection, answer, connection.closes))
        self._soon.soon()

    def write_now(self) -> None:
        """What was to be written soon."""
        if self._answers:
            answers, self._answers = self._answers, []
            self._write(answers)

    def _turn(self) -> None:
        self.write_now()
        answers: list[_Answer] = []
        arrived = self._arrived()
        for start in range(0, len(arrived), _ONE_MOMENT):
            now = monotonic()
            for connection, data in arrived[start : start + _ONE_MOMENT]:
                try:
                    answer = connection.received(data, now)
                except Exception:
                    log.exception(_DEFECT)
                    connection.channel.abort()
                    continue
                if answer is not None:
                    answers.append((connection, answer, connection.closes))
                    if len(answer) >= _LARGE_BYTES:
                        self._write(answers)
                        answers = []
        self._write(answers)

    def _write(self, answers: list[_Answer]) -> None:
        write = os.write
        for connection, answer, is_last in answers:
            try:
                sent = write(connection.channel.file, answer)
            except BlockingIOError:
                sent = 0
            except OSError:
                connection.channel.abort()
                continue
            if sent < len(answer) or is_last:
                self._guard(connection, partial(_go_on, connection, answer[sent:], is_last=is_last))

    def _arrived(self) -> list[tuple[Polled, bytes]]:
        """What has arrived, and from whom. Who has gone is told so."""
        read, connections, arrived = os.read, self._connections, []
        for file, _ in self._epoll.poll(0, _MOST_AT_ONCE):
            try:
                data = read(file, _READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if len(data) == _READ_BYTES:
                data += _rest(file)
            if data:
                arrived.append((connections[file], data))
            else:
                connections[file].channel.abort()
        return arrived


def _go_on(connection: Polled, rest: bytes, *, is_last: bool) -> None:
    if rest:
        connection.unwritten(rest, is_last=is_last)
    else:
        connection.answered_last()


def _rest(file: int) -> bytes:
    try:
        return os.read(file, _REST_BYTES)
    except OSError:  # there is none; or its sender has gone, which the next turn finds out
        return b""
