"""Plain requests on a connection: in their order, in time, to readers that pause, and the last ones."""

import asyncio
import re
import tracemalloc
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.base.terms import Terms
from tests.support.connection import Connection
from tests.support.doors import TARGETS, Doors, in_worker, normalised, request
from tests.support.served import FORECAST
from tests.support.waiting import eventually

UNKNOWN = f"{FORECAST}?zip_code=99999"
CLOSING = "Connection: close"


def test_pipelined_requests_are_answered_in_their_order(doors: Doors) -> None:
    key = doors.keys["free"]
    hit, error, other = request(TARGETS[0], key), request(UNKNOWN, key), request("/v1/openapi.json", key, method="POST")
    codes = {hit: b"200", error: b"404", other: b"405"}
    for order in ((hit, hit, hit), (hit, error, hit), (error, hit, hit), (other, hit), (hit, other, error, hit)):
        assert re.findall(rb"HTTP/1.1 (\d+) ", doors.send([b"".join(order)])) == [codes[one] for one in order]


@pytest.mark.parametrize("before", [0, 1], ids=["first", "later"])
@pytest.mark.parametrize("needs_parser", [False, True])
@in_worker
async def test_a_draining_worker_marks_its_answer_as_the_last(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, before: int, needs_parser: bool
) -> None:
    hit = request(TARGETS[0], doors.keys["free"])
    connection = doors.connect()
    for _ in range(before):
        await connection.feed(hit)
        await connection.settle()
    if needs_parser:
        connection.block()
        connection.unblock()
    monkeypatch.setattr(doors.door.pipeline, "draining", True)
    await connection.feed(hit)
    await connection.settle()
    assert connection.channel.ends
    answers = connection.end()
    assert answers.count(b"HTTP/1.1 200 ") == before + 1
    assert answers.count(b"\r\nconnection: close\r\n\r\n") == 1


def test_a_key_that_is_revoked_is_refused_on_a_connection_that_showed_it_before(doors: Doors) -> None:
    key = doors.issue(Terms())
    app = doors.running.app

    async def run() -> bytes:
        connection = doors.connect()
        for _ in range(2):
            await connection.feed(request(TARGETS[0], key))
            await connection.settle()
        key_id = key.split("_")[2]
        await app._keys.revoke(key_id)
        app.verifier.invalidate(f"k:{{{key_id}}}")
        await connection.feed(request(TARGETS[0], key))
        await eventually(lambda: b"HTTP/1.1 401" in connection.channel.written)
        return connection.end()

    assert re.findall(rb"HTTP/1.1 (\d+) ", doors.running.run(run)) == [b"200", b"200", b"401"]


def test_a_host_that_is_none_is_refused_though_the_one_before_was_good(doors: Doors) -> None:
    good = request(TARGETS[0], doors.keys["free"])
    answers = doors.send([good, good.replace(b"forecast.test", b"a b")])
    assert re.findall(rb"HTTP/1.1 (\d+) ", answers) == [b"200", b"400"]


@in_worker
async def test_nothing_is_written_to_a_reader_that_pauses(doors: Doors) -> None:
    connection = doors.connect()
    connection.block()
    await connection.feed(request(TARGETS[0], doors.keys["free"]))
    await asyncio.sleep(0.02)
    assert connection.channel.written == b""
    connection.unblock()
    await connection.settle()
    assert connection.end().startswith(b"HTTP/1.1 200 ")


@in_worker
async def test_trailers_without_end_are_not_kept(doors: Doors) -> None:
    connection = doors.connect()
    await connection.feed(request(TARGETS[0], doors.keys["free"], "Transfer-Encoding: chunked") + b"0\r\n")
    for number in range(50):
        await connection.feed(b"".join(b"X-%d-%d: y\r\n" % (number, line) for line in range(100)))
    await connection.settle()
    assert connection.protocol._parser is not None
    assert len(connection.protocol._parser.headers) <= 100
    connection.end()


def test_requests_behind_a_last_one_that_is_cut_in_its_last_line_end_are_not_answered(doors: Doors) -> None:
    first, behind = request("/v1/", doors.keys["free"], version="1.0"), request("/v1/", doors.keys["free"])
    assert doors.send([first[:-3], first[-3:] + behind + behind]).count(b"HTTP/1.1 200 OK") == 1


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("target", [TARGETS[0], UNKNOWN])
@pytest.mark.parametrize("wrong", ["unknown", "malformed"])
def test_a_request_without_a_key_gets_its_own_error(doors: Doors, wrong: str, target: str, version: str) -> None:
    sent, bare = request(target, doors.keys[wrong]), f"GET {target} HTTP/{version}\r\nAccept: x\r\n\r\n".encode()
    answers = doors.send([sent, sent, bare])
    assert answers.count(b'"invalid_api_key"') == 2
    assert (b'"missing_api_key"' if version == "1.0" else b'"bad_request"') in answers


SENT = st.tuples(
    st.sampled_from(["GET", "GET", "HEAD"]),
    st.sampled_from([TARGETS[0], TARGETS[0], UNKNOWN, f"{TARGETS[0]}&in=other-words", "/v1/", "/nowhere"]),
    st.sampled_from([None, "", "free", "free", "limited", "test", "unknown", "malformed", "revoked", "other", "slow"]),
    st.sampled_from([None, "forecast.test", "forecast.test", "other.test", "no host"]),
    st.sampled_from(["", "", "Accept-Encoding: gzip", "Cookie: " + "x" * 3000]),
)


def bare(method: str, target: str, key: str | None, host: str | None, line: str) -> bytes:
    """A head with as little as that; None: not even an empty header."""
    lines = [] if host is None else [f"Host: {host}"]
    lines += [] if key is None else [f"x-api-key: {key}"]
    return "\r\n".join([f"{method} {target} HTTP/1.1", *lines, *filter(None, [line]), "", ""]).encode()


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(SENT, min_size=2, max_size=3))
def test_what_is_known_of_a_request_is_not_taken_for_the_next(doors: Doors, asked: list[Any]) -> None:
    sent = [bare(method, target, key and doors.keys[key], *others) for method, target, key, *others in asked]
    together = normalised(doors.send(sent))
    assert together == b"".join(normalised(doors.send([one])) for one in sent)


@pytest.mark.parametrize("what", ["headers without a key", "a wrong key", "a query", "a path"])
@in_worker
async def test_what_is_kept_of_a_request_for_the_log_is_small(doors: Doors, what: str) -> None:
    """Ten thousand are kept: they must not be ten thousand whole heads."""
    large = "z" * 12_000
    long = f"{FORECAST}?x={large[:7000]}"

    def data(number: int) -> bytes:
        if what == "headers without a key":
            return request(TARGETS[0], "", f"Cookie: {number}{large}").replace(b"x-api-key: \r\n", b"")
        if what == "a wrong key":
            return request(TARGETS[0], f"phf_live_{number}{large}")
        return request(f"{long}{number}", "phf_live_x" if what == "a query" else doors.keys["other"])

    watch = doors.running.app.watch
    watch._passed = 1_000_000  # a busy worker: few are looked at for the rankings
    watch.adapt()
    connection = doors.connect()
    for number in range(50):
        await connection.feed(data(number))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(100, 400):
        await connection.feed(data(number))
        connection.channel.written = b""
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    connection.end()
    assert (after - before) / 300 < 3_000  # bytes for each


def at_first(doors: Doors, data: bytes) -> tuple[bytes, bool]:
    """What a connection that has sent this when it is accepted gets, and whether it is closed."""

    async def ask() -> tuple[bytes, bool]:
        await doors.look_at_keys()
        connection = Connection(doors.door, first=data)
        await connection.settle()
        closed = connection.channel.ends
        return connection.end(), closed

    return doors.running.run(ask)


def test_an_only_request_gets_the_usual_answer(doors: Doors) -> None:
    every_target, every_key = [*TARGETS, UNKNOWN, "/nowhere"], ["free", "metered", "unknown", "missing"]
    every_line = [[CLOSING], ["connection: close", "Accept-Encoding: gzip"]]
    for target, key, lines, method in product(every_target, every_key, every_line, ["GET", "HEAD"]):
        data = request(target, doors.keys[key], *lines, method=method)
        answer, closed = at_first(doors, data)
        assert normalised(answer) == normalised(doors.send([data]))
        assert b"\r\nconnection: close\r\n" in answer
        assert closed


def test_a_request_that_is_not_the_only_one_keeps_its_connection(doors: Doors) -> None:
    good = doors.keys["free"]
    assert not at_first(doors, request(TARGETS[0], good))[1]
    assert not at_first(doors, request(TARGETS[0], good, CLOSING)[:-2])[1]
    answers, closed = at_first(doors, request(TARGETS[0], good) + request(TARGETS[1], good, CLOSING))
    assert answers.count(b"HTTP/1.1 200 ") == 2
    assert closed
