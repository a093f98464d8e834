"""A TCP proxy that a test can cut, as a network does: nothing arrives, and nobody is told."""

import contextlib
import select
import socket
import threading

from config.server_lists import Node

_HOST = "127.0.0.1"
_BLOCK = 1 << 16


class TcpProxy:
    """Forwards to `target` until it is stopped. While `cut`, it accepts connections and forwards nothing."""

    def __init__(self, target: Node) -> None:
        self.cut = False
        self._target = target
        self._listening = socket.create_server((_HOST, 0))
        self.node = Node(_HOST, self._listening.getsockname()[1])
        self._open: set[socket.socket] = {self._listening}
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # stopped
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(self._target)
                self._open |= {near, far}
                threading.Thread(target=self._forward, args=(near, far), daemon=True).start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), near, far:
            while self._passed_on(near, far) and self._passed_on(far, near):
                select.select([near, far], [], [])

    def _passed_on(self, source: socket.socket, target: socket.socket) -> bool:
        """Passes on what has arrived, if anything has; False at the end."""
        if not select.select([source], [], [], 0)[0]:
            return True
        data = source.recv(_BLOCK)
        if not self.cut:
            target.sendall(data)
        return bool(data)
