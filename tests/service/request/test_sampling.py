"""Which requests are looked at: for the rankings, and for the log."""

from random import Random

import msgspec
import pytest

from service.base import tracing
from service.base.ipc import AccessLogEntry, Sample
from service.request.access_log import Made
from service.request.sampling import MOST_NAMES, Samples
from tests.service.request.test_access_log import ANSWERED, FAILED
from tests.support.watching import KeptTracer, Logged


def answer(watch: Logged, requests: list[AccessLogEntry], *, slow: bool = False) -> int:
    """Answers, as the recorder counts down; returns how many were looked at."""
    looked = 0
    for request in requests:
        if watch.skip > 0 and not slow:
            watch.skip -= 1
        else:
            looked += 1
            watch.sample_in_turn(lambda request=request: request, slow=slow)  # type: ignore[misc]
    return looked


def have_passed(watch: Logged, number: int) -> None:
    """So many requests came since the last report, which is made now."""
    answer(watch, [ANSWERED] * number)
    watch.adapt()
    answer(watch, [ANSWERED])


def counted(samples: list[Sample], kind: str) -> dict[str, int]:
    return {seen.name: seen.count for seen in samples if seen.kind == kind}


def test_few_answers_are_all_sighted() -> None:
    watch = Logged()
    assert answer(watch, [ANSWERED] * 10) == 10
    seen = watch.samples.take()
    assert counted(seen, "query") == {"forecast zip_code=90210": 10}
    assert counted(seen, "key") == {"k": 10}
    assert watch.samples.take() == []


@pytest.mark.parametrize("period", [1, 7, 100])
def test_of_many_answers_a_sample_stands_for_all(period: int) -> None:
    watch = Logged(uniform=Random(3).random)
    have_passed(watch, 2500)
    requests = [msgspec.structs.replace(ANSWERED, query=f"q{number % period}") for number in range(100_000)]
    watch.samples.take()
    looked = answer(watch, requests)
    assert 900 < looked < 1100
    seen = counted(watch.samples.take(), "query")
    assert 90_000 < sum(seen.values()) < 110_000
    assert len(seen) == period


def test_the_log_has_its_own_sample() -> None:
    watch = Logged(share=0.1, uniform=Random(5).random)
    have_passed(watch, 25_000)
    watch.lines.clear()
    answer(watch, [ANSWERED] * 20_000)
    assert 1800 < len(watch.lines) < 2200
    watch.sample(1.0)
    watch.lines.clear()
    answer(watch, [ANSWERED] * 500)
    assert len(watch.lines) == 500
    watch.sample(0.0)
    watch.lines.clear()
    answer(watch, [ANSWERED] * 500)
    assert watch.lines == []


def test_a_slow_answer_is_logged_whatever_the_sample() -> None:
    for errors, lines in ((True, 1), (False, 0)):
        watch = Logged(errors=errors, slow=0.5)
        have_passed(watch, 25_000)
        answer(watch, [ANSWERED] * 100)
        watch.lines.clear()
        answer(watch, [ANSWERED], slow=True)
        assert len(watch.lines) == lines
        watch.sample_now(ANSWERED, 0.6)
        watch.sample_now(ANSWERED, 0.4)
        assert len(watch.lines) == 2 * lines


def test_traces_have_their_own_sample() -> None:
    tracer = KeptTracer(0.1)
    watch = Logged(uniform=Random(7).random, tracer=tracer)
    traced = 0
    for _ in range(5_000):
        trace = watch.begin([], 0.0)
        traced += trace is not None
        watch.sample_now(FAILED, 0.001, trace)
    assert 400 < traced == len(tracer.recorded) < 600
    tracing.enter(None)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_what_is_logged_and_traced_says_so(share: float) -> None:
    tracer = KeptTracer(share)
    watch = Logged(share=1.0, tracer=tracer)
    for request in (ANSWERED, FAILED):
        watch.sample_now(request, 0.001, watch.begin([(b"host", b"x")], 0.0))
    tracing.enter(None)
    ids = [trace.trace_id for trace, _ in tracer.recorded]
    assert [line.trace_id for line in watch.lines] == (ids if share else [None, None])
    assert len(ids) == 2 * share


def test_out_of_turn_every_error_is_logged_and_everything_sighted() -> None:
    watch = Logged()
    for request in (
        msgspec.structs.replace(ANSWERED, tier="warehouse"),
        msgspec.structs.replace(FAILED, status=404, outcome="no_matching_records", query="zip_code=00000"),
        msgspec.structs.replace(FAILED, status=429, outcome="rate_limited", partner="acme"),
        msgspec.structs.replace(FAILED, status=401, outcome="missing_api_key", key_id=None, address="192.0.2.1"),
        msgspec.structs.replace(FAILED, status=401, outcome="revoked_api_key"),
    ):
        watch.sample_now(request, 0.001)
    assert [line.status for line in watch.lines] == [404, 429, 401, 401]
    seen = watch.samples.take()
    assert counted(seen, "missed") == {"forecast zip_code=90210": 1}
    assert counted(seen, "unknown") == {"forecast zip_code=00000": 1}
    assert [(one.name, one.detail) for one in seen if one.kind == "limited"] == [("k", "acme")]
    assert [(one.name, one.detail) for one in seen if one.kind == "refused"] == [
        ("192.0.2.1", "missing_api_key"),
        ("k", "revoked_api_key"),
    ]


def test_made_up_names_cannot_fill_the_memory() -> None:
    samples = Samples()
    for number in range(10 * MOST_NAMES):
        samples.add("unknown", f"{number}" + "x" * 10_000)
    seen = samples.take()
    assert len(seen) == MOST_NAMES
    assert max(len(one.name) for one in seen) == 120


def test_the_requests_of_a_partner_are_counted_with_their_statuses_tiers_and_times() -> None:
    watch = Logged()
    near, failed = (msgspec.structs.replace(one, partner="acme", key_id="k") for one in (ANSWERED, FAILED))
    near = msgspec.structs.replace(near, tier="near")
    missed = msgspec.structs.replace(near, tier="warehouse", milliseconds=40.0)
    answer(watch, [near] * 3)
    watch.sample_now(missed, 0.04)
    for name in ("a", "b"):
        watch.samples.add_error("k", Made(msgspec.structs.replace(failed, outcome=name)))
    (partner,) = watch.samples.take_partners()
    assert partner.partner == "acme"
    assert (partner.statuses, partner.cached, partner.answers) == ({200: 4}, 3, 4)
    assert sum(partner.seconds.counts) == 4
    assert partner.last_error == f"{failed.time} {failed.status} b"
    assert partner.keys == {"k"}
    assert watch.samples.take_partners() == []
    answer(watch, [msgspec.structs.replace(ANSWERED, partner=None, key_id=None)])
    assert watch.samples.take_partners() == []
