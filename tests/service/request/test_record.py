"""What is counted and logged of a request that was answered."""

from typing import Any

import msgspec
import pytest

from service.base.telemetry import ANSWERS, REQUESTS, TEST_REQUESTS
from service.base.terms import Terms
from service.cache.entry import CacheEntry, Found
from service.request.record import AccessRecord
from service.request.request import Counted, Request
from service.request.response import Response
from tests.support.pipeline import KEY, PATH, TEST_KEY, Steps, key_with, request_for


async def answered(steps: Steps, request: Request) -> Response:
    response = await steps.answer(request)
    steps.pipeline.finish(request, response, b"")
    return response


def counted(steps: Steps, name: str) -> dict[tuple[str, ...], int]:
    return {labels: value for family, labels, value in steps.telemetry.snapshot().counters if family == name}


async def test_requests_are_counted_by_area_status_and_outcome(steps: Steps) -> None:
    for request in (
        request_for(),
        request_for(),
        request_for(PATH + "/"),
        request_for(query=b"id=0"),
        request_for(query=b"id=0"),
        request_for("/nowhere/phf"),
        request_for("/elsewhere", key=None),
    ):
        await answered(steps, request)
    assert counted(steps, REQUESTS.name) == {
        ("forecast", "200", "answered"): 3,
        ("forecast", "404", "no_matching_records"): 2,
        ("none", "404", "not_found"): 1,
        ("none", "401", "missing_api_key"): 1,
    }
    assert counted(steps, ANSWERS.name) == {("forecast", "warehouse", "r1"): 1, ("forecast", "near", "r1"): 2}


async def test_answers_are_counted_for_the_release_that_they_are_of(steps: Steps) -> None:
    await answered(steps, request_for())
    steps.switch("r2")
    await answered(steps, request_for())
    assert counted(steps, ANSWERS.name) == {("forecast", "warehouse", "r1"): 1, ("forecast", "warehouse", "r2"): 1}


async def test_a_key_s_usage_has_what_became_of_its_requests(steps: Steps) -> None:
    for query in (b"id=1", b"id=1", b"id=1", b"id=0", b"id=0", b"id=x"):
        await answered(steps, request_for(query=query))
    index = steps.begin(request_for("/v1/"))
    assert await steps.pipeline.check(index) is None
    steps.recorder.record(index, 200, "answered", 0.01)
    cells = {(area, outcome): number for _, area, outcome, number in steps.usage.counters.to_send_of("a").cells}
    assert cells == {("forecast", "answered"): 3, ("forecast", "not_found"): 2, ("forecast", "rejected"): 1}


async def test_a_request_that_counts_as_several_is_one_request_and_so_many_answers(steps: Steps) -> None:
    request = steps.begin(request_for())
    assert await steps.pipeline.check(request) is None
    request.found = Found(CacheEntry.of(b"{}"), "near", "r1")
    request.counted = (Counted(2, 200, "answered", "near"), Counted(1, 404, "no_matching_records", None))
    steps.recorder.record(request, 200, "answered", 0.01)
    assert counted(steps, REQUESTS.name) == {("forecast", "200", "answered"): 1}
    assert counted(steps, ANSWERS.name) == {("forecast", "near", "r1"): 2}
    cells = {outcome: number for _, _, outcome, number in steps.usage.counters.to_send_of("a").cells}
    assert cells == {"answered": 2, "not_found": 1}


async def test_a_line_has_what_was_asked_in_canonical_form(steps: Steps) -> None:
    await answered(steps, request_for(query=b"id=007"))
    await answered(steps, request_for(query=b"id=x"))
    first, second = steps.watch.lines
    assert (first.status, first.query, first.tier, first.release) == (200, "id=7", "warehouse", "r1")
    assert (first.request_id, first.key_id, first.partner, first.address) == ("r1", "a", "acme", "192.0.2.1")
    assert (second.status, second.query, second.tier, second.release) == (400, "id=x", None, None)


@pytest.mark.parametrize("query", [b"key=phf%5flive_abc_def", b"key=ph%66_live_abc_def", b"%70hf_live_abc_def",
                                   b"api_key=phf_live_abc_def"])  # fmt: skip
async def test_a_key_in_an_address_is_masked(steps: Steps, query: bytes) -> None:
    """Also one that shows when the address is decoded: a reader of the log could do that."""
    await answered(steps, request_for("/phf_live_abc_def", query))
    (line,) = steps.watch.lines
    assert (line.query or "").endswith("phf_live_********")
    assert line.path == "/phf_live_********"


async def test_a_line_is_short_whatever_was_asked(steps: Steps) -> None:
    """Thousands are kept: callers must not fill the memory with long addresses."""
    await answered(steps, request_for("/" + "e" * 7000, b"x" * 7000, key=None))
    (line,) = steps.watch.lines
    assert len(msgspec.json.encode(line)) < 1000


async def test_whatever_ends_with_an_error_is_kept_for_a_good_key(steps: Steps) -> None:
    for request in (
        request_for(),
        request_for(query=b"id=x"),
        request_for(query=b"id=x"),
        request_for("/nowhere"),
        request_for("/nowhere", key=None),
        request_for("/nowhere", key="another"),
        request_for("/nowhere", key=TEST_KEY),
    ):
        await answered(steps, request)
    assert [(error.status, error.key_id) for error in steps.errors] == [(400, "a"), (400, "a"), (404, "a")]


async def test_requests_of_test_keys_are_counted_apart(steps: Steps) -> None:
    """A 503 on purpose raises no alert."""
    request = steps.begin(request_for(key=TEST_KEY))
    assert await steps.pipeline.check(request) is None
    steps.recorder.record(request, 503, "unavailable", 0.01)
    assert counted(steps, REQUESTS.name) == {}
    assert counted(steps, TEST_REQUESTS.name) == {("503", "unavailable"): 1}
    (line,) = steps.watch.lines
    assert (line.test, line.key_id) == (True, "t")
    assert steps.usage.counters.waits == 0


async def test_what_is_refused_at_the_connection_is_counted_and_logged_as_other_requests_are(steps: Steps) -> None:
    assert steps.recorder.refusal("uri_too_long", b"r1", "192.0.2.1").status == 414
    (line,) = steps.watch.lines
    assert (line.status, line.outcome, line.request_id, line.address) == (414, "uri_too_long", "r1", "192.0.2.1")
    assert steps.telemetry.sum(REQUESTS, status="414") == 1


async def test_a_record_outlives_what_a_request_becomes(steps: Steps) -> None:
    request = request_for(query=b"id=x")
    await answered(steps, request)
    make = AccessRecord.of(request, 400, "invalid_parameter", 0.25)
    changed: Any = request
    changed.sent_path, changed.key, changed.request_id = "/other", None, b"r2"
    line = make()
    assert (line.path, line.key_id, line.request_id, line.milliseconds) == (PATH, "a", "r1", 250.0)
    assert KEY not in str(line)


async def test_an_error_has_the_query_as_it_was_sent_however_often(steps: Steps) -> None:
    await answered(steps, request_for(query=b"id=007"))
    steps.keys.keys[KEY] = key_with(Terms(areas=("projects",)))
    steps.keys.good_for = 0.0
    for _ in range(2):
        request = request_for(query=b"id=007", key=f" {KEY}")
        assert (await answered(steps, request)).status == 403
    assert [error.query for error in steps.errors] == ["id=007"] * 2


def test_of_a_method_that_is_none_no_more_is_shown_than_the_longest_one_takes() -> None:
    """Half of a key could be sent as one."""
    request = request_for(method="x" * 32)
    shown = AccessRecord.of(request, 405, "method_not_allowed", 0.01)().method
    assert shown == "x" * len("UPDATEREDIRECTREF")
