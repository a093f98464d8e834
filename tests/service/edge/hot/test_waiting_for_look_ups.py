"""A request that only the warehouse can answer waits on its connection, and is answered as by the router."""

import asyncio
import contextlib
import gc
import logging
import re
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from service.edge.hot.remembered import FoundOut

from config.settings import Settings
from service.base.seen import LoggedRequest
from service.base.telemetry import ANSWERS, KEY_CHECKS, LOOKUPS, REQUESTS
from service.base.terms import Rate, Terms
from service.keys.verdict import Rejected
from tests.service.edge.hot.test_answers import REQUESTS as ANYTHING
from tests.service.edge.hot.test_answers import sent_both_ways
from tests.support.both_ways import (
    SPRINGFIELD,
    TARGETS,
    Both,
    asked_both_ways,
    facts_of,
    normalised,
    read_from_now_on,
    request,
)
from tests.support.connection import Connection
from tests.support.served import FORECAST
from tests.support.waiting import eventually, until
from warehouse.lookup.engine import Engine
from warehouse.schema.errors import LookupBusy, LookupFailure, LookupStuck, LookupTimeout

REGIONS = (f"{FORECAST}/by-county?county_fips_code=01025", f"{FORECAST}/by-state?state_code=IL&limit=1")
_FACTS = {family.name for family in (ANSWERS, KEY_CHECKS, LOOKUPS, REQUESTS)}
GOOD, BEHIND = TARGETS[0], "/v1/"


@pytest.fixture(scope="module")
def both(settings: Settings) -> Iterator[Both]:
    with asked_both_ways(settings, "warehouse") as made:
        yield made


@pytest.fixture
def no_router(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError(f"{scope['path']} went to the router")

    monkeypatch.setattr(both.direct, "_app", nobody)


class HeldLookUps:
    """Look-ups that have begun wait until they may `go` on; `begun` and `ended` of them."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = self.ended = 0

    def hold(self, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
        entries = engine.entries

        async def held(area: str, keys: Sequence[str]) -> list[bytes]:
            self.begun += 1
            await self.go.wait()
            found = await entries(area, keys)
            self.ended += 1
            return found

        monkeypatch.setattr(engine, "entries", held)


@pytest.fixture
def engine(both: Both) -> Engine:
    current = both.running.app.follower.current
    assert current is not None
    return current.engine


@pytest.fixture
def held(both: Both, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldLookUps]:
    made = HeldLookUps()
    made.hold(monkeypatch, engine)
    yield made

    async def go() -> None:
        made.go.set()

    both.running.run(go)


@contextlib.asynccontextmanager
async def waiting(both: Both, held: HeldLookUps, *sent: bytes) -> AsyncIterator[Connection]:
    """A connection whose first request waits for the warehouse."""
    await both.look_at_keys()
    connection, before = Connection(both.direct, both.config(both.direct)), held.begun
    for data in sent:
        connection.receive(data)
    await eventually(lambda: held.begun > before)
    assert connection.protocol._asked is not None
    yield connection


@pytest.mark.parametrize("target", [*TARGETS, *REGIONS])
@pytest.mark.parametrize("key", ["free", "metered"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "lines", [(), ("Accept-Encoding: gzip",), ("If-None-Match: *",), ("Connection: close",)], ids=str
)
def test_the_answer_is_that_of_the_router(
    both: Both, target: str, key: str, method: str, lines: tuple[str, ...]
) -> None:
    answer = both.compare([request(target, both.keys[key], *lines, method=method)])
    assert b"\r\ncache-status: forecast; fwd=uri-miss; detail=warehouse\r\n" in answer


@hypothesis_settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.lists(ANYTHING, min_size=1, max_size=4), st.lists(st.integers(0, 2000), max_size=5), st.data())
def test_whatever_is_sent_both_ways_answer_the_same(both: Both, asked: list[Any], cuts: list[int], data: Any) -> None:
    """Where nothing is kept, so that each request waits for the warehouse."""
    sent_both_ways(both, asked, cuts, data)


@pytest.mark.usefixtures("no_router")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("known", [False, True], ids=["new words", "words that were used before"])
def test_the_router_is_not_asked_and_a_query_is_read_once(
    both: Both, target: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert both.direct.hot is not None
    read = read_from_now_on(monkeypatch)
    line = f"{target}&n={known}"
    if known:
        assert both.running.ask(line, key=both.keys["metered"]).status == 200
    read.clear()
    assert both.running.ask(line, key=both.keys["metered"]).status == 200
    assert len(read) == 1


def test_its_connection_learns_from_it_how_heads_look(both: Both) -> None:
    """So that the next one is compared and not read anew, also where no answer is near."""
    assert both.direct.hot is not None
    both.direct.hot.fields.taught.clear()

    async def run() -> bytes:
        await both.look_at_keys()
        connection = Connection(both.direct, both.config(both.direct))
        for number in range(3):
            await connection.feed(request(f"{GOOD}&learns={number}", both.keys["free"]))
            await connection.settle()
        usual: bytes = connection.protocol.reader.usual
        connection.end()
        return usual

    assert both.running.run(run) == request("/", both.keys["free"]).partition(b"HTTP/1.1")[2]


def test_words_that_are_read_otherwise_than_before_are_not_looked_up_for_them(both: Both) -> None:
    """An entry must never be kept as that of another query."""
    line, readers = f"{GOOD}&means=another", both.running.app._readers
    assert b"36436" in both.running.ask(line, key=both.keys["free"]).body
    path, read = FORECAST.encode(), readers[FORECAST.encode()]
    readers[path] = lambda _: read(b"zip_code=09001")
    try:
        answer = both.running.ask(line, key=both.keys["free"])
    finally:
        readers[path] = read
    assert b"36436" in answer.body


@pytest.mark.parametrize("known", [False, True], ids=["new words", "words that were used before"])
def test_it_is_counted_as_on_the_router_path(both: Both, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, in metrics and in the usage of its key."""
    app = both.running.app
    flusher = app.metering._flusher
    flush = flusher.flush

    async def not_now() -> bool:
        return True

    monkeypatch.setattr(flusher, "flush", not_now)  # what is stored is no longer among what is counted here
    both.running.run(flush)
    key = app.verifier.recall(both.keys["metered"]).key.key_id  # type: ignore[union-attr]

    def facts() -> dict[Any, float]:
        return {**facts_of(both, _FACTS), "billed": app.metering.counters.billable(key, 0, 1 << 40)}

    def added(gate: Any, words: str) -> dict[Any, float]:
        async def ask() -> None:
            await both.look_at_keys()
            connection = Connection(gate, both.config(gate))
            await connection.feed(request(words, both.keys["metered"]))
            await connection.settle()
            assert connection.end().startswith(b"HTTP/1.1 200 OK\r\n")

        before = facts()
        both.running.run(ask)
        return {fact: value - before.get(fact, 0) for fact, value in facts().items() if value != before.get(fact, 0)}

    words = f"{GOOD}&counted="
    if known:
        both.running.ask(f"{words}x", key=both.keys["metered"])
    routed = added(both.ordinary, f"{words}router")
    assert any(fact[0] == ANSWERS.name and "warehouse" in fact[1] for fact in routed)
    assert added(both.direct, f"{words}{'x' if known else 'new'}") == routed


@pytest.mark.parametrize("kind", [LookupFailure, LookupBusy, LookupTimeout, LookupStuck, RuntimeError])
@pytest.mark.parametrize("target", [GOOD, SPRINGFIELD])
def test_a_look_up_that_fails_ends_as_on_the_router_path(
    both: Both,
    engine: Engine,
    kind: Callable[[str], Exception],
    target: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In its answer, in the log, and among the last errors of its key."""
    kept: list[LoggedRequest] = []

    async def entries(*_: Any) -> list[bytes]:
        raise kind("secret of the inside")

    monkeypatch.setattr(engine, "entries", entries)
    for gate in (both.direct, both.ordinary):
        monkeypatch.setattr(gate.counting, "_keep_error", lambda _, make: kept.append(make()))
    answer = both.compare([request(target, both.keys["metered"], "X-Request-Id: failed")])
    status = 500 if kind is RuntimeError else 503
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"secret" not in answer
    assert (b"\r\nretry-after: 1\r\n" in answer) is (status == 503)
    assert [line.status for line in kept] == [status, status]
    said = [
        one for one in caplog.records if getattr(one, "request_id", None) == "failed" and one.name != "forecast.access"
    ]
    assert len(said) == 2
    assert len({(one.name, one.levelno, one.getMessage()) for one in said}) == 1


@pytest.fixture
def taken(both: Both) -> Callable[[], tuple[int, int]]:
    """Tokens of the metered key that were taken, and look-ups in the shared cache, so far."""
    app = both.running.app
    key = app.verifier.recall(both.keys["metered"]).key.key_id  # type: ignore[union-attr]
    holding = app.metering.limiter.holding(key)
    assert holding is not None
    return lambda: (holding.spent, app.telemetry.sum(LOOKUPS, tier="shared"))


@pytest.mark.parametrize("kind", [LookupFailure, RuntimeError])
@pytest.mark.parametrize("words", [f"{GOOD}&fails=1", GOOD, f"{GOOD}&x=|"], ids=["new", "known", "not plain"])
def test_a_look_up_that_fails_is_made_once_and_takes_one_token(
    both: Both,
    engine: Engine,
    kind: Callable[[str], Exception],
    words: str,
    taken: Callable[[], tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The router path, which tells of it, neither admits the request nor looks up again."""
    asked: list[str] = []

    async def entries(area: str, _: Sequence[str]) -> list[bytes]:
        asked.append(area)
        raise kind("damaged")

    if "|" in words:
        assert both.running.ask(words, key=both.keys["metered"]).status == 200
    monkeypatch.setattr(engine, "entries", entries)
    before = taken()
    assert both.running.ask(words, key=both.keys["metered"]).status == (503 if kind is LookupFailure else 500)
    assert [now - then for now, then in zip(taken(), before, strict=True)] == [1, 1]
    assert len(asked) == 1


@pytest.mark.parametrize("path", [FORECAST.replace("-", "%2D"), f"{FORECAST}/"])
def test_a_path_that_is_spelt_otherwise_costs_no_more(
    both: Both, path: str, taken: Callable[[], tuple[int, int]]
) -> None:
    """Though the same words were answered before."""
    for _ in range(3):
        before = taken()
        assert both.running.ask(f"{path}?zip_code=36436", key=both.keys["metered"]).status == 200
        assert taken() == (before[0] + 1, before[1] + 1)


def test_a_look_up_that_fails_is_told_to_operators_though_nobody_waits(
    both: Both, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients may have less patience than a slow disk."""
    app, go = both.running.app, asyncio.Event()

    async def entries(*_: Any) -> list[bytes]:
        await go.wait()
        raise LookupFailure("damaged")

    monkeypatch.setattr(engine, "entries", entries)
    monkeypatch.setattr(app._answers, "_problem_until", 0.0)

    async def run() -> None:
        await both.look_at_keys()
        app.lookups.worked()
        connection = Connection(both.direct, both.config(both.direct))
        connection.receive(request(f"{GOOD}&gone=1", both.keys["free"]))
        await eventually(lambda: bool(app._cache._flights._flights))
        connection.transport.close()
        connection.end()
        go.set()
        await eventually(lambda: app.lookups._failing_since is not None)
        app.lookups.worked()

    both.running.run(run)
    assert app._answers.problem is not None


def test_a_defect_in_reading_a_query_is_a_500(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(*_: Any) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr("service.http.forecast.parse_location", defect)
    for words in (f"{GOOD}&defect=1", GOOD):
        assert both.running.ask(words, key=both.keys["free"]).status == 500


@pytest.mark.parametrize("query", ["zip_code=99999", "zip_code=1", "city_name=Springfeild&state_code=IL"])
def test_a_query_that_has_no_entry_is_read_once_too(both: Both, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = read_from_now_on(monkeypatch)
    assert both.running.ask(f"{FORECAST}?{query}&once=1", key=both.keys["free"]).status in (400, 404)
    assert len(read) == 1


def test_each_miss_is_in_the_rankings(both: Both) -> None:
    """However many hits there are beside, of which few are looked at."""
    watch = both.running.app.watch
    watch.sightings.take()
    watch.adapt(1_000_000)
    for number in range(3):
        assert both.running.ask(f"{GOOD}&missed={number}", key=both.keys["free"]).status == 200
    missed = {(seen.name, seen.count) for seen in watch.sightings.take() if seen.kind == "missed"}
    assert missed == {("forecast zip:36436", 3)}


def test_the_date_is_that_of_the_answer(both: Both, held: HeldLookUps) -> None:
    async def run() -> bytes:
        async with waiting(both, held, request(f"{GOOD}&date=1", both.keys["free"])) as connection:
            state = connection.protocol._server.state
            state.default_headers = [(b"date", b"later")]
            held.go.set()
            await connection.settle()
            return connection.end()

    assert b"\r\ndate: later\r\n" in both.running.run(run)


def test_a_look_up_that_fails_leaves_nothing_to_the_garbage_collector(
    both: Both, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error holds the frames that it passed."""
    errors: list[weakref.ref[LookupFailure]] = []

    async def entries(*_: Any) -> list[bytes]:
        error = LookupFailure("damaged")
        errors.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    monkeypatch.setattr(engine, "entries", entries)
    monkeypatch.setattr(logging.getLogger("forecast.http"), "disabled", True)  # pytest keeps what is logged
    gc.disable()
    try:
        assert both.running.ask(f"{GOOD}&leaves=1", key=both.keys["free"]).status == 503
        until(lambda: errors[0]() is None)
    finally:
        gc.enable()


def test_a_defect_is_told_alike_to_all_who_wait(
    both: Both, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each raises the same error, whose traceback would grow each time, and with it what is logged."""
    go = asyncio.Event()

    async def entries(*_: Any) -> list[bytes]:
        await go.wait()
        raise RuntimeError("a defect")

    monkeypatch.setattr(engine, "entries", entries)

    async def run() -> list[bytes]:
        await both.look_at_keys()
        connections = [Connection(both.direct, both.config(both.direct)) for _ in range(20)]
        for number, connection in enumerate(connections):
            connection.receive(request(f"{GOOD}&crowd={number}", both.keys["free"]))
        await eventually(lambda: [one.waiting for one in both.running.app._cache._flights._flights.values()] == [20])
        go.set()
        for connection in connections:
            await connection.settle()
        return [connection.end() for connection in connections]

    assert {answer[9:12] for answer in both.running.run(run)} == {b"500"}
    told = {len(one.exc_text) for one in caplog.records if one.name == "forecast.http" and one.exc_text}
    assert len(told) == 1


def test_what_was_found_out_about_another_request_is_no_matter(both: Both) -> None:
    async def ask() -> bytes:
        await both.look_at_keys()
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(GOOD, both.keys["free"]))
        await connection.settle()
        connection.protocol.found_out = FoundOut(request(BEHIND, "another"), Rejected("invalid"))
        await connection.feed(request(BEHIND, both.keys["free"]))
        await connection.settle()
        return connection.end()

    assert re.findall(rb"HTTP/1.1 (\d+) ", both.running.run(ask)) == [b"200", b"200"]


def test_a_token_is_taken_once_though_the_release_switches_meanwhile(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, hot = both.running.app, both.running.app.hot
    key = both.issue(Terms(rate=Rate(100, 1, 100)))
    assert both.running.ask(GOOD, key=key).status == 200
    holding = app.metering.limiter.holding(app.verifier.recall(key).key.key_id)  # type: ignore[union-attr]
    assert holding is not None
    with_token, tokens = hot._admitting._with_token, list[Any]()

    def switched(waiting: Any, asked: Any, allowance: Any, finish: Any) -> Any:
        tokens.append(allowance)
        release, hot._targets.release = hot._targets.release, "newer"
        try:
            return with_token(waiting, asked, allowance, finish)
        finally:
            hot._targets.release = release

    monkeypatch.setattr(hot._admitting, "_with_token", switched)
    before = holding.spent
    holding.tokens = holding._next_tokens = 0  # so that it has to wait for its token
    assert both.running.ask(f"{GOOD}&switches=1", key=key).status == 200
    assert [token is not None for token in tokens] == [True]
    assert holding.spent - before == 1


def test_who_may_not_pass_costs_no_look_up(both: Both, held: HeldLookUps) -> None:
    """Of a crowd with one token, one asks the warehouse."""

    async def run() -> list[bytes]:
        await both.running.app.verifier.check(one_a_day)
        connections = [Connection(both.direct, both.config(both.direct)) for _ in range(5)]
        for number, connection in enumerate(connections):
            connection.receive(request(f"{FORECAST}?zip_code={('36436', '09001')[number % 2]}&c={number}", one_a_day))
        await eventually(lambda: held.begun > 0)
        await asyncio.sleep(0.05)
        held.go.set()
        for connection in connections:
            await connection.settle()
        return [connection.end() for connection in connections]

    one_a_day = both.issue(Terms(rate=Rate(1, 86_400, 1)))
    answers = both.running.run(run)
    assert sorted(answer[9:12] for answer in answers) == [b"200", *([b"429"] * 4)]
    assert held.begun == 1


@pytest.mark.parametrize("name", ["slow", "used up", "other", "unknown"])
def test_who_is_refused_is_told_so_directly_in_words_that_were_read(
    both: Both, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though no cache has their entry."""
    hot = both.running.app.hot
    words = [f"{GOOD}&refused={name.replace(' ', '-')}-{number}" for number in range(2)]
    for each in words:
        assert both.running.ask(each, key=both.keys["free"]).status == 200

    async def ask(target: str) -> bytes:
        await both.look_at_keys()
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(target, both.keys[name]))
        await connection.settle()
        return connection.end()

    first = both.running.run(lambda: ask(words[0]))
    for denial in hot.errors._denials.values():
        denial.until = float("inf")  # else for a tenth of a second, or for what is left of a second
    monkeypatch.setattr(both.direct, "answer_now", None)
    again = [both.running.run(partial(ask, each)) for each in words]
    hot.errors.clear()
    assert first[9:12] in (b"401", b"403", b"429")
    assert [normalised(answer) for answer in again] == [normalised(first)] * 2


def test_a_look_up_that_works_ends_the_doubt(both: Both) -> None:
    """Whether the worker can answer anybody, after look-ups that failed."""
    lookups = both.running.app.lookups

    async def doubt() -> None:
        lookups.failed(LookupFailure("damaged"))

    both.running.run(doubt)
    assert lookups._failing_since is not None
    assert both.running.ask(f"{GOOD}&doubt=1", key=both.keys["free"]).status == 200
    assert lookups._failing_since is None


def test_what_arrives_meanwhile_is_answered_behind_it(both: Both, held: HeldLookUps) -> None:
    key = both.keys["free"]

    async def run() -> tuple[bytes, bytes]:
        async with waiting(both, held, request(GOOD, key), request(BEHIND, key)) as connection:
            await asyncio.sleep(0.01)
            before = connection.transport.written
            held.go.set()
            await connection.settle()
            return before, connection.end()

    before, answers = both.running.run(run)
    assert before == b""
    assert re.findall(rb"HTTP/1.1 200 OK\r\n.*?\r\n\r\n\{\"(\w+)", answers, re.DOTALL) == [b"total_results", b"version"]


def test_who_asks_for_the_same_meanwhile_shares_the_look_up(both: Both, held: HeldLookUps) -> None:
    """On whichever way; a client that goes away takes nothing from the others, and is told nothing."""
    data = request(f"{FORECAST}?zip_code=90028", both.keys["free"])

    async def run() -> tuple[bytes, bytes, bytes]:
        async with waiting(both, held, data) as first:
            second = Connection(both.direct, both.config(both.direct))
            second.receive(data)
            third = Connection(both.ordinary, both.config(both.ordinary))
            third.receive(data)
            await asyncio.sleep(0.01)
            first.transport.closing = True
            gone = first.end()
            held.go.set()
            for connection in (second, third):
                await connection.settle()
            return gone, second.end(), third.end()

    gone, second, third = both.running.run(run)
    assert (gone, held.begun, held.ended) == (b"", 1, 1)
    assert normalised(second) == normalised(third)
    assert second.startswith(b"HTTP/1.1 200 OK\r\n")


def test_what_a_client_that_goes_away_asked_for_is_looked_up_and_kept(
    both: Both, held: HeldLookUps, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[str] = []
    monkeypatch.setattr(both.running.app._shared, "put", lambda key, _: stored.append(key.name))

    async def run() -> None:
        async with waiting(both, held, request(GOOD, both.keys["free"])) as connection:
            connection.transport.closing = True
            connection.end()
            held.go.set()
            await eventually(lambda: len(stored) == 1)

    both.running.run(run)


def test_a_worker_that_drains_meanwhile_says_that_the_answer_is_the_last(both: Both, held: HeldLookUps) -> None:
    """Checked once, looked up once, and counted once."""

    def counted() -> list[float]:
        both.running.app.figures()
        sum_of = both.running.app.telemetry.sum
        return [sum_of(KEY_CHECKS, outcome="accepted"), sum_of(REQUESTS, status="200", outcome="answered")]

    async def run() -> bytes:
        async with waiting(both, held, request(GOOD, both.keys["free"])) as connection:
            connection.protocol.shutdown()
            both.direct.draining = True
            try:
                held.go.set()
                await connection.settle()
            finally:
                both.direct.draining = False
            return connection.end()

    before = counted()
    answer = both.running.run(run)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nconnection: close\r\n" in answer
    assert counted() == [value + 1 for value in before]
    assert held.begun == 1


def test_a_connection_that_grows_old_meanwhile_is_told_so(both: Both, held: HeldLookUps) -> None:
    async def run() -> tuple[bytes, bool]:
        async with waiting(both, held, request(GOOD, both.keys["free"])) as connection:
            connection.protocol._grow_old()
            held.go.set()
            await connection.settle()
            closing = connection.transport.closing
            return connection.end(), closing

    answer, closing = both.running.run(run)
    assert b"\r\nconnection: close\r\n" in answer
    assert closing


def test_the_answer_is_of_the_release_in_which_it_was_looked_up(
    both: Both, held: HeldLookUps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though another became current meanwhile: a request takes its release once."""
    app = both.running.app
    current = app.follower.current
    assert current is not None

    async def run() -> bytes:
        async with waiting(both, held, request(GOOD, both.keys["free"])) as connection:
            assert app.hot._targets.release is not None
            app.hot.switched("newer")
            held.go.set()
            await connection.settle()
            app.hot.switched(current.id)
            return connection.end()

    assert b"\r\nx-data-release: %b\r\n" % current.id.encode() in both.running.run(run)
