"""How a socket ends: what the kernel still has to send, and how to make it drop that."""

import contextlib
import fcntl
import socket
import struct
import sys
import termios

# A reader that takes nothing for this long is gone, or stalls on purpose.
READ_SECONDS = 30.0
# Linux's SIOCOUTQNSD: bytes that wait in the kernel for room in the reader's window, or in the network's.
_NOT_SENT = 0x894B
# SO_LINGER on, for 0 seconds.
_AT_ONCE = struct.pack("ii", 1, 0)


def all_sent(file: int) -> bool:
    """Whether the kernel keeps nothing of what was written that it has not sent yet."""
    return not _bytes(file, _NOT_SENT)


def not_acknowledged(file: int) -> int:
    """Bytes that were written and not acknowledged by the reader. An end that was sent counts as one."""
    return _bytes(file, termios.TIOCOUTQ)


def _bytes(file: int, which: int) -> int:
    try:
        return int.from_bytes(fcntl.ioctl(file, which, b"\0\0\0\0"), sys.byteorder)
    except OSError:  # the other end has gone, or this is another system
        return 0


def end_writing(file: int) -> None:
    """Sends the end behind what was written. Raises OSError if the other end has gone."""
    opened = socket.socket(fileno=file)
    try:
        opened.shutdown(socket.SHUT_WR)
    finally:
        opened.detach()


def drop_unsent(file: int) -> None:
    """Has the kernel drop what is not sent yet, and reset the connection, when the socket is closed."""
    with contextlib.suppress(OSError):
        opened = socket.socket(fileno=file)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        finally:
            opened.detach()
