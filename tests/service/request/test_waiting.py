"""Requests that wait: for a quota, a token, a look-up; each once, however many wait, and whatever happens meanwhile."""

import asyncio
import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.base.terms import Quota, Rate, Terms
from service.request.request import Request
from tests.support.pipeline import BODY, KEY, Steps, key_with, request_for
from tests.support.waiting import eventually
from warehouse.following import PreviousRelease
from warehouse.schema.errors import LookupFailure

MANY = 200


class Answered(msgspec.Struct, frozen=True):
    status: int
    head: str
    body: bytes

    @property
    def left(self) -> int | None:
        found = re.search(r'"quota";r=(\d+);', self.head)
        return int(found[1]) if found is not None else None

    @property
    def warning(self) -> str | None:
        found = re.search(r"\r\nx-quota-warning: ([^\r]*)", self.head)
        return found[1] if found is not None else None


async def ask(steps: Steps, request: Request) -> Answered:
    response = await steps.answer(request)
    head, body = steps.pipeline.finish(request, response, b"")
    steps.admission.end(request)
    return Answered(response.status, head.decode(), body)


async def crowd(steps: Steps, number: int = MANY, query: bytes = b"id=1") -> list[Answered]:
    return await asyncio.gather(*(ask(steps, request_for(query=query)) for _ in range(number)))


def limit(steps: Steps, terms: Terms) -> None:
    steps.keys.keys[KEY] = key_with(terms)


async def fail() -> bytes:
    raise LookupFailure("a file is damaged")


def statuses(answers: list[Answered]) -> dict[int, int]:
    return dict(Counter(answer.status for answer in answers))


async def test_as_many_pass_as_are_left_of_a_quota_however_many_wait(steps: Steps) -> None:
    limit(steps, Terms(quota=Quota(100, "month", warn_at=1.0)))
    answers: list[Answered] = []
    for _ in range(4):
        answers += await crowd(steps, 50)
        await steps.usage.flusher.flush()
    found = statuses(answers)
    assert set(found) == {200, 429}
    assert found[200] == 100
    assert all(b'"quota_exhausted"' in answer.body for answer in answers if answer.status == 429)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 10),
    st.integers(1, 100),
    st.lists(st.sampled_from([b"id=1", b"id=2", b"id=0", b"id=x"]), max_size=14),
)
def test_a_warning_begins_with_the_answer_that_uses_the_share(size: int, share: int, queries: list[bytes]) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            steps = Steps(Path(folder))
            limit(steps, Terms(quota=Quota(size, "day", warn_at=share / 100)))
            used = 0
            for query in queries:
                answer = await ask(steps, request_for(query=query))
                assert answer.status == (429 if used == size else {b"id=0": 404, b"id=x": 400}.get(query, 200))
                used += answer.status == 200
                assert answer.left == size - used
                warned = answer.status != 429 and 100 * used >= share * size
                assert answer.warning == (f"{used} of {size} used this day" if warned else None)

    asyncio.run(run())


async def test_a_refused_request_costs_no_look_up(steps: Steps) -> None:
    limit(steps, Terms(rate=Rate(1, 86_400, 1)))
    answers = await asyncio.gather(*(ask(steps, request_for(query=b"id=%d" % number)) for number in range(1, 6)))
    assert statuses(list(answers)) == {200: 1, 429: 4}
    assert all("retry-after: " in answer.head for answer in answers if answer.status == 429)
    assert (steps.resolved, steps.filled) == (1, 1)


async def test_a_request_takes_one_token_however_often_it_waits(steps: Steps) -> None:
    limit(steps, Terms(rate=Rate(3, 86_400, 3)))
    steps.fill = fail
    assert [(await ask(steps, request_for())).status for _ in range(4)] == [503, 503, 503, 429]


class Held:
    """A warehouse that answers when it is told to."""

    def __init__(self, steps: Steps) -> None:
        self.begun = 0
        self.go = asyncio.Event()
        self.error: Exception | None = None
        steps.fill = self

    async def __call__(self) -> bytes:
        self.begun += 1
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return BODY


@pytest.mark.parametrize("is_traced", [False, True], ids=["plain", "checked"])
async def test_a_request_that_awaits_its_look_up_holds_its_part_of_the_quota(steps: Steps, is_traced: bool) -> None:
    """Whether it is used is unknown until it is answered: meanwhile others get a 503."""
    limit(steps, Terms(quota=Quota(1, "day")))
    held = Held(steps)
    first = request_for()
    if is_traced:  # as an application checks it
        steps.begin(first)
        assert await steps.pipeline.check(first) is None
    else:
        asking = asyncio.create_task(ask(steps, first))
        await eventually(lambda: held.begun == 1)
    waited = await ask(steps, request_for(query=b"id=2"))
    assert (waited.status, b"unknown at the moment" in waited.body) == (503, True)
    if is_traced:
        steps.admission.count(first, 200, "answered")
        steps.admission.end(first)
    else:
        held.go.set()
        assert (await asking).status == 200
    assert (await ask(steps, request_for(query=b"id=2"))).status == 429


async def test_a_request_that_ends_without_an_answer_gives_its_part_back(steps: Steps) -> None:
    limit(steps, Terms(quota=Quota(1, "day")))
    steps.fill = fail
    assert (await ask(steps, request_for())).status == 503
    steps.fill = steps._fill
    assert (await ask(steps, request_for())).status == 200


async def test_requests_for_the_same_share_a_look_up(steps: Steps) -> None:
    held = Held(steps)
    asking = [asyncio.create_task(crowd(steps, 20, query)) for query in (b"id=1", b"id=01")]
    await eventually(lambda: held.begun == 1)
    held.go.set()
    for answers in await asyncio.gather(*asking):
        assert {(answer.status, answer.body) for answer in answers} == {(200, BODY)}
    assert held.begun == 1
    assert steps.usage.counters.waits == 40


async def test_an_answer_names_the_release_in_which_it_was_looked_up(steps: Steps) -> None:
    held = Held(steps)
    asking = asyncio.create_task(ask(steps, request_for()))
    await eventually(lambda: held.begun == 1)
    steps.switch("r2")
    held.go.set()
    assert "x-data-release: r1" in (await asking).head
    assert "x-data-release: r2" in (await ask(steps, request_for())).head


async def test_a_request_that_waited_for_its_key_is_answered_from_the_release_of_then(steps: Steps) -> None:
    """The line had a target in the older release."""
    await ask(steps, request_for())
    steps.keys.waits, steps.keys.good_for = True, 0.0
    request = steps.begin(request_for(key=f" {KEY}"))
    waiting = steps.pipeline.run(request)
    assert isinstance(waiting, asyncio.Task)
    steps.switch("r2")
    assert (b"x-data-release", b"r2") in (await waiting).headers


async def test_every_miss_is_in_the_rankings(steps: Steps) -> None:
    for number in range(1, 20):
        for _ in range(10):
            await ask(steps, request_for(query=b"id=%d" % number))
    missed = [one for one in steps.watch.samples.take() if one.kind == "missed"]
    assert sum(one.count for one in missed) == 19


async def test_a_failed_look_up_is_reported(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert steps.look_ups.problem is None
    steps.fill = fail
    monkeypatch.setattr("service.request.look_up._PROBLEM_SECONDS", 0.0)
    assert (await ask(steps, request_for())).status == 503
    assert steps.look_ups.problem is None
    monkeypatch.setattr("service.request.look_up._PROBLEM_SECONDS", 60.0)
    caplog.clear()
    for _ in range(3):
        assert (await ask(steps, request_for())).status == 503
    assert steps.look_ups.problem == "look-ups in release r1 fail: a file is damaged"
    assert [record.levelname for record in caplog.records].count("ERROR") == 1


async def test_a_look_up_of_an_older_release_that_fails_says_nothing_of_the_current_one(steps: Steps) -> None:
    """As where a mended release is published while look-ups in the damaged one hang."""
    held = Held(steps)
    held.error = LookupFailure("a file of the first release is damaged")
    asking = asyncio.create_task(ask(steps, request_for()))
    await eventually(lambda: held.begun == 1)
    steps.switch("r2")
    held.go.set()
    assert (await asking).status == 503
    assert steps.look_ups.problem is None
    held.error = None
    assert (await ask(steps, request_for())).status == 200


async def test_an_answer_of_the_previous_release_counts_as_what_it_is_there(steps: Steps) -> None:
    bodies = [b"", BODY]

    async def fill() -> bytes:
        body = bodies.pop(0)
        if not body:
            raise LookupFailure("the current one is damaged")
        return body

    steps.switch("r2")
    steps.fill, steps.empty = fill, {"r1"}
    steps.follower.previous = PreviousRelease(cast("Any", SimpleNamespace(id="r1")), time.monotonic())
    request = request_for()
    response = await steps.answer(request)
    assert request.found is not None
    assert (response.status, response.outcome, request.found.release) == (200, "answered_empty", "r1")


async def test_what_is_near_of_the_previous_release_is_not_looked_up_again(steps: Steps) -> None:
    """So an answer needs neither Redis nor the warehouse while look-ups in the current release fail."""
    await steps.answer(request_for())
    steps.switch("r2")
    steps.fill = fail
    steps.follower.previous = PreviousRelease(cast("Any", SimpleNamespace(id="r1")), time.monotonic())
    request, missed = request_for(), steps.near.misses
    response = await steps.answer(request)
    assert request.found is not None
    assert (response.status, response.body, request.found.tier) == (200, BODY, "previous")
    assert steps.near.misses == missed + 1, "of the current release alone"


async def test_a_look_up_that_works_ends_the_doubt(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.request.lookup_watch.DOUBT_SECONDS", 0.0)
    monkeypatch.setattr("service.request.lookup_watch.QUIET_SECONDS", 0.0)
    held = Held(steps)
    held.go.set()
    held.error = LookupFailure("damaged")
    assert (await ask(steps, request_for())).status == 503
    assert not steps.watch_of_look_ups.can_answer
    held.error = None
    assert (await ask(steps, request_for(query=b"id=2"))).status == 200
    assert steps.watch_of_look_ups.can_answer
