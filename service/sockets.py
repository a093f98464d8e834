"""The sockets that an instance listens on, bound before anything is started."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


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
        try:
            bound.bind((host, port))
            bound.listen(2048)
        except OSError as error:
            raise StartError(f"cannot listen on {host}:{port} ({setting}): {error.strerror}") from None
        bound.setblocking(False)
        yield bound


def url_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{host}:{port}"
