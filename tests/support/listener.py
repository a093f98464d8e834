"""In place of an operators' listener: answers that a test gives it, and a note of what it was asked."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec


class Said(msgspec.Struct, frozen=True):
    """One request that came."""

    method: str
    path: str
    token: str | None
    body: bytes


class Listener:
    """`answers` are bodies by path; `status` holds for all of them."""

    def __init__(self, port: int = 0) -> None:
        self.answers: dict[str, bytes] = {}
        self.status = 200
        self.error = b""
        self.asked: list[Said] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def answer(self, path: str, value: Any) -> None:
        self.answers[path] = value if isinstance(value, bytes) else msgspec.json.encode(value)

    def refuse(self, status: int, code: str, detail: str = "What to do.") -> None:
        """From now on every answer is this error."""
        self.status = status
        self.error = msgspec.json.encode({"code": code, "detail": detail, "status": status})

    def recover(self) -> None:
        """The answers are those given before."""
        self.status, self.error = 200, b""

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(listener: Listener) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            token = self.headers.get("authorization")
            listener.asked.append(Said(self.command, self.path, token, body))
            found = listener.error or listener.answers.get(self.path)
            status = listener.status if found is not None else 404
            if found is None:
                found = msgspec.json.encode({"code": "not_found", "detail": "There is nothing."})
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(found)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):
                self.wfile.write(found)

        do_GET = do_POST = _answer  # noqa: N815 - as http.server names them

        def log_message(self, *_: Any) -> None:
            """Tests have no use for a log."""

    return Handler


@contextlib.contextmanager
def listening(port: int = 0) -> Iterator[Listener]:
    listener = Listener(port)
    try:
        yield listener
    finally:
        listener.stop()
