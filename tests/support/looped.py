"""Work in a loop as workers have it, on sockets without asyncio's."""

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs it in uvloop; an error in a callback fails the test."""
    errors: list[dict[str, Any]] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        await work()

    uvloop.run(watched())
    assert errors == []


def reset_when_closed(one: socket.socket) -> None:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def received(one: socket.socket) -> bytes:
    """Everything until the other end closes."""
    return b"".join(iter(lambda: one.recv(1 << 20), b""))
