"""The sockets that an instance listens on: bound before anything starts, closed without resetting a caller."""

import ctypes
import logging
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("forecast.sockets")

# A socket option of Linux that Python does not name.
_SO_ATTACH_FILTER = 26
_SYN, _ACK = 0x02, 0x10
# Classic BPF (code, jump if true, jump if false, operand) on a TCP header: keep all but SYN without ACK.
_NO_SYN = (
    (0x30, 0, 0, 13),  # load the flags
    (0x54, 0, 0, _SYN | _ACK),
    (0x15, 0, 1, _SYN),  # no other than SYN: go on, else skip one
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFF_FFFF),  # keep
)


# Of what a client has not been sent yet, the kernel keeps so much: else megabytes of a file, of which the deadline for
# readers would know nothing.
_KERNEL_KEEPS_BYTES = 128 << 10
# Connections that may wait to be accepted: as many as the kernel allows (net.core.somaxconn). One more tries again
# after a second.
_WAITING = 65_535


class StartError(Exception):
    """The instance cannot start. The message is one line that says why and what to do."""


@contextmanager
def bind(host: str, port: int, setting: str) -> Iterator[socket.socket]:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise StartError(f"cannot listen on {host}: {error.strerror}") from None
    with bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _KERNEL_KEEPS_BYTES)  # connections inherit it
        try:
            bound.bind((host, port))
            bound.listen(_WAITING)
        except OSError as error:
            raise StartError(f"cannot listen on {host}:{port} ({setting}): {error.strerror}") from None
        bound.setblocking(False)
        yield bound


def refuse_new(listening: socket.socket) -> None:
    """Lets nobody else connect, in any process that shares `listening`; connections that have begun can be accepted.

    Closing a socket resets the connections that wait to be accepted, so this comes a moment before. A client that
    connects meanwhile hears nothing, tries again after a second, and is refused then. This cannot be undone.
    """
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _NO_SYN))
    try:
        listening.setsockopt(
            socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_NO_SYN), ctypes.addressof(program))
        )
    except OSError as error:
        # Some sandboxes have no filters; a connection of the last moment may be reset there.
        log.debug("new connections cannot be held off before the stop: %s", error.strerror)


def url_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{host}:{port}"
