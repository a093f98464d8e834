"""Connections that are read and written in batches, below the loop's transports.

A turn reads from all connections that are ready, then answers all, then writes all. Interpreter and kernel drive each
other's code out of the processor's caches; with thirty connections answers take an eighth less time than in turns of
read, answer and write.

libuv, below uvloop, keeps polling, up to 48 times, while more than a thousand connections are ready: a turn of the loop
then takes up to a second, and work that needs several turns takes seconds. Here all connections are one file to the
loop, which checks its other files after each batch. Transports also use memory: the processor's caches hold few of ten
thousand.
"""

import asyncio
import logging
import select
from time import monotonic

from config.once_per_turn import OncePerTurn
from service.connection.channel import Channel, Polled

log = logging.getLogger("forecast.sockets")

# More would wait too long for their answers.
_MOST_AT_ONCE = 256
# So many are answered with the same time: reading the clock for each made a hit 1 % slower.
_ONE_MOMENT = 8
_DEFECT = "a request on a connection could not be answered"


class Polling:
    """The connections of one listener, until `close`; its server owns it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._channels: dict[int, Channel] = {}
        self._polled: set[int] = set()
        self._to_write: list[Channel] = []
        self._soon = OncePerTurn(self.write_now)
        self._in_turn = False  # at its end, all pieces are written
        self.loop.add_reader(self._epoll.fileno(), self._turn)

    def open(self, file: int, connection: Polled, first: bytes = b"") -> None:
        """Attaches the open, non-blocking socket `file`, from which `first` was read, to `connection`.

        Raises OSError if the kernel has no room for it.
        """
        connection.channel = channel = Channel(file, self, connection)
        self._channels[file] = channel
        if first:  # which may end it: then it is not polled
            self._answer(channel, first, monotonic())
            channel.flush()
        try:
            channel.stay()
        except OSError:
            channel.abort()
            raise

    def poll(self, file: int, events: int) -> None:
        if file in self._polled:
            self._epoll.modify(file, events)
        else:
            self._epoll.register(file, events)
            self._polled.add(file)

    def forget(self, file: int) -> None:
        del self._channels[file]
        if file in self._polled:
            self._polled.remove(file)
            self._epoll.unregister(file)

    def close(self) -> None:
        """Closes; remaining connections are lost."""
        self.write_now()
        for channel in list(self._channels.values()):
            channel.abort()
        self.loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _answer(self, channel: Channel, data: bytes, now: float) -> None:
        """Hands over received bytes. A defect ends the connection, without affecting the others of its turn."""
        connection = channel.connection
        if connection is None or channel.ends:
            return
        try:
            connection.received(data, now)
        except Exception:
            log.exception(_DEFECT)
            channel.abort()

    def write_soon(self, channel: Channel) -> None:
        self._to_write.append(channel)
        if not self._in_turn:
            self._soon.soon()

    def write_now(self) -> None:
        """Writes the bytes that were due soon."""
        while self._to_write:
            channels, self._to_write = self._to_write, []
            for channel in channels:
                channel.flush()

    def _turn(self) -> None:
        self.write_now()
        self._in_turn = True
        arrived = self._arrived()
        for start in range(0, len(arrived), _ONE_MOMENT):
            now = monotonic()
            for channel, data in arrived[start : start + _ONE_MOMENT]:
                self._answer(channel, data, now)
        self._in_turn = False
        self.write_now()

    def _arrived(self) -> list[tuple[Channel, bytes]]:
        """Returns the received bytes, with their channels."""
        channels, arrived = self._channels, []
        for file, events in self._epoll.poll(0, _MOST_AT_ONCE):
            channel = channels[file]
            if events & select.EPOLLOUT:
                channel.flush()
            if events & ~select.EPOLLOUT and channel.file >= 0:
                data = channel.take()
                if data is not None:
                    arrived.append((channel, data))
        return arrived
