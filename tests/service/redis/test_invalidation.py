"""The listener against servers that do not do what it needs. What real ones push is in tests/contract."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from service.redis import invalidation
from service.redis.invalidation import InvalidationListener
from service.redis.primary import Primary
from tests.support.waiting import eventually


class Refusing:
    """Speaks as a server older than tracking does: every command is unknown. `conversations` counts connections."""

    def __init__(self) -> None:
        self.conversations = 0
        self.port = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.conversations += 1
        while line := await reader.readline():
            if line.startswith(b"*"):
                for _ in range(2 * int(line[1:])):
                    await reader.readline()
                writer.write(b"-ERR unknown command\r\n")
        writer.close()


@pytest.fixture
async def refusing() -> AsyncIterator[Refusing]:
    server = Refusing()
    listening = await asyncio.start_server(server.talk, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    yield server
    listening.close()


def listening_to(port: int, changed: Callable[[str | None], None], timeout: float = 1) -> InvalidationListener:
    return InvalidationListener(Primary(f"redis://127.0.0.1:{port}"), "k:", changed, timeout=timeout)


async def test_a_server_that_refuses_is_left_alone(
    refusing: Refusing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(invalidation, "_RECONNECT_SECONDS", 0.01)
    changed: list[str | None] = []
    listener = listening_to(refusing.port, changed.append)
    listener.start()
    await eventually(lambda: refusing.conversations == 1)
    await asyncio.sleep(0.15)
    assert (refusing.conversations, listener.connected, changed) == (1, False, [])
    assert listener.refused
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    await listener.stop()


async def test_a_server_that_goes_on_refusing_is_warned_of_once(
    refusing: Refusing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(invalidation, "_REFUSED_SECONDS", 0.01)
    listener = listening_to(refusing.port, lambda _: None)
    listener.start()
    await eventually(lambda: refusing.conversations >= 3)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    await listener.stop()


async def test_a_server_that_never_answers_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invalidation, "_RECONNECT_SECONDS", 0.01)
    tries = 0

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal tries
        tries += 1
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    listener = listening_to(port, lambda _: None, 0.05)
    listener.start()
    await eventually(lambda: tries >= 3)
    assert not listener.connected
    await listener.stop()
    listening.close()


async def test_stopping_what_was_never_started_is_nothing() -> None:
    """An instance that failed to start stops all its parts."""
    await listening_to(1, lambda _: None).stop()
