"""Is there a Redis at this URL? A mistake is reported when an instance starts, an outage is waited for."""

import socket
from pathlib import Path

import pytest

from service.embedded import probe
from service.embedded.probe import check_answers_redis
from tests.support.foreign_server import answering
from tests.support.valkey import ValkeyProcess


async def test_an_unreachable_server_is_no_mistake(tmp_path: Path) -> None:
    assert await check_answers_redis(f"unix://{tmp_path}/none") is None
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert await check_answers_redis(f"redis://127.0.0.1:{bound.getsockname()[1]}/0") is None


@pytest.mark.parametrize(
    "reply", [b"", b"-LOADING Redis is loading the dataset in memory\r\n"], ids=["hangs", "starts"]
)
async def test_a_server_that_hangs_or_starts_is_no_mistake(reply: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_TIMEOUT_SECONDS", 0.1)
    with answering(reply) as port:
        assert await check_answers_redis(f"redis://127.0.0.1:{port}/0") is None


@pytest.mark.parametrize("reply", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"<!DOCTYPE HTML>\n<html>"])
async def test_another_protocol_is_a_mistake(reply: bytes) -> None:
    with answering(reply) as port:
        problem = await check_answers_redis(f"redis://127.0.0.1:{port}/0")
    assert problem is not None
    assert "does not speak Redis's protocol" in problem


async def test_protected_mode_is_a_mistake() -> None:
    """The server replies before it reads, and closes: the client sees only a lost connection."""
    with answering(b"-DENIED Redis is running in protected mode because protected mode is enabled\r\n") as port:
        problem = await check_answers_redis(f"redis://127.0.0.1:{port}/0")
    assert problem is not None
    assert "protected mode" in problem
    assert "requirepass" in problem


async def test_wrong_credentials_are_a_mistake_that_shows_none_of_them(short_folder: Path) -> None:
    server = ValkeyProcess(short_folder / "locked").start()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(server.socket))
            connection.sendall(b"CONFIG SET requirepass right\r\n")
            assert connection.recv(100) == b"+OK\r\n"
        for url in (server.url, f"unix://:wrong-secret@{server.socket}"):
            problem = await check_answers_redis(url)
            assert problem is not None
            assert "credentials" in problem
            assert "wrong-secret" not in problem
        assert await check_answers_redis(f"unix://:right@{server.socket}") is None
    finally:
        server.kill()


async def test_a_url_of_another_kind_is_a_mistake() -> None:
    for url in ("http://127.0.0.1:1", "127.0.0.1:6379", "redis://h:port/0"):
        assert "is not a Redis URL" in ((await check_answers_redis(url)) or "")
