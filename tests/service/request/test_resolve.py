"""Which entry of which release a request asks for, and what is kept of that by request line."""

import tracemalloc

import pytest

from service.request import errors
from service.request.errors import ApiError
from service.request.request import Request
from service.request.resolve import DISPATCH, Resolver
from service.request.response import Response
from tests.support.pipeline import PATH, Steps, refused, request_for


def resolved(steps: Steps, query: bytes = b"id=1") -> tuple[Response | None, Request]:
    request = steps.begin(request_for(query=query))
    return steps.resolver.resolve(request), request


def failed(steps: Steps, query: bytes) -> Response:
    return refused(resolved(steps, query)[0])


def test_a_line_that_was_resolved_is_not_read_again(steps: Steps) -> None:
    _, first = resolved(steps)
    _, again = resolved(steps)
    assert again.target is first.target is not None
    assert steps.resolved == 1
    steps.switch("r2")
    _, later = resolved(steps)
    assert later.target is not None
    assert (later.target.release, steps.resolved) == ("r2", 2)
    assert later.target.digest != first.target.digest


def test_other_words_for_the_same_query_have_the_same_entry(steps: Steps) -> None:
    _, plain = resolved(steps)
    _, other = resolved(steps, b"id=01")
    assert plain.target is not None
    assert other.target is not None
    assert plain.target.digest == other.target.digest
    assert (plain.target.headers, other.target.headers) == ((), ((b"x-matched-city", b"A"),))


@pytest.mark.parametrize(("query", "code"), [(b"id=x", "invalid_parameter"), (b"id=0", "no_matching_records")])
def test_an_error_of_a_line_is_kept_until_the_release_changes(steps: Steps, query: bytes, code: str) -> None:
    """A newer release may have it."""
    first = failed(steps, query)
    assert (first.outcome, failed(steps, query) is first, steps.resolved) == (code, True, 1)
    steps.switch("r2")
    assert (failed(steps, query).outcome, steps.resolved) == (code, 2)


def test_a_request_that_began_before_a_switch_is_resolved_in_the_new_release(steps: Steps) -> None:
    resolved(steps)
    request = steps.begin(request_for())
    steps.switch("r2")
    assert steps.resolver.resolve(request) is None
    assert request.target is not None
    assert request.target.release == "r2"


def test_a_target_of_a_release_that_is_no_longer_current_is_not_kept(steps: Steps) -> None:
    steps.resolver.switch("r2")
    resolved(steps)
    assert steps.resolver.find(request_for().line) is None


def test_without_a_release_the_answer_says_why(steps: Steps) -> None:
    steps.follower.current = None
    assert failed(steps, b"id=1").outcome == "unavailable"
    steps.follower.unpublished = True
    assert b"No data has been published yet" in failed(steps, b"id=1").body
    steps.switch("r1")
    assert resolved(steps)[0] is None


def test_a_release_that_stands_in_says_nothing_of_what_it_lacks(steps: Steps) -> None:
    steps.follower.stands_in_since = 0.0
    outcomes = []
    for query in (b"id=0", b"id=x", b"id=1"):
        response, request = resolved(steps, query)
        outcomes.append(response.outcome if response is not None else None)
        assert steps.resolver.find(request.line) is None
    assert outcomes == ["unavailable", "invalid_parameter", None]


def test_a_request_for_another_endpoint_is_the_application_s(steps: Steps) -> None:
    request = steps.begin(request_for("/v1/"))
    assert steps.resolver.resolve(request) is DISPATCH
    assert request.is_checked
    with pytest.raises(LookupError):
        steps.resolver.resolve(request)


def test_a_request_without_a_plain_line_is_resolved_each_time(steps: Steps) -> None:
    for _ in range(2):
        request = request_for()
        request.line = b""
        steps.begin(request)
        assert steps.resolver.resolve(request) is None
    assert steps.resolved == 2


def test_lines_are_bounded(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.request.resolve.MOST_TARGETS", 3)
    steps.resolver = Resolver(steps.follower)
    steps.resolver.switch("r1")
    lines = [resolved(steps, b"id=%d" % number)[1].line for number in range(1, 10)]
    assert [line for line in lines if steps.resolver.find(line) is not None] == lines[-3:]


def test_a_query_is_resolved_in_any_release_that_may_answer(steps: Steps) -> None:
    request = steps.begin(request_for(query=b"id=2"))
    release = type("Release", (), {"id": "r0"})()
    resolution = steps.resolver.in_release(request, release)
    assert (resolution.key.release, resolution.query.query) == ("r0", "id=2")
    with pytest.raises(ApiError):
        steps.resolver.in_release(steps.begin(request_for(PATH, b"id=0")), release)


@pytest.mark.parametrize("longer", [0, 900])
@pytest.mark.parametrize("is_error", [False, True], ids=["200s", "errors"])
def test_lines_are_bounded_in_memory(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, is_error: bool, longer: int
) -> None:
    """All that is kept for them, within a tenth or so."""
    room = 1 << 20
    monkeypatch.setattr("service.request.resolve.MOST_TARGET_BYTES", room)
    resolver = Resolver(steps.follower)
    resolver.switch("r1")
    tracemalloc.start()
    try:
        for number in range(4_800):
            query = b"id=%b%d" % (b"x" if is_error else b"", number + 1)
            request = steps.begin(request_for(PATH + "x" * longer, query))
            request.route = steps.begin(request_for()).route
            resolver.resolve(request)
        errors.error_response.cache_clear()  # it has a bound of its own
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.7 < kept / room < 1.1
