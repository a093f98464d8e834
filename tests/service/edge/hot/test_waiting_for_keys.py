"""A hot request whose key must be asked for again waits for that where it is, and costs no more than another."""

import asyncio
import time

import msgspec
import pytest

from service.base.telemetry import REQUEST_SECONDS
from service.keys.store import Found, FoundKey, TellFound
from service.keys.verifier import UNKNOWN_AFTER_SECONDS, WAIT_AFTER_SECONDS, Verified
from service.redis.errors import StoreUnavailable
from service.request.pipeline import Gate
from tests.support.both_ways import TARGETS, Both, normalised, request
from tests.support.connection import Connection
from tests.support.served import FORECAST

_MANY = 200


def grown_old(both: Both, name: str, seconds: float) -> Verified:
    known = both.running.app.verifier.recall(both.keys[name])
    assert isinstance(known, Verified)
    known.checked(time.monotonic() - seconds)
    return known


@pytest.mark.parametrize("target", [TARGETS[0], f"{FORECAST}?zip_code=99999"])
def test_any_number_wait_for_one_look_up_and_are_answered_directly(
    both: Both, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    both.running.ask(target, key=both.keys["free"])  # from now on it is known
    app, store, asked = both.running.app, both.running.app.verifier._store, []
    look_up = store.ask

    def counted(key_id: str, told: TellFound) -> None:
        asked.append(key_id)
        look_up(key_id, told)

    monkeypatch.setattr(store, "ask", counted)

    async def ask() -> list[bytes]:
        await both.look_at_keys()
        grown_old(both, "free", WAIT_AFTER_SECONDS + 1)
        asked.clear()
        connections = [Connection(both.direct, both.config(both.direct)) for _ in range(_MANY)]
        for one in connections:
            await one.feed(request(target, both.keys["free"]))
        for one in connections:
            await one.settle()
        return [one.end() for one in connections]

    before = app.hot.answered + app.hot.errors.told
    answers = both.running.run(ask)
    assert {answer[:12] for answer in answers} <= {b"HTTP/1.1 200", b"HTTP/1.1 404"}
    assert app.hot.answered + app.hot.errors.told == before + _MANY
    assert len(asked) == 1


@pytest.mark.parametrize(("name", "status"), [("free", b"200"), ("unknown", b"401")])
@pytest.mark.parametrize("words", ["", "&in=new-words"])
def test_any_number_wait_for_one_look_up_of_a_key_that_nobody_has_used(
    both: Both, monkeypatch: pytest.MonkeyPatch, name: str, status: bytes, words: str
) -> None:
    """Good or wrong, and without the router, unless it has to find out what new words mean."""
    verifier = both.running.app.verifier
    store, asked = verifier._store, []
    look_up = store.ask

    def counted(key_id: str, told: TellFound) -> None:
        asked.append(key_id)
        look_up(key_id, told)

    monkeypatch.setattr(store, "ask", counted)

    async def ask() -> list[bytes]:
        await both.look_at_keys()
        verifier._wrong.clear()
        known = verifier.recall(both.keys["free"])
        assert isinstance(known, Verified)
        verifier._forget(known)
        asked.clear()
        connections = [Connection(both.direct, both.config(both.direct)) for _ in range(_MANY)]
        for one in connections:
            await one.feed(request(f"{TARGETS[0]}{words}", both.keys[name]))
        routed = [one for one in connections if one.tasks]
        for one in connections:
            await one.settle()
        assert not routed or (name, words) == ("free", "&in=new-words")
        return [one.end() for one in connections]

    both.running.ask(f"{TARGETS[0]}&z", key=both.keys["malformed"])  # from now on the path is known
    assert {answer[9:12] for answer in both.running.run(ask)} == {status}
    assert len(asked) == 1


@pytest.mark.parametrize("name", ["free", "unknown"])
@pytest.mark.parametrize("words", ["", "&in=words-that-are-new"])
@pytest.mark.parametrize("is_light", [True, False])
def test_the_time_in_which_a_request_waits_for_its_key_counts(
    both: Both, monkeypatch: pytest.MonkeyPatch, name: str, words: str, is_light: bool
) -> None:
    """In the metric, and so in the slow log and the trace, whoever has the connection."""
    app = both.running.app
    store, waited = app.verifier._store, 0.05
    look_up = store.ask

    def late(key_id: str, told: TellFound) -> None:
        def found(found: Found) -> None:
            asyncio.get_running_loop().call_later(waited, told, found)

        look_up(key_id, found)

    async def ask() -> float:
        await both.look_at_keys()
        connection = Connection(both.direct, both.config(both.direct))
        if not is_light:
            connection.protocol.unwritten(b"", is_last=False)  # from now on it has a transport
        if name == "free":
            grown_old(both, "free", WAIT_AFTER_SECONDS + 1)
        app.verifier._wrong.clear()
        monkeypatch.setattr(store, "ask", late)
        area = app.telemetry.histogram(REQUEST_SECONDS, "forecast")
        before = area.total
        await connection.feed(request(f"{TARGETS[0]}{words}", both.keys[name]))
        await connection.settle()
        monkeypatch.undo()
        connection.end()
        return area.total - before

    both.running.ask(TARGETS[0], key=both.keys["free"])  # from now on it is hot
    assert both.running.run(ask) > waited / 2  # a timer may be early


def test_who_waited_for_a_key_that_was_revoked_gets_the_401(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> bytes:
        await both.look_at_keys()
        known = grown_old(both, "free", WAIT_AFTER_SECONDS + 1)
        store = both.running.app.verifier._store
        revoked = both.running.app.verifier.recall(both.keys["revoked"])
        assert isinstance(revoked, Verified)
        look_up = store.ask

        def ended(found: Found) -> Found:
            assert isinstance(found, FoundKey)
            assert found.key is not None
            assert isinstance(revoked, Verified)
            key = msgspec.structs.replace(found.key, revoked_at=revoked.key.revoked_at, revision=found.key.revision + 1)
            return msgspec.structs.replace(found, key=key)

        before = known.key
        monkeypatch.setattr(store, "ask", lambda key_id, told: look_up(key_id, lambda found: told(ended(found))))
        connection = Connection(both.direct, both.config(both.direct))
        await connection.feed(request(TARGETS[0], both.keys["free"]))
        await connection.settle()
        monkeypatch.undo()
        known.key = before
        known.checked(time.monotonic())
        return connection.end()

    assert both.running.run(ask).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(("name", "status"), [("free", b"200"), ("unknown", b"503")])
@pytest.mark.parametrize("target", [TARGETS[0], f"{FORECAST}?zip_code=99999", f"{TARGETS[0]}&in=other-words"])
def test_a_look_up_that_fails_is_not_tried_again_for_the_same_request(
    both: Both, monkeypatch: pytest.MonkeyPatch, name: str, status: bytes, target: str
) -> None:
    """Nobody waits twice; who is known waits no longer, and others hear what the router says."""
    verifier, asked = both.running.app.verifier, []

    def away(key_id: str, told: TellFound) -> None:
        asked.append(key_id)
        asyncio.get_running_loop().call_soon(told, StoreUnavailable("it hangs"))

    async def ask(gate: Gate) -> bytes:
        await both.look_at_keys()
        verifier._wrong.clear()
        grown_old(both, "free", WAIT_AFTER_SECONDS + 1)
        monkeypatch.setattr(verifier._store, "ask", away)
        asked.clear()
        connection = Connection(gate, both.config(gate))
        await connection.feed(request(target, both.keys[name]))
        await connection.settle()
        monkeypatch.undo()
        assert len(asked) == 1
        return connection.end()

    both.running.ask(target, key=both.keys["free"])
    direct, ordinary = both.running.run(lambda: ask(both.direct)), both.running.run(lambda: ask(both.ordinary))
    assert normalised(direct) == normalised(ordinary)
    assert direct[9:12] == (b"404" if name == "free" and "99999" in target else status)


@pytest.mark.parametrize(("age", "direct"), [(30.0, True), (UNKNOWN_AFTER_SECONDS + 1, False)])
def test_while_the_key_store_is_away_hot_requests_stay_hot(
    both: Both, monkeypatch: pytest.MonkeyPatch, age: float, direct: bool
) -> None:
    """As long as a key is good without being asked for."""
    if both.tier == "shared":
        return
    monkeypatch.setattr(type(both.running.app.verifier._store.redis), "is_away", property(lambda _: True))

    async def look() -> object:
        known = grown_old(both, "free", age)
        return both.running.app.verifier.good(known, time.monotonic())

    assert (both.running.run(look) is not None) is direct
