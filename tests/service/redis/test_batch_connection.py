"""The connection that shared commands travel on: their pace, the way beside it, its loss, and the end.

The test is the server; what the client's way answers comes from a double.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from service.redis.batch import BatchedGet
from service.redis.breaker import FAILURES_TO_OPEN
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from tests.support.mget import Wire, reply_to_mget
from tests.support.waiting import eventually


class Store(RedisStore):
    """Connections to it end at the test. `gone`: nobody gets through, by either way; `full`: there are no new ones.
    New ones wait for `opening`."""

    def __init__(self, client: Redis) -> None:
        super().__init__("cache", "redis://fake", client)
        self.gone = self.full = False
        self.timeout = 60.0
        self.wires: list[Wire] = []
        self.opened = self.by_client = 0
        self.opening = asyncio.Event()
        self.opening.set()

    async def connection(self, made: Callable[[Redis], Awaitable[Any]]) -> Any:
        self.opened += 1
        await asyncio.sleep(0)
        await self.opening.wait()
        if self.gone or self.full:
            raise RedisConnectionError("refused")
        self.wires.append(Wire(self.timeout))
        return self.wires[-1].connection

    async def call(self, command: Callable[[Redis], Awaitable[Any]]) -> Any:
        async def counted(client: Redis) -> Any:
            self.by_client += 1
            if self.gone:
                raise RedisConnectionError("refused")
            return await command(client)

        return await super().call(counted)


class Caller:
    """What each name was found to be; told twice, or in the turn in which it asked, is a defect."""

    def __init__(self, batched: BatchedGet) -> None:
        self._batched = batched
        self.found: dict[str, bytes | StoreUnavailable | None] = {}
        self.asked: list[str] = []

    def ask(self, *names: str) -> None:
        for name in names:

            def told(value: bytes | StoreUnavailable | None, name: str = name) -> None:
                assert name not in self.found
                self.found[name] = value

            self.asked.append(name)
            self._batched.ask(name, told)
            assert name not in self.found

    @property
    def unavailable(self) -> set[str]:
        return {name for name, value in self.found.items() if isinstance(value, StoreUnavailable)}

    async def all_told(self) -> None:
        await eventually(lambda: set(self.found) == set(self.asked))


@pytest.fixture(autouse=True)
def _reopened_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.redis.own_connection.REOPEN_SECONDS", 0)


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    client = FakeAsyncRedis()
    await client.mset({f"k{number}": str(number) for number in range(700)})
    yield Store(client)
    await client.aclose()


@pytest.fixture
async def batched(store: Store) -> AsyncIterator[BatchedGet]:
    """With its connection open: the first look-up went by the client."""
    made = BatchedGet(store)
    assert await made.get("k1") == b"1"
    await eventually(lambda: made._own.current is not None)
    yield made
    await made.stop()


@pytest.fixture
def caller(batched: BatchedGet) -> Caller:
    return Caller(batched)


async def _sent(wire: Wire) -> list[list[str]]:
    """After whatever was scheduled."""
    for _ in range(3):
        await asyncio.sleep(0)
    return wire.taken()


def _answer(wire: Wire, names: list[str]) -> None:
    wire.arrive(reply_to_mget([name.encode() for name in names]))


async def test_who_comes_while_a_command_is_under_way_goes_with_the_next(store: Store, caller: Caller) -> None:
    """Those of several turns together, as soon as the reply is there, by the connection."""
    wire = store.wires[0]
    caller.ask("a")
    assert await _sent(wire) == [["a"]]
    caller.ask("b")
    assert await _sent(wire) == []
    caller.ask("c", "d")
    assert await _sent(wire) == []
    _answer(wire, ["a"])
    assert caller.found == {"a": b"a"}
    assert await _sent(wire) == [["b", "c", "d"]]
    wire.arrive(reply_to_mget([b"b", None, b"d"]))
    assert caller.found == {"a": b"a", "b": b"b", "c": None, "d": b"d"}
    assert (store.by_client, store.opened) == (1, 1)


async def test_enough_callers_for_a_command_of_their_own_do_not_wait(store: Store, caller: Caller) -> None:
    """64, as each command has at most; and no more than eight commands are under way."""
    wire = store.wires[0]
    caller.ask("first")
    assert await _sent(wire) == [["first"]]
    caller.ask(*(f"k{number}" for number in range(63)))
    assert await _sent(wire) == []
    caller.ask("k63", "k64")
    assert await _sent(wire) == [[f"k{number}" for number in range(64)]]
    under_way = [["first"], [f"k{number}" for number in range(64)]]
    caller.ask(*(f"k{number}" for number in range(65, 600)))
    under_way += await _sent(wire)
    assert [len(names) for names in under_way] == [1] + [64] * 7
    while under_way:
        _answer(wire, under_way.pop(0))
        under_way += await _sent(wire)
        assert len(under_way) <= 8
    assert caller.found == {name: name.encode() for name in caller.asked}


async def test_while_there_is_no_connection_look_ups_go_by_the_client(store: Store) -> None:
    """And each tries to open one, until it is there."""
    batched = BatchedGet(store)
    store.full = True
    for number in range(3):
        assert await batched.get(f"k{number}") == str(number).encode()
        await eventually(lambda: batched._own._opening is None)
    assert (store.by_client, store.opened) == (3, 3)
    assert not store.is_away, "a connection that cannot be made is no failed call"
    store.full = False
    assert await batched.get("k3") == b"3"
    await eventually(lambda: batched._own.current is not None)
    found = asyncio.create_task(batched.get("k4"))
    assert await _sent(store.wires[0]) == [["k4"]]
    _answer(store.wires[0], ["k4"])
    assert (await found, store.by_client) == (b"k4", 4)
    await batched.stop()


async def test_a_connection_is_not_tried_again_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many look-ups go by the client meanwhile."""
    monkeypatch.setattr("service.redis.own_connection.REOPEN_SECONDS", 60)
    batched = BatchedGet(store)
    await batched.get("k1")
    await eventually(lambda: batched._own.current is not None)
    store.wires[0].connection.connection_lost(None)
    for _ in range(10):
        assert await batched.get("k1") == b"1"
    assert (store.by_client, store.opened) == (11, 1)


async def test_a_lost_connection_costs_those_who_were_under_way(
    store: Store, batched: BatchedGet, caller: Caller
) -> None:
    """They are told that the store is not available; those who waited go by the client, later ones by a new connection.

    It is one failure: a handful of commands on one connection does not open the circuit.
    """
    wire = store.wires[0]
    caller.ask(*(f"k{number}" for number in range(500)))
    sent = await _sent(wire)
    assert len(sent) == 7
    caller.ask("k501")
    wire.connection.connection_lost(ConnectionResetError("reset by peer"))
    await caller.all_told()
    lost = {name for names in sent for name in names}
    assert caller.unavailable == lost
    assert {str(caller.found[name]) for name in lost} == {"cache: reset by peer"}
    assert all(caller.found[name] == name[1:].encode() for name in caller.asked if name not in lost)
    assert not store.is_away
    await eventually(lambda: len(store.wires) == 2 and batched._own._opening is None)
    caller.ask("new")
    assert await _sent(store.wires[1]) == [["new"]]
    _answer(store.wires[1], ["new"])
    assert caller.found["new"] == b"new"


async def test_a_connection_lost_while_nobody_waits_is_no_failure(store: Store, batched: BatchedGet) -> None:
    """Servers close those that are idle."""
    store.wires[0].connection.connection_lost(None)
    assert store.healthy
    assert await batched.get("k1") == b"1"
    await eventually(lambda: len(store.wires) == 2)


async def test_a_refusal_keeps_the_connection_and_the_circuit(store: Store, caller: Caller) -> None:
    """The server is there; whoever asks next may have more luck."""
    wire = store.wires[0]
    for number in range(3 * FAILURES_TO_OPEN):
        caller.ask(f"k{number}")
        await _sent(wire)
        wire.arrive(b"-NOPERM no rights\r\n")
    assert caller.unavailable == set(caller.asked)
    assert (store.is_away, store.healthy, wire.connection.is_open) == (False, True, True)
    caller.ask("next")
    assert await _sent(wire) == [["next"]]
    _answer(wire, ["next"])
    assert caller.found["next"] == b"next"


@pytest.mark.parametrize("lost", ["silence", "nonsense", "end"])
async def test_failures_of_the_connection_open_the_circuit_and_then_nobody_asks(store: Store, lost: str) -> None:
    """Together with those of the client: the third in a row. When it closes again, look-ups come back."""
    store.timeout = 0.01 if lost == "silence" else 60
    batched = BatchedGet(store)
    await batched.get("k1")
    await eventually(lambda: batched._own.current is not None)
    caller, wire = Caller(batched), store.wires[0]
    store.gone = True
    for number in range(FAILURES_TO_OPEN):
        assert not store.is_away
        caller.ask(f"k{number}")
        if not number:
            assert await _sent(wire) == [["k0"]]
            if lost == "nonsense":
                wire.arrive(b"HTTP/1.1 400\r\n")
            elif lost == "end":
                wire.connection.connection_lost(None)
        await caller.all_told()
    assert store.is_away
    tried = (store.by_client, store.opened)
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="cache is away"):
            await batched.get("k1")
    assert (store.by_client, store.opened) == tried
    assert caller.unavailable == set(caller.asked)
    store.gone = False
    await store._ping()
    assert await batched.get("k1") == b"1"
    await eventually(lambda: len(store.wires) == 2)
    await batched.stop()


async def test_an_open_connection_is_not_used_while_the_store_is_away(store: Store, batched: BatchedGet) -> None:
    """Others of the same store may have found out first."""
    for _ in range(FAILURES_TO_OPEN):
        store.failed(ConnectionResetError("gone"), answered=False)
    with pytest.raises(StoreUnavailable, match="is away"):
        await batched.get("k1")
    assert store.wires[0].sent == b""


async def test_stopping_tells_everybody(store: Store, batched: BatchedGet, caller: Caller) -> None:
    """Those under way, those who wait for the next command, those of this turn, and later ones. It is no failure."""
    wire = store.wires[0]
    caller.ask("under way")
    await _sent(wire)
    caller.ask("waiting")
    await asyncio.sleep(0)
    caller.ask("this turn")
    await batched.stop()
    caller.ask("later")
    await caller.all_told()
    assert caller.unavailable == {"under way", "waiting", "this turn", "later"}
    assert wire.ended == 1
    assert store.healthy
    assert (store.by_client, store.opened) == (1, 1)


async def test_stopping_waits_for_what_goes_by_the_client(store: Store) -> None:
    """And nothing is opened after it."""
    going, let_go = asyncio.Event(), asyncio.Event()
    plain = store.call

    async def slow(command: Callable[[Redis], Awaitable[Any]]) -> Any:
        going.set()
        await let_go.wait()
        return await plain(command)

    store.call = slow  # type: ignore[method-assign]
    batched = BatchedGet(store)
    caller = Caller(batched)
    caller.ask("k1")
    await going.wait()
    caller.ask("k2")
    stopping = asyncio.create_task(batched.stop())
    await asyncio.sleep(0)
    let_go.set()
    await stopping
    await caller.all_told()
    assert caller.found["k1"] == b"1"
    assert caller.unavailable == {"k2"}
    assert (batched._own._opening, batched._own._connection) == (None, None)


async def test_a_caller_that_cannot_use_what_was_found_harms_nobody(
    store: Store, batched: BatchedGet, caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    """Its defect is logged; the others of its command are told, and the connection stays."""

    def defect(_: object) -> None:
        raise ValueError("a defect")

    wire = store.wires[0]
    caller.ask("a")
    batched.ask("b", defect)
    caller.ask("c")
    assert await _sent(wire) == [["a", "b", "c"]]
    caller.ask("d")
    with caplog.at_level(logging.ERROR):
        _answer(wire, ["a", "b", "c"])
    assert caller.found == {"a": b"a", "c": b"c"}
    assert "a defect" in caplog.text
    assert await _sent(wire) == [["d"]]
    _answer(wire, ["d"])
    assert caller.found["d"] == b"d"


async def test_a_connection_that_was_being_opened_when_the_store_moved_is_not_used(store: Store) -> None:
    """It leads to where the store was; another one is opened."""
    batched = BatchedGet(store)
    opening = store.opening = asyncio.Event()
    assert await batched.get("k1") == b"1"
    await eventually(lambda: store.opened == 1)
    store._move("redis://elsewhere")
    opening.set()
    await eventually(lambda: bool(store.wires) and store.wires[0].ended == 1)
    assert batched._own.current is None
    await eventually(lambda: batched._own.current is not None)
    assert (store.opened, store.wires[1].ended) == (2, 0)
    await batched.stop()
