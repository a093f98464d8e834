"""A request for what is near, in words that nobody has used before: answered without the router, and hot afterwards."""

import asyncio
import itertools
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from config.settings import Settings
from service.base.telemetry import ANSWERS, KEY_CHECKS, LOOKUPS, REQUESTS, TEST_REQUESTS
from service.connection.light import LightConnection
from service.keys.verifier import WAIT_AFTER_SECONDS, Verified
from tests.support.both_ways import Both, asked_both_ways, facts_of, read_from_now_on, request
from tests.support.connection import Connection
from tests.support.served import FORECAST
from tests.support.waiting import eventually

# Each spelling of Springfield is used once: letters of the city's name, in upper or lower case.
_SPELLINGS = (
    f"{FORECAST}?city_name={''.join(letters)}&state_code=IL"
    for letters in itertools.product(*((letter.upper(), letter) for letter in "springfield"))
)
_FACTS = {family.name for family in (ANSWERS, KEY_CHECKS, LOOKUPS, REQUESTS)}


@pytest.fixture(scope="module")
def both(settings: Settings) -> Iterator[Both]:
    with asked_both_ways(settings, "near") as made:
        yield made


@pytest.fixture
def no_router(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError(f"{scope['path']} went to the router")

    monkeypatch.setattr(both.direct, "_app", nobody)


@pytest.mark.parametrize("key", ["free", "limited", "metered", "other", "revoked"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "lines", [(), ("Accept-Encoding: gzip",), ("If-None-Match: *",), ("Connection: close",)], ids=str
)
def test_the_answer_is_that_of_the_router(both: Both, key: str, method: str, lines: tuple[str, ...]) -> None:
    both.compare([request(next(_SPELLINGS), both.keys[key], *lines, method=method)])


@pytest.mark.usefixtures("no_router")
def test_the_router_is_not_asked(both: Both) -> None:
    async def ask() -> bytes:
        await both.look_at_keys()
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(next(_SPELLINGS), both.keys["metered"]))
        return connection.end()

    answer = both.running.run(ask)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\ncache-status: forecast; hit; detail=near\r\n" in answer


def forget(both: Both) -> None:
    """This worker has seen no key, and holds no token."""
    running = both.running.app
    for known in list(running.verifier._verified.values()):
        running.verifier._forget(known)
    running.verifier._wrong.clear()
    running.hot._callers._recalled.clear()
    running.hot.errors.clear()
    for holding in running.metering.limiter._holdings.young.values():
        holding.tokens = holding._next_tokens = 0
        holding.denied_until = float("-inf")


async def asked_once_forgotten(both: Both, key: str) -> tuple[bytes, bool]:
    """The answer to a key that this worker has never seen, and whether the connection needed the server's protocol."""
    forget(both)
    connection = Connection(both.direct, both.config(both.direct))
    await connection.feed(request(next(_SPELLINGS), both.keys[key]))
    await connection.settle()
    whole = not isinstance(connection.protocol, LightConnection)
    return connection.end(), whole


@pytest.mark.usefixtures("no_router")
@pytest.mark.parametrize(
    ("key", "status"),
    [("free", 200), ("metered", 200), ("slow", 429), ("used up", 429), ("other", 403), ("unknown", 401)],
)
def test_key_quota_and_token_are_waited_for_without_the_router(both: Both, key: str, status: int) -> None:
    """Nor is the server's own protocol made for the connection."""
    answer, whole = both.running.run(lambda: asked_once_forgotten(both, key))
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert not whole


def test_who_turns_out_to_be_for_the_router_while_waiting_goes_there(both: Both) -> None:
    """As a key for tests does. It is checked once: what was found out goes with it."""
    checked = both.running.app.telemetry.sum(KEY_CHECKS, outcome="accepted")
    answer, whole = both.running.run(lambda: asked_once_forgotten(both, "test"))
    assert answer.startswith(b"HTTP/1.1 ")
    assert b"\r\nx-test-answer: " in answer.lower()
    assert whole
    assert both.running.app.telemetry.sum(KEY_CHECKS, outcome="accepted") == checked + 1


@pytest.mark.parametrize("key", ["metered", "slow", "unknown", "test"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_arrives_behind_a_request_that_waits_is_answered_behind_it(both: Both, key: str, method: str) -> None:
    """Each once and with its own id, whoever goes on with the connection; and each counts once."""

    async def ask() -> tuple[bytes, bool]:
        forget(both)
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(next(_SPELLINGS), both.keys[key], "X-Request-Id: first", method=method))
        waited = connection.protocol._asked is not None
        for number in ("second", "third"):
            await connection.feed(request(next(_SPELLINGS), both.keys[key], f"X-Request-Id: {number}", method=method))
        await connection.settle()
        return connection.end(), waited

    family = TEST_REQUESTS if key == "test" else REQUESTS
    telemetry = both.running.app.telemetry
    both.running.app.figures()
    before, checked = telemetry.sum(family), telemetry.sum(KEY_CHECKS)
    answer, waited = both.running.run(ask)
    assert waited
    both.running.app.figures()
    if key in ("metered", "test"):
        assert telemetry.sum(KEY_CHECKS) == checked + 3
    assert re.findall(rb"\r\nx-request-id: ([a-z]+)", answer) == [b"first", b"second", b"third"]
    assert len(re.findall(rb"HTTP/1.1 [0-9]", answer)) == 3
    assert telemetry.sum(family) == before + 3


@pytest.mark.parametrize("stops", [False, True])
def test_who_goes_away_or_is_stopped_while_waiting(both: Both, stops: bool) -> None:
    """Who has gone counts nowhere; who waits for a worker that stops gets the last answer of the connection."""

    async def ask() -> bytes:
        forget(both)
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(next(_SPELLINGS), both.keys["metered"]))
        assert connection.protocol._asked is not None
        if stops:
            both.direct.draining = True
        else:
            connection.transport.close()
        try:
            await connection.settle()
            await eventually(lambda: not both.direct._later)
        finally:
            both.direct.draining = False
        assert connection.transport.closing
        return connection.end()

    before = both.running.app.telemetry.sum(REQUESTS)
    answer = both.running.run(ask)
    assert both.running.app.telemetry.sum(REQUESTS) == before + stops
    assert (b"\r\nconnection: close\r\n" in answer) is stops
    assert answer.startswith(b"HTTP/1.1 200 ") is stops


@pytest.mark.parametrize("known", [False, True], ids=["new words", "known words"])
def test_who_asks_with_a_wrong_key_and_hangs_up_counts(both: Both, known: bool) -> None:
    """A scan shows, although nobody reads what it is told."""
    target = next(_SPELLINGS)
    if known:
        both.running.ask(target, key=both.keys["free"])

    async def ask() -> list[float]:
        await both.look_at_keys()
        both.running.app.verifier._wrong.clear()
        connection = Connection(both.direct, both.config(both.direct))
        before = told()
        await connection.feed(request(target, both.keys["unknown"]))
        assert connection.protocol._asked is not None
        connection.transport.close()
        await connection.settle()
        await eventually(lambda: not both.direct._later and not both.running.app.verifier._checking)
        connection.end()
        return [now - then for now, then in zip(told(), before, strict=True)]

    def told() -> tuple[float, float]:
        telemetry = both.running.app.telemetry
        return telemetry.sum(REQUESTS, status="401"), telemetry.sum(KEY_CHECKS, outcome="invalid")

    assert both.running.run(ask) == [1, 1]


def test_who_was_accepted_and_waits_is_not_one_too_many_later(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many came meanwhile: also if another protocol goes on with the connection."""

    async def ask() -> bytes:
        forget(both)
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(next(_SPELLINGS), both.keys["test"]))
        monkeypatch.setattr(both.direct, "most_connections", 0)
        await connection.settle()
        return connection.end()

    assert both.running.run(ask).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("error", [asyncio.CancelledError, RuntimeError])
def test_an_ask_that_is_given_up_is_answered(
    both: Both, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Whatever ends it: no deadline runs while a request waits."""

    async def fails(presented: str) -> None:
        raise error

    monkeypatch.setattr(both.running.app.verifier, "check", fails)
    answer, _ = both.running.run(lambda: asked_once_forgotten(both, "free"))
    assert answer.startswith(b"HTTP/1.1 500 ")


def test_a_good_key_that_is_waited_for_is_no_stranger(both: Both) -> None:
    """What its heads have in common is taught, and takes none of the places of strangers."""
    fields = both.running.app.hot.fields

    async def ask() -> tuple[int, int]:
        await both.look_at_keys()
        fields.taught.clear()
        fields.matchers.clear()
        before = fields._made_for_strangers
        connection = Connection(both.direct, both.config(both.direct))
        for number in range(4):
            if number == 1:
                known = both.running.app.verifier.recall(both.keys["free"])
                assert isinstance(known, Verified)
                known.checked(time.monotonic() - WAIT_AFTER_SECONDS - 1)
            await connection.feed(request(next(_SPELLINGS), both.keys["free"], f"X-Trace-Id: {number}"))
            await connection.settle()
        connection.end()
        return len(fields.taught), fields._made_for_strangers - before

    assert both.running.run(ask) == (1, 0)


def test_they_are_read_once_and_hot_the_next_time(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    words, before, read = next(_SPELLINGS), both.answered, read_from_now_on(monkeypatch)
    for _ in range(2):
        both.running.ask(words, key=both.keys["free"])
    assert (both.answered, len(read)) == (before + 2, 1)


def test_it_is_counted_as_on_the_router_path(both: Both) -> None:
    """In metrics, and in the usage of its key."""

    def facts() -> dict[tuple[str, tuple[str, ...]], float]:
        return facts_of(both, _FACTS)

    def added(gate: Any) -> dict[tuple[str, tuple[str, ...]], float]:
        async def ask() -> None:
            await both.look_at_keys()
            connection = Connection(gate, both.config(gate))
            await connection.feed(request(next(_SPELLINGS), both.keys["metered"]))
            await connection.settle()
            assert connection.end().startswith(b"HTTP/1.1 200 OK\r\n")

        before = facts()
        both.running.run(ask)
        return {fact: value - before.get(fact, 0) for fact, value in facts().items() if value != before.get(fact, 0)}

    routed = added(both.ordinary)
    assert any(name == ANSWERS.name and "near" in labels for name, labels in routed)
    assert added(both.direct) == routed


@pytest.mark.usefixtures("no_router")
def test_an_error_in_other_words_needs_no_router_either(both: Both) -> None:
    """A ZIP code that there is not, and one that is none."""

    async def ask(query: str) -> bytes:
        await both.look_at_keys()
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(f"{FORECAST}?{query}", both.keys["free"]))
        return connection.end()

    assert both.running.run(lambda: ask("zip_code=00009")).startswith(b"HTTP/1.1 404 ")
    assert both.running.run(lambda: ask("zip_code=1234")).startswith(b"HTTP/1.1 400 ")


def test_their_heads_teach_the_next_connection_as_hot_ones_do(both: Both) -> None:
    """Whose key is good is no stranger."""
    assert both.direct.hot is not None
    fields = both.direct.hot.fields

    async def ask() -> tuple[int, int]:
        await both.look_at_keys()
        fields.taught.clear()
        before = fields._made_for_strangers
        connection = Connection(both.direct, both.config(both.direct))
        for number in range(3):
            await connection.feed(request(next(_SPELLINGS), both.keys["free"], f"X-Trace-Id: {number}"))
        connection.end()
        return len(fields.taught), fields._made_for_strangers - before

    assert both.running.run(ask) == (1, 0)
