"""Our own connection: whatever arrives, in whatever pieces, each call ends once, and with its own reply.

What real servers do is in tests/contract; here the test is the server.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Collection
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from service.base import timeouts
from service.redis import pipelined
from service.redis.connections import open_client
from service.redis.pipelined import Call, PipelinedConnection, call_of, open_pipelined, value
from tests.support.redis_double import Wire, encoded
from tests.support.virtual import VirtualLoop
from tests.support.waiting import PATIENCE, eventually

Value = bytes | None
Greeting = Callable[[AbstractConnection], Awaitable[None]]
VALUES = st.none() | st.binary(max_size=40) | st.sampled_from([b"\r\n", b"$3\r\n", b"-x\r\n*1\r\n"])
UNEXPECTED = [
    *(b"*1\r\n$1\r\na\r\n", b"*0\r\n", b"*01\r\n", b"\r\n", b":1\r\n", b":-1\r\n", b">1\r\n+x\r\n"),
    *(b"HTTP/1.1 400 Bad Request\r\n", b"$\r\n", b"$x\r\n", b"$-2\r\n", b"$--1\r\n", b"$-01\r\n"),
    # what int() would take
    *(b"$1_0\r\n0123456789\r\n", b"$ 5\r\n01234\r\n", b"$5 \r\n01234\r\n", b"$+3\r\n012\r\n", b"$ -1\r\n"),
    "$٣\r\n012\r\n".encode(),
    b"$" + b"9" * 10_000 + b"\r\n",  # larger than any value, and than any number
]


class Sender:
    """Sends calls, and keeps how each ended: twice is a defect. As a Line, it answers for a connection."""

    def __init__(self, timeout: float = 60) -> None:
        self.calls: list[Call] = []
        self.lost_for = ""
        self.wire = Wire(self, timeout)

    def answered(self) -> None: ...

    def refused(self, call: Call, error: str) -> None:
        call.answer.set_exception(ValueError(error))

    def lost(self, connection: PipelinedConnection, calls: Collection[Call], reason: str) -> None:
        self.lost_for = reason
        for call in calls:
            call.answer.set_exception(ConnectionError(reason))

    def send(self, count: int = 1, read: Callable[[object], object] = value) -> None:
        calls = [call_of("k", ("GET", "k"), read) for _ in range(count)]
        self.calls += calls
        self.wire.connection.send(calls)

    @property
    def outcomes(self) -> list[Value | str]:
        """Of each call: its value, why there is none, or that it waits."""
        ended: list[Value | str] = []
        for call in self.calls:
            if not call.answer.done():
                ended.append("waits")
            else:
                error = call.answer.exception()
                ended.append(call.answer.result() if error is None else str(error))
        return ended


def replies(values: list[Value]) -> bytes:
    return b"".join(map(encoded, values))


@given(st.lists(VALUES, min_size=1, max_size=20), st.data())
def test_values_arrive_whole_and_in_order_however_the_replies_are_cut(values: list[Value], data: st.DataObject) -> None:
    stream = replies(values)
    cuts = data.draw(st.lists(st.integers(1, len(stream)), max_size=12))

    async def talk() -> None:
        sender = Sender()
        sender.send(len(values))
        sender.wire.arrive(stream, cuts)
        assert sender.outcomes == values
        assert sender.wire.connection.is_open

    asyncio.run(talk())


async def test_a_command_is_what_redis_understands() -> None:
    sender = Sender()
    words = ("SET", "n\xfc", b"\xff\r\n", 60)
    sender.wire.connection.send([call_of("", words, value), call_of("", ("GET", "x"), value)])
    assert sender.wire.writes == 1
    assert sender.wire.taken() == [[b"SET", "n\xfc".encode(), b"\xff\r\n", b"60"], [b"GET", b"x"]]


async def test_words_that_cannot_be_sent_are_no_call() -> None:
    with pytest.raises(UnicodeEncodeError):
        call_of("", ("GET", "\ud800"), value)


@pytest.mark.parametrize("cut", range(48))
async def test_an_error_is_of_one_call_alone(cut: int) -> None:
    sender = Sender()
    sender.send(3)
    stream = encoded(b"1") + b"-NOPERM No permissions to run 'get'\r\n" + encoded(b"3")
    sender.wire.arrive(stream, [min(cut, len(stream))])
    assert sender.outcomes == [b"1", "NOPERM No permissions to run 'get'", b"3"]
    assert sender.wire.connection.is_open


async def test_a_caller_that_cannot_read_its_reply_keeps_it_from_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("a defect")

    sender = Sender()
    sender.send()
    sender.send(read=broken)
    sender.send()
    sender.wire.arrive(replies([b"1", b"2", b"3"]))
    assert sender.outcomes == [b"1", "a defect", b"3"]
    assert sender.wire.connection.is_open
    assert "a defect" in caplog.text


async def test_the_reply_to_a_command_sent_ahead_is_ignored() -> None:
    sender = Sender()
    for ahead in (b"+OK\r\n", b"-NOPERM no\r\n"):
        call = call_of("k", ("GET", "k"), value)
        call.ahead = pipelined.pack("ASKING")
        sender.wire.connection.send([call])
        assert sender.wire.taken() == [[b"ASKING"], [b"GET", b"k"]]
        sender.wire.arrive(ahead + encoded(b"1"))
        assert call.answer.result() == b"1"


@pytest.mark.parametrize("begun", [b"-ERR ", b"*", b"$", b"$1000000000\r\n"])
async def test_a_reply_that_does_not_end_is_not_gathered(begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelined, "_MOST_REPLY_BYTES", 5_000)
    sender = Sender()
    sender.send()
    sender.wire.arrive(begun)
    for _ in range(6):
        sender.wire.arrive(b"1" * 1000)
    assert "unexpected reply" in str(sender.outcomes[0])
    assert not sender.wire.connection.is_open


@pytest.mark.parametrize("wrong", [b"$1\r\nab\r\n", b"$2\r\na\r\n\r\n"])
async def test_a_value_of_another_length_than_it_says_ends_the_connection(wrong: bytes) -> None:
    """The value itself cannot be seen to be wrong here: entries are checked by whoever asked for them."""
    sender = Sender()
    sender.send(3)
    sender.wire.arrive(wrong + encoded(b"3"))
    assert all("unexpected reply" in str(outcome) for outcome in sender.outcomes[1:])
    assert not sender.wire.connection.is_open


@pytest.mark.parametrize("unexpected", UNEXPECTED)
async def test_an_unexpected_reply_ends_the_connection_and_every_call_that_waits(unexpected: bytes) -> None:
    for cut in {0, 1, 3, 5, 7, len(unexpected) - 1}:
        sender = Sender()
        sender.send(4)
        sender.wire.arrive(encoded(b"1"))
        sender.wire.arrive(unexpected + encoded(b"3") * 2, [cut] if cut < len(unexpected) else [])
        assert sender.outcomes[0] == b"1"
        assert all("unexpected reply" in str(outcome) for outcome in sender.outcomes[1:])
        assert (sender.wire.connection.is_open, sender.wire.ended) == (False, 1)
        sender.wire.arrive(encoded(b"4"))
        await asyncio.sleep(0)
        assert sender.wire.ended == 1


@given(st.binary(min_size=1, max_size=60), st.lists(st.integers(1, 60), max_size=4))
def test_whatever_arrives_every_call_ends_once(noise: bytes, cuts: list[int]) -> None:
    async def talk() -> None:
        sender = Sender()
        sender.send(3)
        sender.wire.arrive(noise, [cut for cut in cuts if cut < len(noise)])
        sender.wire.connection.connection_lost(None)
        assert "waits" not in sender.outcomes
        assert not sender.wire.connection.is_open

    asyncio.run(talk())


@pytest.mark.parametrize("unasked", [b"$-1\r\n", b"-LOADING Redis is loading\r\n", b"$", b"+"])
async def test_a_reply_that_answers_no_call_ends_the_connection(unasked: bytes) -> None:
    """Else the next call would take it for its own."""
    sender = Sender()
    sender.wire.arrive(unasked)
    assert not sender.wire.connection.is_open


@pytest.mark.parametrize("begun", [b"$", b"$1\r\n", b"+", b"*", b"*1\r\n", b"*1\r\n$"])
async def test_the_beginning_of_a_reply_behind_the_last_one_answers_no_call(begun: bytes) -> None:
    sender = Sender()
    sender.send()
    sender.wire.arrive(encoded(b"1") + begun)
    if sender.wire.connection.is_open:
        sender.send()
        sender.wire.arrive(encoded(b"2"))
        assert "unexpected reply" in str(sender.outcomes[1])
    assert sender.outcomes[0] == b"1"
    assert (sender.wire.connection.is_open, sender.wire.ended) == (False, 1)


@pytest.mark.parametrize("arrived", [b"", b"$", b"$300\r\n", b"$300\r\nxxx"])
async def test_silence_is_not_waited_for_longer_than_the_timeout(arrived: bytes) -> None:
    sender = Sender(timeout=0.02)
    sender.send(3)
    sender.wire.arrive(arrived)
    await eventually(lambda: not sender.wire.connection.is_open)
    assert sender.outcomes == ["Timeout reading from the server"] * 3
    assert sender.wire.ended == 1


async def test_a_connection_without_calls_is_not_ended_by_time() -> None:
    sender = Sender(timeout=0.02)
    sender.send()
    sender.wire.arrive(encoded(b"1"))
    await asyncio.sleep(0.06)
    assert sender.wire.connection.is_open


async def test_closing_ends_every_call_once() -> None:
    sender = Sender()
    sender.send()
    sender.wire.connection.close()
    sender.wire.connection.close()
    assert (sender.outcomes, sender.wire.ended) == (["closed"], 1)


def ends_at(delay: float, timeout: float, monkeypatch: pytest.MonkeyPatch) -> float | None:
    """When a connection ends on which a call goes out every 10 ms and each reply takes `delay` seconds."""

    async def work() -> float | None:
        loop = asyncio.get_running_loop()
        for module in (pipelined, timeouts):
            monkeypatch.setattr(module, monotonic.__name__, loop.time)
        sender = Sender(timeout)
        for _ in range(300):
            sender.send()
            loop.call_later(delay, sender.wire.connection.data_received, b"$-1\r\n")
            await asyncio.sleep(0.01)
            if not sender.wire.connection.is_open:
                assert sender.lost_for == "Timeout reading from the server"
                assert "waits" not in sender.outcomes
                return loop.time()
        return None

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


@pytest.mark.parametrize("share", [0.4, 0.6, 0.9])
def test_replies_in_time_end_nothing_however_many_are_under_way(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ends_at(share * 0.25, 0.25, monkeypatch) is None


def test_a_reply_that_takes_too_long_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = ends_at(1.2 * 0.25, 0.25, monkeypatch)
    assert ended is not None
    assert ended <= 1.2 * 0.25


async def _no_greeting(_: AbstractConnection) -> None:
    """For servers here, which know one command."""


async def _until_it_ends(connection: AbstractConnection) -> None:
    reader = connection._reader
    assert reader is not None
    await eventually(reader.at_eof)


async def _open(server: asyncio.Server, greeting: Greeting) -> PipelinedConnection:
    port = server.sockets[0].getsockname()[1]
    client = open_client(f"redis://127.0.0.1:{port}", timeout=5)
    client.connection_pool.connection_kwargs["redis_connect_func"] = greeting
    connection = await open_pipelined(client, Sender())
    await client.aclose(close_connection_pool=True)
    return connection


async def test_a_connection_stays_open_when_what_opened_it_is_gone() -> None:
    """Nothing else holds the stream's writer, which closes what it wrote to when it goes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            if await reader.read(100):
                writer.write(encoded(b"x"))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    connection = await _open(server, _no_greeting)
    gc.collect()
    for _ in range(2):
        call = call_of("k", ("GET", "k"), value)
        connection.send([call])
        assert await asyncio.wait_for(call.answer, PATIENCE) == b"x"
    connection.close()
    server.close()


@pytest.mark.parametrize("greeting", [_no_greeting, _until_it_ends])
async def test_a_server_that_closes_at_once_leaves_nothing_that_seems_open(greeting: Greeting) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    if greeting is _until_it_ends:
        with pytest.raises(ConnectionResetError, match="before it was used"):
            await _open(server, greeting)
    else:
        connection = await _open(server, greeting)
        await eventually(lambda: not connection.is_open)
    server.close()


async def test_a_server_with_an_unexpected_greeting_makes_no_connection() -> None:
    """The library stumbles over it; whoever opens a connection meets a documented error."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            writer.write(b"-MOVED\r\n")
        writer.close()
        closed.set()

    closed = asyncio.Event()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    client = open_client(f"redis://:password@127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout=5)
    with pytest.raises(RedisError, match="unexpected reply"):
        await open_pipelined(client, Sender())
    await asyncio.wait_for(closed.wait(), PATIENCE)  # nothing is left open
    await client.aclose(close_connection_pool=True)
    server.close()
