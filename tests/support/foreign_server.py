"""A server that speaks no protocol of ours."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """The port of a server that sends `reply` whenever it receives anything. Without a reply it never answers."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(ConnectionError):
                while self.request.recv(65_536):
                    self.request.sendall(reply)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()
