"""What is counted of a request on a connection that waits for its key. test_waiting.py has what it is answered."""

import asyncio
import time

import pytest

from service.base.telemetry import REQUEST_SECONDS, REQUESTS
from service.keys.reader import FoundKey
from service.keys.verdict import Verified
from service.keys.verifier import WAIT_AFTER_SECONDS
from tests.support.connection import Connection
from tests.support.doors import TARGETS, Doors, in_worker, request
from tests.support.waiting import eventually


async def asked(doors: Doors, name: str) -> Connection:
    connection = doors.connect()
    await connection.feed(request(TARGETS[0], doors.keys[name]))
    return connection


@pytest.mark.parametrize("name", ["free", "unknown"])
@in_worker
async def test_the_wait_for_a_key_counts(doors: Doors, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    app = doors.running.app
    store, waited = app.verifier._store, 0.05
    look_up = store.find

    async def late(key_id: str) -> FoundKey:
        await asyncio.sleep(waited)
        return await look_up(key_id)

    if name == "free":
        known = app.verifier.recall(doors.keys[name])
        assert isinstance(known, Verified)
        known.checked(time.monotonic() - WAIT_AFTER_SECONDS - 1)
    app.verifier._wrong.clear()
    before = app.telemetry.histogram(REQUEST_SECONDS, "forecast").total
    monkeypatch.setattr(store, "find", late)
    await (await asked(doors, name)).settle()
    took = app.telemetry.histogram(REQUEST_SECONDS, "forecast").total - before
    assert took > waited / 2  # a timer may be early


@pytest.mark.parametrize("waits", [False, True])
@in_worker
async def test_who_asks_with_a_wrong_key_and_hangs_up_counts(doors: Doors, waits: bool) -> None:
    app = doors.running.app
    if waits:
        app.verifier._wrong.clear()
    before = app.telemetry.sum(REQUESTS, status="401")
    (await asked(doors, "unknown")).lose()
    await eventually(lambda: app.telemetry.sum(REQUESTS, status="401") > before)
    assert app.telemetry.sum(REQUESTS, status="401") == before + 1
