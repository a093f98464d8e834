"""A proxy that does to what passes what networks and stores do."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Literal

# stalled: nothing passes until it is over; silent: what is sent meanwhile is lost; gone: connections end at once;
# cutting: answers end after some bytes; flipping: one bit of each part of an answer is another
Fault = Literal["none", "stalled", "silent", "gone", "cutting", "flipping"]
_CUT_AFTER = 900


class FaultyProxy:
    """Set `fault` at any time; connections that are open have it too. `hurt` is how many answers it met."""

    def __init__(self, port: int) -> None:
        self.fault: Fault = "none"
        self.hurt = 0
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._ended = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._ended.set()
        self._listener.close()
        for one in list(self._open):
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.fault == "gone":
                    self.hurt += 1
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._to))
                self._open |= {client, server}
                threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while part := source.recv(65536):
                while self.fault == "stalled" and not self._ended.wait(0.05):
                    self.hurt += 1
                if self.fault == "silent":
                    continue
                if self.fault == "gone":
                    break
                passed += len(part)
                if answers and self.fault == "cutting" and passed > _CUT_AFTER:
                    self.hurt += 1
                    target.sendall(part[:_CUT_AFTER])
                    break
                target.sendall(self._flipped(part) if answers else part)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
            self._open.discard(one)

    def _flipped(self, part: bytes) -> bytes:
        if self.fault != "flipping":
            return part
        self.hurt += 1
        at = len(part) - 1 - len(part) // 3  # in the body, mostly
        return part[:at] + bytes([part[at] ^ 1]) + part[at + 1 :]


@contextlib.contextmanager
def faulty_proxy(port: int) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(port)
    try:
        yield proxy
    finally:
        proxy.fault = "none"
        proxy.close()
