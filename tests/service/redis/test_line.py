"""The calls of a store: they travel together, each ends within its time, and none is left waiting. The test is the
server."""

import asyncio
import logging
from collections.abc import AsyncIterator
from importlib import resources

import pytest

from service.redis.client import FAILURES_TO_OPEN
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.pipelined import anything, value
from service.redis.script import Script
from tests.support.redis_double import Wire, WiredStore, encoded
from tests.support.waiting import settled

FILE = "lease.lua"
TEXT = (resources.files("service.quota") / FILE).read_text(encoding="utf-8").encode()


@pytest.fixture
async def store() -> AsyncIterator[WiredStore]:
    made = WiredStore()
    yield made
    await made.stop()


def get(store: WiredStore, *names: str) -> list["asyncio.Future[bytes | None]"]:
    return [store.send(name, ("GET", name), value) for name in names]


async def sent(store: WiredStore) -> list[str]:
    """The names that were asked for on the last connection, since this was called last."""
    await settled()
    return [words[1].decode() for words in store.wires[-1].taken()]


async def opened(store: WiredStore) -> Wire:
    [found] = get(store, "first")
    await settled()
    wire = store.wires[-1]
    wire.taken()
    wire.arrive(encoded(b"x"))
    assert await found == b"x"
    return wire


async def unavailable(answers: list["asyncio.Future[bytes | None]"]) -> set[str]:
    """Why each of them has no value."""
    results = await asyncio.gather(*answers, return_exceptions=True)
    assert all(isinstance(one, StoreUnavailable) for one in results)
    return set(map(str, results))


async def test_calls_of_one_turn_are_one_write(store: WiredStore) -> None:
    wire = await opened(store)
    writes = wire.writes
    first = get(store, "a", "b", "a")
    assert (await sent(store), wire.writes) == (["a", "b", "a"], writes + 1)
    second = get(store, "c")
    assert (await sent(store), wire.writes) == (["c"], writes + 2)
    wire.arrive(b"".join(map(encoded, (b"1", None, b"3", b"4"))))
    assert await asyncio.gather(*first, *second) == [b"1", None, b"3", b"4"]


async def test_a_cancelled_caller_does_not_affect_others(store: WiredStore) -> None:
    """Its command is sent and answered all the same."""
    wire = await opened(store)
    gone, also_gone, stays = get(store, "a", "b", "c")
    gone.cancel()
    assert await sent(store) == ["a", "b", "c"]
    also_gone.cancel()
    wire.arrive(b"".join(map(encoded, (b"1", b"2", b"3"))))
    assert await stays == b"3"
    assert store.line.is_open


async def test_calls_wait_for_the_connection(store: WiredStore) -> None:
    store.opening.clear()
    answers = get(store, "a", "b")
    await settled()
    answers += get(store, "c")
    await settled()
    store.opening.set()
    assert await sent(store) == ["a", "b", "c"]
    store.wires[0].arrive(encoded(b"x") * 3)
    assert (await asyncio.gather(*answers), store.opened) == ([b"x"] * 3, 1)


async def test_a_connection_that_cannot_be_made_is_a_failure_of_all_who_wait_for_it(store: WiredStore) -> None:
    store.gone = True
    assert await unavailable(get(store, "a", "b")) == {"cache: refused"}
    assert not store.is_unreachable
    store.gone = False
    await opened(store)


async def test_a_defect_in_opening_leaves_no_caller_waiting(store: WiredStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect() -> Wire:
        raise RuntimeError("a defect")

    monkeypatch.setattr(store, "wire", defect)
    assert "a defect" in str(await unavailable(get(store, "a")))


async def test_a_lost_connection_costs_the_calls_under_way(store: WiredStore) -> None:
    wire = await opened(store)
    answers = get(store, *(f"k{number}" for number in range(500)))
    await settled()
    wire.connection.connection_lost(ConnectionResetError("reset by peer"))
    assert await unavailable(answers) == {"cache: reset by peer"}
    assert not store.is_unreachable
    await opened(store)
    assert len(store.wires) == 2


async def test_a_connection_lost_while_idle_is_no_failure(store: WiredStore) -> None:
    wire = await opened(store)
    wire.connection.connection_lost(None)
    assert store.healthy
    await opened(store)


async def test_a_refusal_keeps_the_connection_and_the_circuit(store: WiredStore) -> None:
    """The server is there; the next caller may have more luck."""
    wire = await opened(store)
    answers = get(store, *(f"k{number}" for number in range(3 * FAILURES_TO_OPEN)))
    await settled()
    wire.arrive(b"-NOPERM no rights\r\n" * len(answers))
    [error, *_] = await asyncio.gather(*answers, return_exceptions=True)
    assert isinstance(error, StoreRefused)
    assert error.text.startswith("NOPERM no rights")
    assert (store.is_unreachable, store.healthy, store.line.is_open) == (False, True, True)


@pytest.mark.parametrize("lost", ["silence", "nonsense", "end", "not opened", "loading"])
async def test_failures_in_a_row_open_the_circuit_and_calls_fail_at_once(store: WiredStore, lost: str) -> None:
    store.timeout = 0.01 if lost == "silence" else 60
    store.gone = lost == "not opened"
    for _ in range(FAILURES_TO_OPEN):
        assert not store.is_unreachable
        answers = get(store, "k")
        await settled()
        if lost == "nonsense":
            store.wires[-1].arrive(b"HTTP/1.1 400\r\n")
        elif lost == "end":
            store.wires[-1].connection.connection_lost(None)
        elif lost == "loading":
            store.wires[-1].arrive(b"-LOADING Redis is loading the dataset in memory\r\n")
        await unavailable(answers)
    assert store.is_unreachable
    before = store.opened, sum(wire.writes for wire in store.wires)
    assert await unavailable(get(store, "a", "b")) == {"cache is unreachable"}
    assert (store.opened, sum(wire.writes for wire in store.wires)) == before
    store.gone, store.timeout = False, 60
    await store._ping()
    await opened(store)


async def test_an_open_connection_is_not_used_while_the_circuit_is_open(store: WiredStore) -> None:
    """Other calls of the same store may have found out first."""
    await opened(store)
    for _ in range(FAILURES_TO_OPEN):
        store.failed(ConnectionResetError("gone"), answered=False)
    assert await unavailable(get(store, "a")) == {"cache is unreachable"}
    assert await sent(store) == []


@pytest.mark.parametrize("when", ["under way", "opening", "not sent"])
async def test_stopping_leaves_no_caller_waiting(store: WiredStore, when: str) -> None:
    if when == "opening":
        store.opening.clear()
    answers = get(store, "a", "b")
    if when != "not sent":
        await settled()
    await store.stop()
    await unavailable(answers)
    await unavailable(get(store, "c"))
    assert all(wire.ended == 1 for wire in store.wires)


async def test_a_store_that_moved_leaves_its_connection(store: WiredStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    wire = await opened(store)
    answers = get(store, "a")
    await settled()
    store._move("redis://elsewhere")
    await unavailable(answers)
    assert (wire.ended, store.healthy, caplog.messages) == (1, True, [])
    assert await opened(store) is not wire


async def test_a_connection_that_was_being_opened_when_the_store_moved_is_not_used(store: WiredStore) -> None:
    """It leads to where the store was: the call that waits for it goes to the new place."""
    store.opening.clear()
    get(store, "a")
    await settled()
    store._move("redis://elsewhere")
    store.opening.set()
    assert await sent(store) == ["a"]
    assert [wire.ended for wire in store.wires] == [1, 0]
    assert store.wires[0].writes == 0


@pytest.mark.parametrize("said", ["READONLY You can't write against a read only replica.", "NOREPLICAS Not enough"])
async def test_a_server_that_is_not_the_primary_refuses(store: WiredStore, said: str) -> None:
    """A replica is not asked again until a probe finds a primary."""
    wire = await opened(store)
    answers = get(store, "a")
    await settled()
    wire.arrive(f"-{said}\r\n".encode())
    await unavailable(answers)
    assert store.is_unreachable == said.startswith("READONLY")


@pytest.mark.parametrize("loads", [False, True])
async def test_a_server_that_does_not_know_a_script_is_sent_it(store: WiredStore, loads: bool) -> None:
    script = Script("service.quota", FILE, loads=loads)
    wire = await opened(store)
    answer, [other] = script.send(store, (1, "key", "argument"), anything), get(store, "a")
    await settled()
    sha = script.sha.encode()
    call = [b"EVALSHA", sha, b"1", b"key", b"argument"]
    assert wire.taken() == [call, [b"GET", b"a"]]
    wire.arrive(b"-NOSCRIPT No matching script\r\n" + encoded(b"x"))
    assert await other == b"x"
    await settled()
    if loads:
        assert wire.taken() == [[b"SCRIPT", b"LOAD", TEXT], call]
        wire.arrive(encoded(sha))
    else:
        assert wire.taken() == [[b"EVAL", TEXT, *call[2:]]]
    assert not answer.done()
    wire.arrive(encoded(7))
    assert await answer == 7


async def test_a_server_that_does_not_learn_a_script_refuses(store: WiredStore) -> None:
    wire = await opened(store)
    answer = Script("service.quota", FILE, loads=True).send(store, (1, "key"), anything)
    await settled()
    wire.arrive(b"-NOSCRIPT No matching script\r\n")
    await settled()
    wire.arrive(b"-NOPERM no\r\n-NOSCRIPT No matching script\r\n")
    with pytest.raises(StoreRefused, match="NOSCRIPT"):
        await answer
