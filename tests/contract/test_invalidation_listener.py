"""InvalidationListener over real servers: what changes is reported, and a lost connection comes back by itself."""

from collections.abc import AsyncIterator

import pytest

from service.redis import invalidation
from service.redis.invalidation import InvalidationListener
from service.redis.primary import Primary
from tests.contract.conftest import Backend
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import eventually


class Heard:
    """A listener, and what it was told, in order."""

    def __init__(self, url: str) -> None:
        self.names: list[str | None] = []
        self.listener = InvalidationListener(Primary(url), "k:", self.names.append, timeout=1)

    async def connected(self) -> None:
        """Connects, and forgets what was said about it."""
        self.listener.start()
        await eventually(lambda: self.listener.connected)
        assert self.names == [None]
        self.names.clear()


@pytest.fixture
async def heard(real: Backend) -> AsyncIterator[Heard]:
    made = Heard(real.url)
    await made.connected()
    yield made
    await made.listener.stop()


async def test_connecting_says_that_anything_may_have_changed(real: Backend) -> None:
    """Nobody listened before."""
    heard = Heard(real.url)
    await heard.connected()
    await heard.listener.stop()
    assert not heard.listener.connected


@pytest.mark.parametrize(
    "command", [("SET", "k:{a}", "2"), ("DEL", "k:{a}"), ("APPEND", "k:{a}", "x"), ("RENAME", "k:{a}", "z")]
)
async def test_a_change_by_another_client_is_reported(real: Backend, heard: Heard, command: tuple[str, ...]) -> None:
    """Whichever command made it, and though nobody here ever read the record."""
    real.command("SET", "k:{a}", "1")
    await eventually(lambda: heard.names == ["k:{a}"])
    real.command(*command)
    await eventually(lambda: heard.names == ["k:{a}", "k:{a}"])


async def test_a_name_that_is_no_text_ends_nothing(real: Backend, heard: Heard) -> None:
    """Whatever lies under our prefix; those that changed with it are reported."""
    real.command("MSET", b"k:{A\xff}", "1", "k:{a}", "1")
    await eventually(lambda: "k:{a}" in heard.names)
    assert None not in heard.names
    assert heard.listener.connected


async def test_every_change_is_reported(real: Backend, heard: Heard) -> None:
    for number in range(50):
        real.command("SET", f"k:{{{number}}}", "x")
    await eventually(lambda: {f"k:{{{number}}}" for number in range(50)} <= set(heard.names))
    assert None not in heard.names


async def test_other_records_are_not_reported(real: Backend, heard: Heard) -> None:
    """Cache entries change all the time."""
    real.command("SET", "c:1", "x")
    real.command("SET", "k:control", "x")
    await eventually(lambda: heard.names == ["k:control"])


@pytest.mark.parametrize("command", ["FLUSHALL", "FLUSHDB"])
async def test_an_emptied_server_says_that_anything_may_have_changed(real: Backend, heard: Heard, command: str) -> None:
    real.command("SET", "k:{a}", "x")
    await eventually(lambda: heard.names == ["k:{a}"])
    real.command(command)
    await eventually(lambda: None in heard.names)


async def test_a_lost_connection_comes_back(real: Backend, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invalidation, "_RECONNECT_SECONDS", 0.05)
    real.command("CLIENT", "KILL", "TYPE", "normal")
    await eventually(lambda: heard.names == [None])
    real.command("SET", "k:{a}", "x")
    await eventually(lambda: heard.names == [None, "k:{a}"])


async def test_an_idle_connection_is_kept_and_checked(real: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through many pauses it stays the same connection, and changes in between are reported."""
    monkeypatch.setattr(invalidation, "_IDLE_SECONDS", 0.02)
    heard = Heard(real.url)
    await heard.connected()
    for number in range(20):
        real.command("SET", f"k:{{{number}}}", "x")
        await eventually(lambda at=number: heard.names[at:] == [f"k:{{{at}}}"])  # type: ignore[misc]
        await eventually(lambda: heard.listener.connected)
    assert None not in heard.names
    await heard.listener.stop()


async def test_a_stalled_server_is_noticed(process: ValkeyProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """`connected` must not be said of a connection on which nothing comes any more."""
    monkeypatch.setattr(invalidation, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(invalidation, "_RECONNECT_SECONDS", 0.05)
    heard = Heard(process.url)
    heard.listener._timeout = 0.1
    await heard.connected()
    process.stall()
    try:
        await eventually(lambda: not heard.listener.connected)
    finally:
        process.go_on()
    await eventually(lambda: heard.listener.connected)
    assert None in heard.names
    await heard.listener.stop()


async def test_options_of_a_url_are_no_obstacle(real: Backend) -> None:
    """Those for pools, and those that are fixed here."""
    heard = Heard(f"{real.url}?db=0&protocol=2&socket_timeout=9&max_connections=5&client_name=x&decode_responses=true")
    await heard.connected()
    real.command("SET", "k:{a}", "x")
    await eventually(lambda: heard.names == ["k:{a}"])
    await heard.listener.stop()
