"""MGET on a connection of its own: whatever arrives, in whatever pieces, each command is told once, and the truth.

What real servers do is in tests/contract; here the test is the server.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from service.redis import pipelined
from service.redis.client import open_client
from service.redis.mget import MgetConnection, MgetError, Values, open_mget
from tests.support.mget import Asked, Wire, reply_to_mget
from tests.support.waiting import PATIENCE, eventually

Greeting = Callable[[AbstractConnection], Awaitable[None]]
VALUES = st.lists(
    st.none() | st.binary(max_size=40) | st.sampled_from([b"\r\n", b"$3\r\n", b"-x\r\n*1\r\n"]), min_size=1
)
MIXED: Values = [b"a", None, b"", b"\r\n$1\r\nx\r\n", b"b" * 300]
NONSENSE = [
    b"*2\r\n",  # of another count
    b"*0\r\n",
    b"*-1\r\n",
    b"*01\r\n",
    b"* 1\r\n",
    b"*\r\n",
    b"\r\n",
    b"+OK\r\n",
    b":1\r\n",
    b"$1\r\na\r\n",
    b"HTTP/1.1 400 Bad Request\r\n",
    b"*1\r\n*1\r\n",
    b"*1\r\n:1\r\n",
    b"*1\r\n-ERR no\r\n",
    b"*1\r\n\r\n",
    b"*1\r\n$\r\n",
    b"*1\r\n$x\r\n",
    b"*1\r\n$-2\r\n",
    b"*1\r\n$--1\r\n",
    b"*1\r\n$-01\r\n",
    b"*1\r\n:-1\r\n",
    # what int() would take
    b"*1\r\n$1_0\r\n0123456789\r\n",
    b"*1\r\n$ 5\r\n01234\r\n",
    b"*1\r\n$5 \r\n01234\r\n",
    b"*1\r\n$+3\r\n012\r\n",
    b"*1\r\n$ -1\r\n",
    b"*1\r\n$-1 \r\n",
    "*1\r\n$٣\r\n012\r\n".encode(),
    # larger than any value, and than any number
    b"*1\r\n$" + b"9" * 10_000 + b"\r\n",
    # longer, shorter than it says
]


@given(st.lists(VALUES, min_size=1, max_size=6), st.data())
def test_values_arrive_whole_and_in_order_however_the_replies_are_cut(
    replies: list[Values], data: st.DataObject
) -> None:
    """Absent, empty, and such as look like replies themselves; of several commands under way."""
    stream = b"".join(map(reply_to_mget, replies))
    cuts = data.draw(st.lists(st.integers(1, len(stream)), max_size=12))

    async def talk() -> None:
        asked = Asked(Wire())
        for values in replies:
            asked.ask(len(values))
        asked.wire.arrive(stream, cuts)
        assert asked.outcomes == replies
        assert asked.wire.connection.is_open
        asked.wire.connection.close()

    asyncio.run(talk())


async def test_a_reply_may_be_cut_anywhere_and_is_not_told_before_its_last_byte() -> None:
    """At every offset, and at all of them."""
    stream = reply_to_mget(MIXED)
    asked = Asked(Wire())
    for cut in range(1, len(stream)):
        asked.ask(len(MIXED))
        asked.wire.arrive(stream[:cut])
        assert asked.outcomes[-1] is None
        asked.wire.arrive(stream[cut:])
        assert asked.outcomes[-1] == MIXED
    asked.ask(len(MIXED))
    asked.wire.arrive(stream, range(len(stream)))
    assert asked.outcomes[-1] == MIXED
    asked.wire.connection.close()


async def test_a_command_is_what_redis_understands() -> None:
    """Words with their lengths; those that follow do not wait for a reply."""
    asked = Asked(Wire())
    asked.wire.connection.ask(["c:2:r1:ab", "x"], lambda _: None)
    assert asked.wire.sent == b"*3\r\n$4\r\nMGET\r\n$9\r\nc:2:r1:ab\r\n$1\r\nx\r\n"
    asked.ask(1)
    asked.ask(2)
    assert asked.wire.taken() == [["c:2:r1:ab", "x"], ["k0"], ["k0", "k1"]]
    asked.wire.connection.close()


async def test_a_name_that_cannot_be_sent_is_no_command() -> None:
    """Its caller is told by the error, and the next one gets its own reply."""
    asked = Asked(Wire())
    with pytest.raises(UnicodeEncodeError):
        asked.wire.connection.ask(["ü"], lambda _: pytest.fail("told as well"))
    assert asked.wire.sent == b""
    asked.ask(1)
    asked.wire.arrive(reply_to_mget([b"x"]))
    assert asked.outcomes == [[b"x"]]
    asked.wire.connection.close()


@pytest.mark.parametrize("cut", range(60))
async def test_a_refusal_is_of_one_command_alone(cut: int) -> None:
    """Those before and after it have their values, and the connection stays."""
    asked = Asked(Wire())
    for _ in range(3):
        asked.ask(1)
    refusal = b"-NOPERM No permissions to run 'mget'\r\n"
    stream = reply_to_mget([b"1"]) + refusal + reply_to_mget([b"3"])
    asked.wire.arrive(stream, [min(cut, len(stream))])
    assert asked.outcomes == [[b"1"], "NOPERM No permissions to run 'mget'", [b"3"]]
    assert asked.refused == [False, True, False]
    asked.ask(1)
    asked.wire.arrive(reply_to_mget([b"4"]))
    assert asked.outcomes[-1] == [b"4"]
    asked.wire.connection.close()


@pytest.mark.parametrize("begun", [b"-ERR ", b"*", b"*1\r\n$", b"*1\r\n$1000000000\r\n"])
async def test_a_reply_that_does_not_end_is_not_gathered(begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fill the memory until the timeout."""
    monkeypatch.setattr(pipelined, "_MOST_REPLY_BYTES", 5_000)
    asked = Asked(Wire())
    asked.ask(1)
    asked.wire.arrive(begun)
    for _ in range(6):
        asked.wire.arrive(b"1" * 1000)
    assert "makes no sense" in str(asked.outcomes[0])
    assert not asked.wire.connection.is_open


@pytest.mark.parametrize("wrong", [b"*1\r\n$1\r\nab\r\n", b"*1\r\n$2\r\na\r\n\r\n"])
async def test_a_value_of_another_length_than_it_says_ends_the_connection(wrong: bytes) -> None:
    """The value itself cannot be told to be wrong here: entries are checked by whoever asked for them."""
    asked = Asked(Wire())
    for _ in range(3):
        asked.ask(1)
    asked.wire.arrive(wrong + reply_to_mget([b"3"]))
    assert all("makes no sense" in str(outcome) for outcome in asked.outcomes[1:])
    assert not asked.wire.connection.is_open


@pytest.mark.parametrize("nonsense", NONSENSE)
async def test_nonsense_ends_the_connection_and_every_command_that_waits_is_told(nonsense: bytes) -> None:
    """The command it came for and those behind it, also if good replies follow: they could be anybody's."""
    for cut in {0, 1, 3, 5, 7, len(nonsense) - 1}:
        asked = Asked(Wire())
        for _ in range(4):
            asked.ask(1)
        asked.wire.arrive(reply_to_mget([b"1"]))
        asked.wire.arrive(nonsense + reply_to_mget([b"3"]) * 2, [cut] if cut < len(nonsense) else [])
        assert asked.outcomes[0] == [b"1"]
        assert all("makes no sense" in str(outcome) for outcome in asked.outcomes[1:])
        assert not any(asked.refused)
        assert (asked.wire.connection.is_open, asked.wire.ended) == (False, 1)
        asked.wire.arrive(reply_to_mget([b"4"]))
        await asyncio.sleep(0)
        assert len(asked.outcomes) == 4


@given(st.binary(min_size=1, max_size=60), st.lists(st.integers(1, 60), max_size=4))
def test_whatever_arrives_nobody_is_told_twice_or_never(noise: bytes, cuts: list[int]) -> None:
    """Any bytes, then the end of the connection."""

    async def talk() -> None:
        asked = Asked(Wire())
        for _ in range(3):
            asked.ask(2)
        asked.wire.arrive(noise, [cut for cut in cuts if cut < len(noise)])
        asked.wire.connection.connection_lost(None)
        assert None not in asked.outcomes
        assert not asked.wire.connection.is_open

    asyncio.run(talk())


@pytest.mark.parametrize("unasked", [b"*1\r\n$-1\r\n", b"-LOADING Redis is loading\r\n", b"*", b"+"])
async def test_a_reply_nobody_asked_for_ends_the_connection(unasked: bytes) -> None:
    """Else the next command would take it for its own. What was asked for before is told."""
    asked = Asked(Wire())
    asked.wire.arrive(unasked)
    assert not asked.wire.connection.is_open
    rest = {b"*": b"1\r\n$-1\r\n", b"+": b"OK\r\n"}.get(unasked, b"")
    asked = Asked(Wire())
    asked.ask(1)
    asked.wire.arrive(reply_to_mget([b"1"]) + unasked)
    asked.ask(1)
    asked.wire.arrive(rest)
    await asyncio.sleep(0)
    assert asked.outcomes[0] == [b"1"]
    assert isinstance(asked.outcomes[1], str), "an error"
    assert (asked.wire.connection.is_open, asked.wire.ended) == (False, 1)


@pytest.mark.parametrize("arrived", [b"", b"*", b"*1\r\n", b"*1\r\n$300\r\nxxx"])
async def test_silence_is_not_waited_for_longer_than_the_timeout(arrived: bytes) -> None:
    """Also in mid reply: every command is told, and the connection ended."""
    asked = Asked(Wire(timeout=0.02))
    for _ in range(3):
        asked.ask(1)
    asked.wire.arrive(arrived)
    await eventually(lambda: not asked.wire.connection.is_open)
    assert asked.outcomes == ["Timeout reading from the server"] * 3
    assert (asked.refused, asked.wire.ended) == ([False] * 3, 1)


async def test_a_timeout_is_of_the_command_that_waits() -> None:
    """The alarm of one that was answered in time rings for nobody; the next one has the whole time, and has an end."""
    timeout = 0.05
    asked = Asked(Wire(timeout))
    loop = asyncio.get_running_loop()
    asked.ask(1)
    began = loop.time()
    asked.ask(1)
    asked.wire.arrive(reply_to_mget([b"1"]))
    asked.wire.connection._commands[0].sent += timeout  # as if asked that much later
    await eventually(lambda: not asked.wire.connection.is_open)
    assert loop.time() - began > 1.5 * timeout
    assert asked.outcomes == [[b"1"], "Timeout reading from the server"]
    asked = Asked(Wire(timeout))
    asked.ask(1)
    asked.wire.arrive(reply_to_mget([b"1"]))
    await asyncio.sleep(2 * timeout)
    assert asked.wire.connection.is_open
    asked.wire.connection.close()


async def test_a_connection_that_is_closed_in_mid_reply_tells_everybody() -> None:
    """Wherever it breaks off."""
    stream = reply_to_mget(MIXED)
    for cut in range(len(stream)):
        asked = Asked(Wire())
        asked.ask(len(MIXED))
        asked.ask(1)
        asked.wire.arrive(stream[:cut])
        asked.wire.connection.connection_lost(ConnectionResetError("reset by peer") if cut % 2 else None)
        assert asked.outcomes == ["reset by peer" if cut % 2 else "the connection was closed"] * 2
        assert not any(asked.refused)


async def test_closing_tells_everybody_once() -> None:
    """Also whoever asks later; closing again is nothing."""
    asked = Asked(Wire())
    asked.ask(1)
    asked.wire.connection.close()
    asked.wire.connection.close()
    assert asked.outcomes == ["closed"]
    asked.ask(1)
    assert asked.outcomes == ["closed", None], "told before ask() returned"
    await asyncio.sleep(0)
    assert asked.outcomes == ["closed", "the connection was closed"]
    assert (asked.wire.ended, asked.wire.sent) == (1, b"*2\r\n$4\r\nMGET\r\n$2\r\nk0\r\n")


async def test_whoever_is_told_may_ask_again_or_close() -> None:
    """In the middle of what arrived: the new command has its own place, and after the end nothing is read."""
    asked = Asked(Wire())
    again: list[Values | MgetError] = []
    asked.wire.connection.ask(["first"], lambda _: asked.wire.connection.ask(["again"], again.append))
    asked.ask(1)
    asked.wire.arrive(reply_to_mget([b"1"]) + reply_to_mget([b"2"]) + reply_to_mget([b"3"]))
    assert (asked.outcomes, again) == ([[b"2"]], [[b"3"]])
    asked.wire.connection.ask(["last"], lambda _: asked.wire.connection.close())
    asked.ask(1)
    asked.wire.arrive(reply_to_mget([b"4"]) + reply_to_mget([b"5"]))
    assert asked.outcomes == [[b"2"], "closed"]


async def _no_greeting(_: AbstractConnection) -> None:
    """For servers here, which know one command."""


async def _until_it_ends(connection: AbstractConnection) -> None:
    reader = connection._reader
    assert reader is not None
    await eventually(reader.at_eof)


async def _open(server: asyncio.Server, greeting: Greeting) -> MgetConnection:
    port = server.sockets[0].getsockname()[1]
    client = open_client(f"redis://127.0.0.1:{port}", timeout=5, redis_connect_func=greeting)
    connection = await open_mget(client)
    await client.aclose(close_connection_pool=True)
    return connection


async def test_a_connection_stays_open_when_what_opened_it_is_gone() -> None:
    """Nobody else holds the stream's writer, which closes what it wrote to when it goes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            if await reader.read(100):
                writer.write(reply_to_mget([b"x"]))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    connection = await _open(server, _no_greeting)
    gc.collect()
    for _ in range(2):
        reply: asyncio.Future[Values | MgetError] = asyncio.get_running_loop().create_future()
        connection.ask(["k"], reply.set_result)
        assert await asyncio.wait_for(reply, PATIENCE) == [b"x"]
    connection.close()
    server.close()


@pytest.mark.parametrize("greeting", [_no_greeting, _until_it_ends])
async def test_a_server_that_closes_at_once_leaves_nothing_that_seems_open(greeting: Greeting) -> None:
    """After the connection is ours, or before: then it is none."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    if greeting is _until_it_ends:
        with pytest.raises(ConnectionResetError, match="before it was used"):
            await _open(server, greeting)
    else:
        connection = await _open(server, greeting)
        await eventually(lambda: not connection.is_open)
    server.close()


async def test_a_server_that_greets_with_nonsense_makes_no_connection() -> None:
    """The library stumbles over it; whoever opens a connection is told as of any other failure."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            writer.write(b"-MOVED\r\n")
        writer.close()
        closed.set()

    closed = asyncio.Event()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    client = open_client(f"redis://:password@127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout=5)
    with pytest.raises(RedisError, match="makes no sense"):
        await open_mget(client)
    await asyncio.wait_for(closed.wait(), PATIENCE)  # nothing is left open
    await client.aclose(close_connection_pool=True)
    server.close()
