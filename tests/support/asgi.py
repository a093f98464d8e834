"""An ASGI application called without a server."""

from collections.abc import Awaitable, Callable
from typing import Any

Application = Callable[[Any, Any, Any], Awaitable[None]]


async def exchange(app: Application, path: str = "/", method: str = "GET", **scope: Any) -> tuple[Any, bytes]:
    """The message that begins the answer, and the whole body."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    full: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"a")],
        "http_version": "1.1",
        "scheme": "http",
        "client": None,
        "server": None,
        "state": {},
    }
    await app({**full, **scope}, receive, send)
    return sent[0], b"".join(message.get("body", b"") for message in sent)
