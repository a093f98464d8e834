"""How connections find their server by its name."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from service.redis import connections
from service.redis.connections import open_client
from tests.support.sentinels import free_port
from tests.support.valkey import ValkeyProcess


@contextmanager
def leading_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> Iterator[list[str]]:
    """Every name has these addresses; the names that were looked up."""
    names: list[str] = []

    def look_up(host: str, port: object, **_: Any) -> list[Any]:
        names.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]

    with monkeypatch.context() as patched:
        patched.setattr(connections.socket, "getaddrinfo", look_up)  # type: ignore[attr-defined]
        yield names


async def test_the_addresses_of_a_name_are_tried_in_turn(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as ::1 and 127.0.0.1 for localhost, of which a server has one."""
    port = free_port()
    server = ValkeyProcess(short / "named", options=("--bind", "127.0.0.1", "--port", str(port))).start()
    try:
        with leading_to(monkeypatch, "127.0.0.2", "127.0.0.1") as names:
            async with open_client(f"redis://keys.example:{port}", timeout=5) as client:
                assert await client.ping()
        assert names == ["keys.example"]
    finally:
        server.kill()


async def test_a_name_without_a_server_is_a_lost_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    for addresses in ((), ("127.0.0.2",)):
        with leading_to(monkeypatch, *addresses):
            async with open_client("redis://keys.example:1", timeout=5) as client:
                with pytest.raises(RedisConnectionError):
                    await client.ping()


async def test_callers_that_give_up_share_one_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent resolver occupies one thread for each name, and the next caller gets its late reply."""
    replies, begun = threading.Event(), []

    def look_up(host: str, port: object, **_: Any) -> list[Any]:
        begun.append(host)
        replies.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "late")

    monkeypatch.setattr(connections.socket, "getaddrinfo", look_up)  # type: ignore[attr-defined]
    try:
        async with open_client("redis://keys.example:1", timeout=0.05) as client:
            for _ in range(3):
                with pytest.raises(RedisTimeoutError):
                    await client.ping()
        async with open_client("redis://keys.example:1", timeout=30) as client:
            late: asyncio.Future[bool] = asyncio.ensure_future(client.ping())
            await asyncio.sleep(0)
            replies.set()
            with pytest.raises(RedisConnectionError, match="late"):
                await late
    finally:
        replies.set()
    assert begun == ["keys.example"]
