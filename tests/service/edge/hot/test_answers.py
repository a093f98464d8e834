"""The direct answer is the ordinary one, byte for byte, whatever is asked and however it arrives."""

import asyncio
import re
import tracemalloc
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis.asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.settings import Settings
from service.base import telemetry
from service.base.seen import LoggedRequest
from service.base.terms import Rate, Terms
from service.cache.key import CacheKey
from service.cache.read_through import _LINGER_SECONDS as LINGER
from service.cache.shared import TellLookup
from service.keys.record import ApiKey
from service.keys.store import KeyStore
from service.keys.verifier import Verified
from service.quota.usage import Tally
from service.redis.breaker import FAILURES_TO_OPEN
from tests.support.both_ways import SPRINGFIELD, TARGETS, Both, normalised, request
from tests.support.connection import Connection
from tests.support.drops import people, write_drop
from tests.support.served import FORECAST, served, with_keys
from tests.warehouse.helpers import NO_LIMITS
from warehouse.publishing.publish import PublishOptions, publish
from warehouse.releases.catalog import Catalog

OTHERS = (f"{FORECAST}?zip_code=99999", f"{FORECAST}?zip_code=1", "/v1/", "/nowhere", f"{FORECAST}/?zip_code=36436")
Run = Callable[[Callable[[], Awaitable[Any]]], Any]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("coding", ["", "gzip", "gzip;q=0", "br, *;q=0.1"])
def test_a_hot_answer_is_direct_and_the_same(both: Both, target: str, coding: str) -> None:
    """In either coding, and as a 304 for its own validator."""
    before = both.answered
    lines = [f"Accept-Encoding: {coding}"] if coding else []
    answer = both.compare([request(target, both.keys["free"], *lines)])
    etag = re.search(rb"\r\netag: ([^\r]+)", answer)
    assert etag is not None
    again = both.compare([request(target, both.keys["free"], *lines, f"If-None-Match: {etag[1].decode()}")])
    assert again.startswith(b"HTTP/1.1 304 ")
    assert both.answered == before + 2


KNOWN_ERRORS = (
    f"{FORECAST}?city_name=phf%5Flive_0_1_2&state_code=AL",
    f"{FORECAST}?zip_code=%EF%BB%BF36436",
    f"{FORECAST}?city_name=Mob%2569le&state_code=AL",
    f"{FORECAST}?zip_code=99999",
    f"{FORECAST}?zip_code=1",
    f"{FORECAST}/?zip=36436",
    FORECAST,
)


@pytest.mark.parametrize("target", KNOWN_ERRORS)
@pytest.mark.parametrize("key", ["free", "limited", "metered"])
@pytest.mark.parametrize("lines", [[], ["X-Request-Id: a-b"], ["Connection: close"]])
def test_an_error_that_a_request_had_before_is_direct_and_the_same(
    both: Both, target: str, key: str, lines: list[str]
) -> None:
    """As long as the release is served."""
    assert both.running.ask(target, key=both.keys[key]).status in (400, 404)
    before = both.running.app.hot.errors.told
    answer = both.compare([request(target, both.keys[key], *lines)])
    assert answer.startswith(b"HTTP/1.1 40")
    assert both.running.app.hot.errors.told == before + 1


def test_an_error_is_the_next_release_s_own(both: Both) -> None:
    """What was not there may be there now."""
    hot, target = both.running.app.hot, KNOWN_ERRORS[0]
    both.running.ask(target, key=both.keys["free"])
    release, before = hot._targets.release, hot.errors.told
    assert release is not None
    hot.switched("newer")
    assert both.running.ask(target, key=both.keys["free"]).status == 404
    hot.switched(release)
    assert hot.errors.told == before


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lines", [[], ["If-None-Match: *"], ["Connection: close"], ["Accept-Encoding: gzip"]])
def test_a_head_is_direct_and_has_no_body(both: Both, target: str, lines: list[str]) -> None:
    """The lengths are those of a GET. A GET behind it has its body."""
    before = both.answered
    head = request(target, both.keys["limited"], *lines, method="HEAD")
    answer = both.compare([head, request(target, both.keys["limited"])])
    assert both.answered == before + (1 if "Connection: close" in lines else 2)
    assert answer.split(b"\r\n\r\n", 1)[1][:9] in (b"HTTP/1.1 ", b"")


REFUSED = {
    **dict.fromkeys(("missing", "malformed", "unknown", "revoked", "expired"), b"401"),
    "other": b"403",
    "slow": b"429",
    "used up": b"429",
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("target", [TARGETS[0], f"{FORECAST}?zip_code=20001", KNOWN_ERRORS[0]])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("lines", [[], ["X-Request-Id: a-b", "Cookie: x"], ["Connection: close"]])
def test_a_refusal_is_direct_and_the_same(both: Both, name: str, target: str, method: str, lines: list[str]) -> None:
    """Whatever was asked for, hot or not."""
    data = request(target, both.keys[name], *lines, method=method)

    async def ask() -> bytes:
        both.running.app.verifier._wrong.clear()  # a wrong key is remembered for a while: from now on
        await both.look_at_keys()
        connection = Connection(both.direct, both.config(both.direct))
        connection.receive(data)
        at_once = connection.transport.written
        await connection.settle()
        connection.end()
        return at_once

    answer = both.compare([data])
    assert answer.startswith(b"HTTP/1.1 %b " % REFUSED[name])
    assert normalised(both.running.run(ask)) == normalised(answer)


@pytest.mark.parametrize("both", ["near"], indirect=True)
@pytest.mark.parametrize("over", ["closed", "the hour"])
def test_a_refusal_is_counted_anew_when_its_count_is_over(both: Both, over: str) -> None:
    hot = both.running.app.hot
    hot.errors.clear()
    for _ in range(3):
        assert both.running.ask(TARGETS[0], key=both.keys["other"]).status == 403
    (denial,) = hot.errors._denials.values()
    assert denial.tally is not None
    denial.tally = stale = Tally()
    if over == "closed":
        stale.close()
    else:
        denial.counts_until = 0.0
    assert both.running.ask(TARGETS[0], key=both.keys["other"]).status == 403
    assert stale.n == 0
    assert denial.tally is not stale


@pytest.mark.parametrize("name", ["malformed", "unknown", "other", "slow", "used up"])
@pytest.mark.parametrize("path", [FORECAST, f"{FORECAST}/"])
def test_who_is_refused_whatever_they_ask_for_is_refused_directly_in_new_words(
    both: Both, monkeypatch: pytest.MonkeyPatch, name: str, path: str
) -> None:
    """The checks are asked the first time at most, and the two ways do not differ in the answer."""

    async def look(number: int, method: str = "GET") -> bytes:
        await both.look_at_keys()
        connection = Connection(both.direct, both.config(both.direct))
        data = request(f"{path}?zip_code=36436&of={name}&n={number}", both.keys[name], method=method)
        await connection.feed(data)
        await connection.settle()
        return connection.end()

    both.running.run(lambda: look(0))
    for denial in both.running.app.hot.errors._denials.values():
        denial.until = float("inf")  # else for a tenth of a second, or for what is left of a second
    monkeypatch.setattr(both.direct, "answer_now", None)
    for number, method in ((1, "GET"), (2, "HEAD")):
        answer = both.running.run(partial(look, number, method))
        target = f"{path}?zip_code=36436&of={name}&m={number}"
        monkeypatch.undo()
        expected = both.compare([request(target, both.keys[name], method=method)])
        monkeypatch.setattr(both.direct, "answer_now", None)
        assert normalised(answer) == normalised(expected)


def test_what_a_key_is_refused_with_is_looked_at_again_with_a_new_release(both: Both) -> None:
    """It may lack the area, which is told first."""
    hot = both.running.app.hot
    both.running.ask(f"{FORECAST}?zip_code=36436&n=x", key=both.keys["other"])
    release = hot._targets.release
    assert release is not None
    assert hot.errors._denials
    assert hot.errors.places
    hot.switched(release)
    assert not hot.errors._denials
    assert not hot.errors.places


def test_a_path_whose_requests_count_as_several_is_left_to_the_checks(both: Both) -> None:
    """Who may not ask for one may never ask for a hundred, which is told otherwise."""
    batch = f"{FORECAST}/batch"
    assert batch in both.direct._checks._weights
    for name in ("unknown", "slow"):
        for query in ("zip_code=36436", "zip_code=36436&zip_code=09001"):
            both.compare([request(f"{batch}?{query}", both.keys[name])] * 2)
    assert batch.encode() not in both.running.app.hot.errors.places


def test_a_key_whose_terms_change_is_refused_no_more(both: Both) -> None:
    """Though it was refused just now, and its new rate has to be asked for a token."""
    verifier = both.running.app.verifier

    async def run() -> bytes:
        await both.look_at_keys()
        known = verifier.recall(both.keys["other"])
        assert isinstance(known, Verified)
        before = known.key
        connection = Connection(both.direct, both.config(both.direct))
        for terms in (before.terms, before.terms, Terms(rate=Rate(90_000, 1, 90_000))):
            if terms is not before.terms:
                known.key = msgspec.structs.replace(before, terms=terms)  # as after a push
            await connection.feed(request(TARGETS[0], both.keys["other"]))
            await connection.settle()
        known.key = before
        return connection.end()

    assert re.findall(rb"HTTP/1.1 (\d+) ", both.running.run(run)) == [b"403", b"403", b"200"]


@pytest.mark.parametrize("lines", [[], ["Accept-Encoding: gzip"], ["If-None-Match: *"], ["Connection: close"]])
@pytest.mark.parametrize("target", ["/v1/", "/v1", "/v1/?x=1", "/nowhere", "/v1/x?y=%20", "/v1/Openapi.json"])
def test_what_needs_to_wait_for_nothing_is_told_directly(both: Both, target: str, lines: list[str]) -> None:
    """The index, and that there is nothing at a path."""
    data = request(target, both.keys["limited"], *lines)

    async def ask() -> bytes:
        connection = Connection(both.direct, both.config(both.direct))
        connection.receive(data)
        return connection.end()

    assert normalised(both.running.run(ask)) == normalised(both.compare([data]))


def test_a_request_that_passes_takes_one_token_and_is_checked_once(both: Both) -> None:
    """What was found out before the router is not found out again."""
    app, key = both.running.app, both.keys["limited"]
    holding = app.metering.limiter.holding(app.verifier.recall(key).key.key_id)  # type: ignore[union-attr]
    assert holding is not None

    def counted() -> tuple[int, int]:
        app.figures()
        return holding.spent, app.telemetry.sum(telemetry.KEY_CHECKS, outcome="accepted")

    before = counted()
    assert both.running.ask(f"{FORECAST}?zip_code=36436&n={before[0]}", key=key).status == 200
    assert counted() == (before[0] + 1, before[1] + 1)


def test_a_direct_error_counts_as_the_ordinary_one_does(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """In metrics, usage, the log, and among the last errors of its key."""
    app = both.running.app
    kept: list[LoggedRequest] = []
    for one, name in (
        (both.ordinary.counting, "_keep_error"),
        (both.direct.counting, "_keep_error"),
        (app.hot.errors, "_keep"),
    ):
        monkeypatch.setattr(one, name, lambda _, make: kept.append(make()))

    def counted() -> list[int]:
        app.figures()
        return [
            app.telemetry.counter(telemetry.REQUESTS, "forecast", "404", "no_matching_records").value,
            app.telemetry.counter(telemetry.REQUESTS, "forecast", "403", "not_entitled").value,
            app.telemetry.counter(telemetry.REQUESTS, "forecast", "401", "revoked_api_key").value,
            app.telemetry.counter(telemetry.REQUESTS, "forecast", "401", "invalid_api_key").value,
            app.telemetry.counter(telemetry.KEY_CHECKS, "revoked").value,
            app.telemetry.counter(telemetry.KEY_CHECKS, "invalid").value,
            sum(app.telemetry.histogram(telemetry.REQUEST_SECONDS, "forecast").counts) // 4,
            app.telemetry.counter(telemetry.KEY_CHECKS, "accepted").value // 2,
        ]

    both.compare([request(KNOWN_ERRORS[0], both.keys["limited"])])
    kept.clear()
    before = counted()
    for name in ("limited", "other", "revoked", "unknown"):
        both.compare([request(KNOWN_ERRORS[0], both.keys[name], f"X-Request-Id: counted-{name}")])
    assert counted() == [value + 2 for value in before]
    assert [line.status for line in kept] == [404, 404, 403, 403]
    for name, status in (("limited", 404), ("other", 403), ("revoked", 401), ("unknown", 401)):
        first, second = app.watch.log.find(f"counted-{name}")
        assert first.status == status
        changed = msgspec.structs.replace(second, time=first.time, milliseconds=first.milliseconds)
        assert changed == first


@pytest.mark.parametrize("what", ["headers without a key", "a wrong key", "a query", "a good key"])
def test_a_line_that_may_be_wanted_is_small(both: Both, what: str) -> None:
    """Ten thousand are kept for the log: they must not be ten thousand whole heads."""
    large = "z" * 12_000
    long = f"{FORECAST}?x={large[:7000]}"

    def data(number: int) -> bytes:
        if what == "headers without a key":
            return request(TARGETS[0], "", f"Cookie: {number}{large}").replace(b"x-api-key: \r\n", b"")
        if what == "a wrong key":
            return request(TARGETS[0], f"phf_live_{number}{large}")
        return request(f"{long}{number}", "phf_live_x" if what == "a query" else both.keys["other"])

    async def run() -> float:
        await both.look_at_keys()
        both.running.app.watch.adapt(1_000_000)  # a busy worker: few are looked at for the rankings
        connection = Connection(both.direct, both.config(both.direct))
        for number in range(50):
            await connection.feed(data(number))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(100, 400):
            await connection.feed(data(number))
            connection.transport.written = b""
        after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        connection.end()
        return (after - before) / 300

    assert both.running.run(run) < 3_000  # bytes for each


def test_an_error_promises_no_more_of_a_quota_than_is_left(both: Both) -> None:
    """Answers before it were billed."""
    key, known = both.keys["metered"], KNOWN_ERRORS[0]
    both.running.ask(known, key=key)

    async def run() -> bytes:
        await both.look_at_keys()
        connection = Connection(both.direct, both.config(both.direct))
        for _ in range(40):
            await connection.feed(request(TARGETS[0], key))
            await connection.settle()
        await connection.feed(request(known, key))
        await connection.settle()
        ordinary = Connection(both.ordinary, both.config(both.ordinary))
        await ordinary.feed(request(known, key))
        await ordinary.settle()
        return connection.end() + ordinary.end()

    answers = both.running.run(run)
    left = [int(one) for one in re.findall(rb'\r\nratelimit: [^\r]*"quota";r=(\d+)', answers)]
    assert len(left) == 42
    direct, ordinary = left[-2:]
    assert direct <= ordinary


def test_an_error_is_told_to_its_owner_with_what_was_asked_as_it_was_sent(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is remembered as much as the first; a hot target would know it in its canonical form only."""
    kept: list[str | None] = []
    for one, name in ((both.direct.counting, "_keep_error"), (both.running.app.hot.errors, "_keep")):
        monkeypatch.setattr(one, name, lambda _, make: kept.append(make().query))

    async def run() -> None:
        for _ in range(3):
            await both.look_at_keys()
            connection = Connection(both.direct, both.config(both.direct))
            await connection.feed(request(TARGETS[0], both.keys["slow"]))
            await connection.settle()
            assert connection.end().startswith(b"HTTP/1.1 429 ")

    both.running.run(run)
    assert kept == ["zip_code=36436"] * 3


def test_a_request_cut_at_any_offset_is_answered_the_same(both: Both) -> None:
    whole = request(SPRINGFIELD, both.keys["free"], "Accept-Encoding: gzip", "X-Request-Id: abc")
    before = both.answered
    for offset in range(1, len(whole)):
        both.compare([whole[:offset], whole[offset:]])
    # the parser, which puts it together, waits for nobody
    assert both.answered == before + (len(whole) - 1 if both.tier == "near" else 0)


def test_pipelined_requests_are_answered_in_their_order(both: Both) -> None:
    """Direct ones among ordinary ones: a hot answer never overtakes what came before it."""
    key = both.keys["free"]
    hot, cold = request(TARGETS[0], key), request(f"{FORECAST}?zip_code=99999", key)
    for order in ((hot, hot, hot), (hot, cold, hot), (cold, hot, hot), (cold, cold, hot), (hot, cold, cold, hot)):
        answer = both.compare([b"".join(order)])
        codes = re.findall(rb"HTTP/1.1 (\d+) ", answer)
        assert codes == [b"200" if one is hot else b"404" for one in order]


@pytest.mark.parametrize(
    "line",
    [
        *("Connection: close, x", "Connection: upgrade", "Expect: 100-continue", "Content-Length: 0", "TE: trailers"),
        *(
            "Upgrade: websocket",
            "Host: other.test",
            "x-api-key: again",
            "X-Request-Id: two",
            "Connection: keep-alive, x",
        ),
    ],
)
def test_whatever_is_out_of_the_ordinary_takes_the_ordinary_way(both: Both, line: str) -> None:
    """And has the answer that it had before."""
    before = both.answered
    both.compare([request(TARGETS[0], both.keys["free"], "X-Request-Id: one", line)])
    assert both.answered == before


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("version", "lines"),
    [
        ("1.1", ["Connection: close"]),
        ("1.1", ["connection: Close", "Accept-Encoding: gzip"]),
        ("1.0", []),
        ("1.0", ["Connection: close"]),
        ("1.0", ["Connection: keep-alive", "If-None-Match: *"]),
    ],
)
@pytest.mark.parametrize("key", ["free", "limited"])
def test_the_last_answer_of_a_connection_is_direct_too(
    both: Both, target: str, version: str, lines: list[str], key: str
) -> None:
    """It says so; what came behind it is not answered."""
    before = both.answered
    last, behind = request(target, both.keys[key], *lines, version=version), request(target, both.keys[key])
    answers = both.compare([last + behind])
    assert answers.count(b"HTTP/1.1 ") == 1
    assert b"\r\nconnection: close\r\n\r\n" in answers
    assert both.answered == before + 1


def test_an_old_request_without_a_host_is_answered_the_ordinary_way(both: Both) -> None:
    before = both.answered
    head = f"GET {TARGETS[0]} HTTP/1.0\r\nx-api-key: {both.keys['free']}\r\n\r\n"
    assert b" 200 OK" in both.compare([head.encode()])
    assert both.answered == before


@pytest.mark.parametrize("before", [0, 1], ids=["first", "later"])
@pytest.mark.parametrize("needs_parser", [False, True])
def test_a_draining_worker_answers_as_ever_and_says_that_the_answer_is_the_last(
    both: Both, before: int, needs_parser: bool
) -> None:
    """Directly: thousands of connections have one more answer each, and no time for longer ways."""
    hot = request(TARGETS[0], both.keys["free"])

    async def ask() -> tuple[bytes, bool]:
        await both.look_at_keys()
        connection = Connection(both.direct, both.config(both.direct))
        for _ in range(before):
            await connection.feed(hot)
            await connection.settle()
        if needs_parser:
            connection.pause_writing()
            connection.protocol.resume_writing()
        both.direct.draining = True
        try:
            await connection.feed(hot)
            await connection.settle()
        finally:
            both.direct.draining = False
        closed = connection.transport.closing
        return connection.end(), closed

    counted = both.answered
    answers, closed = both.running.run(ask)
    assert answers.count(b"HTTP/1.1 200 ") == before + 1
    assert answers.count(b"\r\nconnection: close\r\n\r\n") == 1
    assert closed
    assert both.answered == counted + before + 1


def test_what_a_draining_worker_answers_is_the_same_both_ways(both: Both) -> None:
    hot = request(TARGETS[0], both.keys["free"])
    both.direct.draining = both.ordinary.draining = True
    try:
        for data in (hot, hot + hot, request("/v1/", both.keys["free"]), request(TARGETS[0], both.keys["unknown"])):
            assert both.compare([data]).count(b"\r\nconnection: close\r\n") == 1
    finally:
        both.direct.draining = both.ordinary.draining = False


def test_a_direct_answer_counts_as_the_ordinary_one_does(both: Both) -> None:
    """In metrics and usage."""
    app = both.running.app

    def counted() -> list[int]:
        app.figures()
        return [
            app.telemetry.counter(telemetry.REQUESTS, "forecast", "200", "answered").value,
            app.telemetry.counter(telemetry.KEY_CHECKS, "accepted").value,
            app.telemetry.counter(telemetry.LOOKUPS, both.tier, "hit").value,
            sum(app.telemetry.histogram(telemetry.REQUEST_SECONDS, "forecast").counts),
        ]

    before = counted()
    both.compare([request(TARGETS[0], both.keys["limited"])])
    assert counted() == [value + 2 for value in before]


def test_a_key_that_is_revoked_is_answered_directly_no_more(both: Both, settings: Settings) -> None:
    """Though its connection showed it before."""

    async def issue(store: KeyStore) -> tuple[str, ApiKey]:
        return await store.issue("acme", "", None)

    async def run() -> bytes:
        key, record = await with_keys(settings.keys_url, Path(settings.data_dir), issue)
        connection = Connection(both.direct, both.config(both.direct))
        for _ in range(2):
            await connection.feed(request(TARGETS[0], key))
            await asyncio.sleep(0.05)
        await with_keys(settings.keys_url, Path(settings.data_dir), lambda store: store.revoke(record.key_id))
        both.running.app.verifier.invalidate(f"k:{{{record.key_id}}}")
        await connection.feed(request(TARGETS[0], key))
        for _ in range(200):
            if b"HTTP/1.1 401" in connection.transport.written:
                break
            await asyncio.sleep(0.01)
        return connection.end()

    assert re.findall(rb"HTTP/1.1 (\d+) ", both.running.run(run)) == [b"200", b"200", b"401"]


def test_a_key_that_is_verified_later_is_answered_directly_on_the_same_connection(
    both: Both, settings: Settings
) -> None:
    """Its first request takes the router path, which verifies it."""

    async def issue(store: KeyStore) -> tuple[str, ApiKey]:
        return await store.issue("acme", "", None)

    async def run() -> int:
        key, _ = await with_keys(settings.keys_url, Path(settings.data_dir), issue)
        connection = Connection(both.direct, both.config(both.direct))
        for _ in range(3):
            await connection.feed(request(TARGETS[0], key))
            await connection.settle()
        before = both.answered
        await connection.feed(request(TARGETS[0], key))
        await connection.settle()
        assert connection.end().count(b"HTTP/1.1 200 ") == 4
        return before

    before = both.running.run(run)
    assert both.answered == before + 1


def test_a_key_that_was_forgotten_is_answered_directly_again_on_the_same_connection(both: Both) -> None:
    """As when two look-ups of it were under way at once, and the later one took the place of the other."""
    hot, verifier = request(TARGETS[0], both.keys["free"]), both.running.app.verifier

    async def run() -> list[int]:
        connection = Connection(both.direct, both.config(both.direct))
        counts = [both.answered]
        for forgets in (False, True, False):
            if forgets:
                known = verifier.recall(both.keys["free"])
                assert isinstance(known, Verified)
                verifier._forget(known)
            await connection.feed(hot)
            await connection.settle()
            counts.append(both.answered)
        assert connection.end().count(b"HTTP/1.1 200 ") == 3
        return [after - before for before, after in pairwise(counts)]

    assert both.running.run(run) == [1, 1, 1]


def test_a_host_that_is_none_is_refused_though_the_one_before_was_good(both: Both) -> None:
    good = request(TARGETS[0], both.keys["free"])
    answer = both.compare([good, good.replace(b"forecast.test", b"a b")])
    assert re.findall(rb"HTTP/1.1 (\d+) ", answer) == [b"200", b"400"]


def test_nothing_is_written_to_a_reader_that_pauses(both: Both) -> None:
    """What it holds already is enough; the answer comes when it goes on."""

    async def run() -> tuple[bytes, bytes]:
        connection = Connection(both.direct, both.config(both.direct))
        connection.pause_writing()
        await connection.feed(request(TARGETS[0], both.keys["free"]))
        await asyncio.sleep(0.02)
        paused = connection.transport.written
        connection.protocol.resume_writing()
        await connection.settle()
        return paused, connection.end()

    paused, answer = both.running.run(run)
    assert paused == b""
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_connection_is_closed_when_it_was_silent_for_as_long_as_it_may(both: Both) -> None:
    """Counted from its last answer, not from its first."""

    async def run() -> tuple[bool, bool]:
        config = both.config(both.direct)
        config.timeout_keep_alive = 1
        connection = Connection(both.direct, config)
        await connection.feed(request(TARGETS[0], both.keys["free"]))
        await asyncio.sleep(0.6)
        await connection.feed(request(TARGETS[0], both.keys["free"]))
        await asyncio.sleep(0.6)
        early = connection.transport.closing
        for _ in range(300):
            if connection.transport.closing:
                break
            await asyncio.sleep(0.01)
        return early, connection.transport.closing

    assert both.running.run(run) == (False, True)


def test_after_a_switch_the_next_answer_is_of_the_new_release(settings: Settings, tmp_path: Path) -> None:
    """However hot the old one was."""
    data = tmp_path / "data"
    options = PublishOptions(limits=NO_LIMITS)
    assert publish(Catalog(data), [str(write_drop(tmp_path / "first"))], options).result == "published"
    with served(msgspec.structs.replace(settings, data_dir=str(data))) as running:
        for _ in range(3):
            assert b'"tot_population":783' in running.ask(TARGETS[0]).body
        assert running.app.hot.answered > 0
        newer = write_drop(tmp_path / "second", population=[people("36436", 2023, 9)])
        manifest = publish(Catalog(data), [str(newer)], options).manifest
        assert manifest is not None
        running.wait_for(manifest.id)
        answer = running.ask(TARGETS[0])
        assert answer.header("x-data-release") == manifest.id
        assert b'"tot_population":9' in answer.body


# --- while the shared cache is asked -----------------------------------------------------------------------------


of_shared = pytest.mark.parametrize("both", ["shared"], indirect=True)


@pytest.fixture
def looked_for(both: Both, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the shared cache is asked for from now on."""
    asked: list[str] = []
    shared = both.running.app._shared
    ask = shared.ask

    def noted(key: CacheKey, found: TellLookup) -> None:
        asked.append(key.name)
        ask(key, found)

    monkeypatch.setattr(shared, "ask", noted)
    return asked


@of_shared
def test_what_arrives_meanwhile_waits_for_its_turn(both: Both) -> None:
    """And nothing more is read."""
    key = both.keys["free"]

    async def run() -> tuple[bytes, bool, bytes]:
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(TARGETS[0], key))
        connection.receive(request(f"{FORECAST}?zip_code=99999", key))
        connection.receive(request(TARGETS[1], key) + request(TARGETS[2], key))
        before, reading = connection.transport.written, connection.transport.reading
        await connection.settle()
        assert connection.transport.reading
        return before, reading, connection.end()

    before, reading, answers = both.running.run(run)
    assert (before, reading) == (b"", False)
    assert re.findall(rb"HTTP/1.1 (\d+) ", answers) == [b"200", b"404", b"200", b"200"]


@of_shared
def test_a_caller_that_goes_away_meanwhile_is_told_nothing(both: Both) -> None:
    async def run() -> bytes:
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(TARGETS[0], both.keys["free"]))
        connection.transport.closing = True
        connection.lose()
        await connection.settle()
        return connection.transport.written

    assert both.running.run(run) == b""


@of_shared
def test_a_worker_that_stops_meanwhile_answers_first(both: Both) -> None:
    async def run() -> bytes:
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(TARGETS[0], both.keys["free"]))
        connection.protocol.shutdown()
        connection.protocol._close_if_idle()
        assert not connection.transport.closing
        await connection.settle()
        connection.protocol._close_if_idle()
        assert connection.transport.closing
        return connection.end()

    assert both.running.run(run).startswith(b"HTTP/1.1 200 ")


@of_shared
def test_a_worker_that_drains_meanwhile_says_that_the_answer_is_the_last(both: Both, looked_for: list[str]) -> None:
    """What was found is not looked for again; counted once."""
    before = both.answered

    async def run() -> bytes:
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(TARGETS[0], both.keys["free"]))
        both.direct.draining = True
        try:
            await connection.settle()
        finally:
            both.direct.draining = False
        return connection.end()

    answer = both.running.run(run)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"\r\nconnection: close\r\n" in answer
    assert (both.answered, len(looked_for)) == (before + 1, 1)


@of_shared
def test_a_release_that_is_switched_meanwhile_takes_the_ordinary_way(both: Both) -> None:
    """Which answers from the newer one."""
    hot = both.running.app.hot
    before = both.answered

    async def run() -> bytes:
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(TARGETS[0], both.keys["free"]))
        release = hot._targets.release
        hot.switched("newer")
        await connection.settle()
        assert release is not None
        hot.switched(release)
        return connection.end()

    assert both.running.run(run).startswith(b"HTTP/1.1 200 ")
    assert both.answered == before


@of_shared
def test_what_the_shared_cache_lost_is_made_again(both: Both, settings: Settings) -> None:
    """Then it is there again."""
    before = both.answered

    async def run() -> list[bytes]:
        await asyncio.sleep(3 * LINGER)  # until no fill of earlier tests answers any more, which is not stored again
        async with redis.asyncio.from_url(settings.cache_url) as client:
            await client.delete(*[name async for name in client.scan_iter("c:*")])
        answers = []
        for _ in range(2):
            connection = Connection(both.direct, both.config(both.direct))
            await connection.feed(request(TARGETS[0], both.keys["limited"]))
            await connection.settle()
            await asyncio.sleep(0.05)
            answers.append(connection.end())
        return answers

    first, second = both.running.run(run)
    assert b"cache-status: forecast; fwd=uri-miss; detail=warehouse" in first
    assert b"cache-status: forecast; hit; detail=shared" in second
    assert both.answered == before + 2


@of_shared
@pytest.mark.parametrize("name", ["other", "slow"])
def test_nothing_is_looked_for_on_behalf_of_a_key_that_would_not_be_let_pass(
    both: Both, name: str, looked_for: list[str]
) -> None:
    """What it may not have, or has had too much of, costs no look-up: the router path decides that first."""
    both.running.ask(TARGETS[0], key=both.keys[name])
    looked_for.clear()
    assert both.running.ask(TARGETS[0], key=both.keys[name]).status == {"other": 403, "slow": 429}[name]
    assert looked_for == []


@of_shared
def test_while_the_shared_cache_is_away_the_warehouse_answers(both: Both, looked_for: list[str]) -> None:
    """The shared cache is asked once, and says at once that it cannot be."""
    (store,) = both.running.app.cache_store.servers

    async def run() -> bytes:
        for _ in range(FAILURES_TO_OPEN):
            store.failed(OSError("gone"), answered=False)
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(TARGETS[0], both.keys["free"]))
        await connection.settle()
        store.succeeded()
        return connection.end()

    answer = both.running.run(run)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"\r\ncache-status: forecast; fwd=bypass; detail=warehouse\r\n" in answer
    assert len(looked_for) == 1


async def _trailed(both: Both) -> int:
    """How many header lines a connection keeps of a request with endless trailers."""
    connection = Connection(both.direct, both.config(both.direct))
    await connection.feed(request(TARGETS[0], both.keys["free"], "Transfer-Encoding: chunked") + b"0\r\n")
    for number in range(50):
        await connection.feed(b"".join(b"X-%d-%d: y\r\n" % (number, line) for line in range(100)))
    await connection.settle()
    kept = len(connection.protocol._received)
    connection.end()
    return kept


def test_trailers_without_end_are_not_kept(both: Both) -> None:
    """They come behind a body that nobody wants, where no limit on heads looks any more."""
    assert both.running.run(lambda: _trailed(both)) <= 100


def test_requests_behind_a_head_that_is_cut_in_its_last_line_end_are_not_waited_for_after_a_close(both: Both) -> None:
    """The first one closes the connection; two more came with the rest of its head."""
    first = request("/v1/", both.keys["free"], version="1.0")
    behind = request("/v1/", both.keys["free"])
    answers = both.compare([first[:-3], first[-3:] + behind + behind])
    assert answers.count(b"HTTP/1.1 200 OK") == 1


# --- anything at all ---------------------------------------------------------------------------------------------

LINES = st.sampled_from(
    [
        *("Accept-Encoding: gzip", "Accept-Encoding: identity", "accept-encoding: gzip;q=0.5, *;q=0", "ACCEPT: */*"),
        *(
            "If-None-Match: *",
            'If-None-Match: "x", W/"y"',
            "If-Match: *",
            'If-Match: "x", W/"y"',
            "If-Match:",
            "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT",
            "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT",
            "If-None-Match:",
            "X-Request-Id: a.b-c_d",
            "X-Request-Id: a b",
        ),
        *(
            "Connection: keep-alive",
            "Connection: Keep-Alive",
            "Connection: close",
            "Content-Length: 0",
            "Host: x",
            "Host: ",
        ),
        *("Expect: 100-continue", "Upgrade: h2c", "traceparent: 00-1-1-01", "x-forwarded-for: 1.1.1.1", "Cookie: a=b"),
        *("x-api-key: nobody", "Transfer-Encoding: identity", "X-Bad Header: 1", "X-Long: " + "y" * 3000, ": none"),
    ]
)
STRANGE = (
    "//v1/",
    "/v1%2freleases",
    f"{FORECAST}%2F?zip_code=36436",
    "/v1/%zz",
    f"{FORECAST}?zip_code=36436#x",
    "*",
    "/v1/{x}",
    f"{FORECAST}?{'x' * 8200}=1",
    "/é",
)
REQUESTS = st.tuples(
    st.sampled_from(["GET", "GET", "GET", "HEAD", "POST", "get"]),
    st.sampled_from([*TARGETS, *TARGETS, *OTHERS, *KNOWN_ERRORS, *STRANGE]),
    st.sampled_from(["1.1", "1.1", "1.1", "1.0"]),
    st.sampled_from(["free", "free", "limited", "metered", "nobody", *REFUSED]),
    st.lists(LINES, max_size=4),
    st.sampled_from(["", "", "", "", "body", "\r\n"]),
)


def sent_both_ways(both: Both, asked: list[Any], cuts: list[int], data: Any) -> None:
    """Some of REQUESTS, one after the other, cut there."""
    stream = b"".join(
        request(target, both.keys.get(key, "nobody"), *lines, method=method, version=version) + behind.encode()
        for method, target, version, key, lines, behind in asked
    )
    places = sorted({cut % (len(stream) + 1) for cut in cuts})
    edges = [0, *places, len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(edges) if end > start]
    paused = tuple(data.draw(st.lists(st.integers(0, len(chunks) - 1), max_size=2)))
    both.compare(chunks, paused)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(REQUESTS, min_size=1, max_size=4), st.lists(st.integers(0, 2000), max_size=5), st.data())
def test_whatever_is_sent_both_ways_answer_the_same(both: Both, asked: list[Any], cuts: list[int], data: Any) -> None:
    """Methods, versions, headers, bodies, bad syntax, cut anywhere, with readers that pause."""
    sent_both_ways(both, asked, cuts, data)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("target", [TARGETS[0], f"{FORECAST}?zip_code=99999"])
@pytest.mark.parametrize("wrong", ["unknown", "malformed"])
def test_who_sent_a_wrong_key_is_not_told_so_without_one(both: Both, wrong: str, target: str, version: str) -> None:
    """Nor without a host."""
    sent, bare = request(target, both.keys[wrong]), f"GET {target} HTTP/{version}\r\nAccept: x\r\n\r\n".encode()
    answers = both.compare([sent, sent, bare])
    assert answers.count(b'"invalid_api_key"') == 2
    assert (b'"missing_api_key"' if version == "1.0" else b'"bad_request"') in answers


KNOWN_BEFORE = st.tuples(
    st.sampled_from(["GET", "GET", "HEAD"]),
    st.sampled_from([TARGETS[0], TARGETS[0], KNOWN_ERRORS[0], f"{TARGETS[0]}&in=other-words", "/v1/", "/nowhere"]),
    st.sampled_from([None, "", "free", "free", "limited", "test", "unknown", "malformed", "revoked", "other", "slow"]),
    st.sampled_from([None, "forecast.test", "forecast.test", "other.test", "no host"]),
    st.sampled_from(["", "", "Accept-Encoding: gzip", "Cookie: " + "x" * 3000]),
)


def bare(method: str, target: str, key: str | None, host: str | None, line: str) -> bytes:
    """A head with as little as that; None: not even an empty header."""
    lines = [] if host is None else [f"Host: {host}"]
    lines += [] if key is None else [f"x-api-key: {key}"]
    return "\r\n".join([f"{method} {target} HTTP/1.1", *lines, *filter(None, [line]), "", ""]).encode()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(KNOWN_BEFORE, min_size=2, max_size=3))
def test_what_is_known_of_a_request_is_not_taken_for_the_next(both: Both, asked: list[Any]) -> None:
    """Each on its own, as most arrive: with another key, another host, or without."""
    sent = [bare(method, target, key and both.keys[key], *others) for method, target, key, *others in asked]
    assert both.compare(sent).count(b"HTTP/1.1 ") == len(sent)
