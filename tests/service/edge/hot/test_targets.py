"""What a worker remembers of requests: within its room, and only of the current release."""

import gc
import tracemalloc
import weakref

import pytest
from service.edge.hot import targets

from service.base.telemetry import REQUESTS, Telemetry
from service.cache.key import cache_key
from service.request.errors import kept_error, problem
from service.request.resolve import Targets
from service.request.response import Kept, KeptError

PATH = b"/v1/population-housing-forecast"


def kept(number: int, release: str = "r1") -> Kept:
    return Kept(cache_key(release, "forecast", f"zip:{number:05}"), "answered")


def error(number: int, release: str = "r1") -> KeptError:
    found = kept_error(problem("not_found", "", f"The release has nothing on ZIP code {number:05}."), "")
    return KeptError(release, found.status, found.code, found.headers, found.before, found.behind)


@pytest.mark.parametrize("is_error", [False, True], ids=["200s", "errors"])
@pytest.mark.parametrize("longer", [0, 900])
def test_a_target_costs_what_is_reckoned_for_it(monkeypatch: pytest.MonkeyPatch, is_error: bool, longer: int) -> None:
    """All that is kept for it, within a tenth or so: the bound is one of memory."""
    monkeypatch.setattr(targets, "MOST_TARGET_BYTES", 1 << 30)
    known, count = Targets(Telemetry()), 10_000
    known.switched("r1")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(count):
            url = b"%b?zip_code=%05d&%b" % (PATH, number, b"x" * longer)
            answer = error(number) if is_error else kept(number)
            assert known.remember(url, "forecast", answer, url.decode().partition("?")[2]) is not None
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.8 < (after - before) / known._sieve.cost < 1.05


def test_what_answers_of_the_release_before_counted_in_is_not_kept() -> None:
    telemetry = Telemetry()
    known = Targets(telemetry)
    known.switched("r1")
    target = known.remember(PATH, "forecast", kept(1), "")
    assert target is not None
    target.counts.near.observe(0.1)
    counts = weakref.ref(target.counts.near)
    del target
    known.switched("r2")
    assert known.remember(PATH, "forecast", kept(1, "r2"), "") is not None  # in place of the other
    gc.collect()
    assert counts() is None
    assert telemetry.sum(REQUESTS, outcome="answered") == 1  # what was counted stays


@pytest.mark.parametrize("of_error", [False, True])
def test_only_what_is_of_the_current_release_is_remembered(of_error: bool) -> None:
    known = Targets(Telemetry())
    known.switched("r2")
    assert known.remember(PATH, "forecast", error(1) if of_error else kept(1), "") is None
    assert known.find(b"GET %b HTTP/1.1" % PATH) is None
