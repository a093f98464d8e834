"""An ASGI application called without a server."""

from collections.abc import Awaitable, Callable
from typing import Any

Application = Callable[[Any, Any, Any], Awaitable[None]]


async def exchange(
    app: Application, path: str = "/", method: str = "GET", body: bytes = b"", **scope: Any
) -> tuple[Any, bytes]:
    """The message that begins the answer, and its whole body; `body` is the request's, sent in two parts."""
    sent: list[dict[str, Any]] = []
    half = len(body) // 2
    parts = iter([(body[:half], True), (body[half:], False)])

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        part, more = next(parts)
        return {"type": "http.request", "body": part, "more_body": more}

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
