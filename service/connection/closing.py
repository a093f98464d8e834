"""Ends of sockets: the kernel's unsent bytes, and how to drop them."""

import contextlib
import fcntl
import socket
import struct
import sys
import termios

# A reader that reads nothing for this long has disconnected, or stalls on purpose.
READ_SECONDS = 30.0
# Linux's SIOCOUTQNSD: bytes that wait in the kernel for room in the reader's window, or in the network's.
_NOT_SENT = 0x894B
# SO_LINGER on, for 0 seconds.
_AT_ONCE = struct.pack("ii", 1, 0)


def all_sent(file: int) -> bool:
    """Returns whether the kernel has sent all written bytes."""
    return not _bytes(file, _NOT_SENT)


def not_acknowledged(file: int) -> int:
    """Returns the number of bytes written and not acknowledged by the reader. A sent end counts as one."""
    return _bytes(file, termios.TIOCOUTQ)


def _bytes(file: int, which: int) -> int:
    try:
        return int.from_bytes(fcntl.ioctl(file, which, b"\0\0\0\0"), sys.byteorder)
    except OSError:  # the peer has disconnected, or this is another system
        return 0


def end_writing(file: int) -> None:
    """Sends the end after the written bytes. Raises OSError if the peer has disconnected."""
    opened = socket.socket(fileno=file)
    try:
        opened.shutdown(socket.SHUT_WR)
    finally:
        opened.detach()


def drop_unsent(file: int) -> None:
    """Makes the kernel drop unsent bytes, and reset the connection, when the socket is closed."""
    with contextlib.suppress(OSError):
        opened = socket.socket(fileno=file)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        finally:
            opened.detach()
