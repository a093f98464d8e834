"""The sockets that an instance listens on: bound before any process starts, closed without resetting a caller."""

import errno
import ipaddress
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("forecast.sockets")

# Linux: a socket only gets packets of the interface with this index. Python does not name the option.
_SO_BINDTOIFINDEX = 62
_NO_INTERFACE = 2**31 - 1  # the largest index, which no interface has

# Limit of unsent bytes in the kernel: otherwise it would buffer megabytes of a file, which the deadline for readers
# would not cover.
_KERNEL_KEEPS_BYTES = 128 << 10
# Connections that may wait to be accepted: as many as the kernel allows (net.core.somaxconn). Any other one retries
# after a second.
_WAITING = 65_535


_EXPECTED = "Give an IP address or a host name of this machine, such as 127.0.0.1 or 0.0.0.0"


class StartError(Exception):
    """The instance cannot start. The message is one line with the reason and the remedy."""


@contextmanager
def bind(host: str, port: int, setting: str) -> Iterator[socket.socket]:
    where = f"FORECAST_{setting.upper()}"
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = resolved[0]
        _check_single(str(address[0]))
        bound = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is not a host name"
        raise StartError(
            f"cannot listen on {host} ({where.replace('PORT', 'HOST')}): {reason}. {_EXPECTED}. "
            f"The port goes into {where}."
        ) from None
    with bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _KERNEL_KEEPS_BYTES)  # connections inherit it
        try:
            bound.bind(address)
            bound.listen(_WAITING)
        except OSError as error:
            away = error.errno in (errno.EADDRNOTAVAIL, errno.EINVAL)  # EINVAL: link-local, without its interface
            why = f"it is not an address of this machine. {_EXPECTED}" if away else error.strerror
            raise StartError(f"cannot listen on {host}:{port} ({setting}): {why}") from None
        bound.setblocking(False)
        yield bound


def _check_single(address: str) -> None:
    """Raises OSError for an address of several machines. The kernel would accept it."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip.is_multicast or str(ip) == "255.255.255.255":
        raise OSError(errno.EINVAL, "it is an address of several machines")


def refuse_new(listening: socket.socket) -> None:
    """Refuses new connections, in every process that shares `listening`. Connections in the queue can be accepted.

    Call it shortly before the close, which resets every connection that waits to be accepted. It cannot be undone, and
    needs no privilege. Before Linux 5.7, and in some sandboxes, the kernel does not allow it.
    """
    try:
        listening.setsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX, _NO_INTERFACE)
    except OSError as error:
        log.warning(
            "The kernel cannot refuse new connections before the listener closes (%s). A client that connects within "
            "the last milliseconds may be reset. Linux 5.7 or later prevents this.",
            error.strerror,
        )


def url_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{host}:{port}"
