"""A key store whose clock seems to be turned: a connection that changes what it says of the time."""

import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# The reply of beat.lua begins with seconds and microseconds; its array is the only one here that does.
_TIME = re.compile(rb"(\*\d+\r\n\$10\r\n)(\d{10})(\r\n\$\d\r\n|\r\n\$\d\d\r\n)")


@contextmanager
def turned(socket_of_server: Path, folder: Path, by: int) -> Iterator[str]:
    """The URL of the server as it would be with its clock turned by so many seconds."""
    path = folder / "turned"

    class Through(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(str(socket_of_server))
                threading.Thread(target=_pass_on, args=(self.request, server), daemon=True).start()
                _pass_on(server, self.request, by)

    with _Server(str(path), Through) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield f"unix://{path}"
        listening.shutdown()
        thread.join()


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False


def _pass_on(source: socket.socket, target: socket.socket, by: int | None = None) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data if by is None else _TIME.sub(lambda found: _turned(found, by), data))
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _turned(found: "re.Match[bytes]", by: int) -> bytes:
    return b"%b%d%b" % (found[1], int(found[2]) + by, found[3])
