"""How an instance is, in one sentence, and what happened to it."""

import msgspec
import pytest

from service.base.ipc import Sample
from service.base.telemetry import ANSWERS, REQUEST_SECONDS, REQUESTS, Telemetry
from service.inbox.status import Status
from service.operators.observer import Observer, published_at
from service.operators.overview import Overview
from service.operators.state import InstanceState
from tests.service.operators.test_state import WELL, but, instance


class Watching:
    """An observer that looks at a state in each second of a clock of its own."""

    def __init__(self) -> None:
        self.now = 10_000.0
        self.set_by = 0.0  # how far the machine's clock was set forward, or back
        self.telemetry = Telemetry()
        self.observer = Observer("3f9c20d1", "/data", lambda: self.now + self.set_by, lambda: self.now)

    def seconds(self, state: InstanceState, number: int = 1) -> Overview:
        for _ in range(number):
            self.now += 1
            self.observer.look(state, self.telemetry.snapshot())
        seen = self.observer.overview()
        assert seen is not None
        return seen

    def answer(self, tier: str, number: int, release: str = "r1") -> None:
        self.telemetry.count(ANSWERS, "forecast", tier, release, amount=number)
        self.telemetry.count(REQUESTS, "forecast", "200", "answered", amount=number)


@pytest.fixture
def watching() -> Watching:
    return Watching()


def texts(seen: Overview) -> list[str]:
    return [event.text for event in seen.events]


def test_all_is_well_since_the_instance_began(watching: Watching) -> None:
    assert watching.observer.overview() is None
    verdict = watching.seconds(instance(WELL), 5).verdict
    assert (verdict.level, verdict.sentence, verdict.since, verdict.reasons) == ("ok", "All is well.", 10_000.0, ())


def test_what_is_wrong_is_named_with_the_time_since_when(watching: Watching) -> None:
    """Each reason has its own; a figure in its text may change meanwhile. Afterwards all is well since it ended."""
    watching.seconds(instance(WELL), 5)
    began = watching.now + 1
    watching.seconds(instance(but(cache_up=False)), 3)
    held = Status(held=1, held_since=5.0)
    first = msgspec.structs.replace(instance(but(cache_up=False)), inbox=held)
    watching.seconds(first, 2)
    verdict = watching.seconds(msgspec.structs.replace(first, inbox=Status(held=2, held_since=5.0)), 2).verdict
    assert verdict.level == "degraded"
    assert verdict.sentence.startswith("Partners get answers. The shared cache is unreachable")
    assert verdict.since == began
    assert [reason.since for reason in verdict.reasons] == [began, 5.0], "a held drop knows since when it waits"
    again = watching.seconds(instance(WELL), 14).verdict
    assert (again.level, again.since) == ("ok", watching.now - 4)


def test_a_problem_of_a_second_is_not_shown_unless_requests_failed(watching: Watching) -> None:
    watching.seconds(instance(WELL), 5)
    assert watching.seconds(instance(but(cache_up=False))).verdict.level == "ok"
    assert watching.seconds(instance(WELL), 30).verdict.level == "ok"
    watching.telemetry.count(REQUESTS, "forecast", "503", "unavailable", amount=1)
    verdict = watching.seconds(instance(but(keys_up=False))).verdict
    assert verdict.sentence.startswith("Partners get answers. The key store is unreachable.")


def test_a_reason_is_shown_after_two_seconds_and_stays_ten(watching: Watching) -> None:
    watching.seconds(instance(WELL), 5)
    began = watching.now + 1
    levels = [watching.seconds(instance(but(cache_up=False))).verdict.level for _ in range(3)]
    assert levels == ["ok", "ok", "degraded"]
    (reason,) = watching.seconds(instance(WELL), 9).verdict.reasons
    assert (reason.since, reason.ended) == (began, began + 2)
    assert watching.seconds(instance(WELL)).verdict.level == "ok"


def test_a_problem_that_keeps_returning_counts_as_one(watching: Watching) -> None:
    watching.seconds(instance(WELL), 5)
    began = watching.now + 1
    for _ in range(2):
        watching.seconds(instance(but(cache_up=False)))
        seen = watching.seconds(instance(WELL), 3)
    (reason,) = seen.verdict.reasons
    assert reason.since == began
    assert seen.verdict.sentence.startswith("Partners get answers. Ended a moment ago: The shared cache")


def test_an_outage_is_shown_at_once_and_its_end_too(watching: Watching) -> None:
    watching.seconds(instance(WELL), 5)
    assert watching.seconds(instance(WELL, draining=True)).verdict.level == "unavailable"
    assert watching.seconds(instance(WELL)).verdict.level == "ok"


@pytest.mark.parametrize("state", [instance(None), instance(WELL, draining=True), instance(but(release=None))])
def test_an_instance_that_answers_no_request_says_so(watching: Watching, state: InstanceState) -> None:
    verdict = watching.seconds(state).verdict
    assert verdict.level == "unavailable"
    assert verdict.sentence.startswith("Partners get no answers. ")


def test_errors_are_shown_for_a_minute(watching: Watching) -> None:
    watching.seconds(instance(WELL), 2)
    watching.telemetry.count(REQUESTS, "forecast", "503", "unavailable", amount=4)
    assert watching.seconds(instance(WELL)).verdict.level == "ok"
    watching.telemetry.count(REQUESTS, "forecast", "503", "unavailable", amount=1)
    watching.answer("near", 95)
    verdict = watching.seconds(instance(WELL)).verdict
    assert verdict.sentence == "Partners get errors. 5.0% of the requests of the last minute failed (5xx)."
    assert watching.seconds(instance(WELL), 71).verdict.level == "ok"


def test_a_switch_shows_in_the_hit_rate_before_and_after(watching: Watching) -> None:
    watching.seconds(instance(WELL), 3)
    watching.answer("near", 9)
    watching.answer("warehouse", 1)
    assert watching.seconds(instance(WELL), 3).switch is None
    watching.seconds(instance(but(release="r2")))
    at = watching.now
    watching.answer("near", 1, "r2")
    watching.answer("warehouse", 1, "r2")
    seen = watching.seconds(instance(but(release="r2")), 3)
    assert seen.switch is not None
    assert (seen.switch.at, seen.switch.before, seen.switch.after) == (at, "r1", "r2")
    assert (seen.switch.rate_before, seen.switch.rate_after) == (0.9, 0.5)
    assert texts(seen)[0] == "release r2 is live; it was r1"


def test_a_rollback_is_an_event_with_its_author_and_release(watching: Watching) -> None:
    state = instance(but(release="r1"))
    watching.seconds(state)
    watching.answer("warehouse", 90)
    watching.seconds(state, 10)
    watching.seconds(instance(but(release="r2")))
    watching.answer("near", 3, "r2")
    watching.answer("warehouse", 1, "r2")
    watching.seconds(instance(but(release="r2")), 5)
    back = msgspec.structs.replace(state, switched_by="ops@host")
    seen = watching.seconds(back)
    assert seen.switch is not None
    assert seen.switch.rate_before == 0.75
    assert seen.events[0].kind == "rollback"
    assert texts(seen)[0] == "rolled back to release r1, by ops@host; it was r2"


def test_workers_that_all_died_come_back_with_no_switch(watching: Watching) -> None:
    for state in (instance(WELL), instance(None), instance(WELL)):
        seen = watching.seconds(state)
    assert seen.switch is None
    assert watching.observer.events.counted["release"] == 1


def test_the_cause_comes_before_what_partners_notice_of_it(watching: Watching) -> None:
    watching.seconds(instance(WELL), 2)
    watching.telemetry.count(REQUESTS, "forecast", "503", "unavailable", amount=50)
    watching.seconds(instance(WELL), 3)
    began = watching.now + 1
    verdict = watching.seconds(instance(but(release_problem="look-ups fail")), 3).verdict
    assert verdict.sentence == "Partners get errors. Look-ups fail."
    assert verdict.since == verdict.reasons[0].since == began
    assert "failed (5xx)" in verdict.reasons[-1].text
    assert verdict.reasons[-1].since < began


def test_a_reason_from_before_an_outage_keeps_its_time(watching: Watching) -> None:
    began = watching.now + 1
    watching.seconds(instance(but(cache_up=False)), 3)
    watching.seconds(instance(None), 30)
    assert watching.seconds(instance(but(cache_up=False))).verdict.since == began


def test_a_clock_that_is_set_moves_no_rate(watching: Watching) -> None:
    counted = Telemetry()
    for second in range(100):
        counted.observe(REQUEST_SECONDS, 0.0001, "forecast")
        watching.answer("near", 1)
        if second == 50:
            watching.set_by = -3600.0
        seen = watching.seconds(instance(but(telemetry=counted.snapshot())))
    (worker,) = seen.workers
    assert (round(worker.requests, 3), seen.traffic_now.requests) == (1.0, 1.0)
    assert seen.at == watching.now - 3600
    assert seen.verdict.since < seen.at


def test_many_events_of_one_kind_hide_no_other(watching: Watching) -> None:
    watching.seconds(instance(WELL))
    watching.observer.events.add("worker", "worker 7 was replaced")
    for number in range(1000):
        watching.observer.events.add("key", f"key {number} was issued")
    seen = watching.seconds(instance(WELL)).events
    assert "worker 7 was replaced" in [event.text for event in seen]
    assert len([event for event in seen if event.kind == "key"]) == 15
    assert watching.observer.events.counted["key"] == 1000


def test_workers_have_their_own_latency_and_rate(watching: Watching) -> None:
    quick, slow = Telemetry(), Telemetry()
    both = [but(telemetry=quick.snapshot()), but(telemetry=slow.snapshot())]
    watching.seconds(instance(*both))
    for _ in range(20):
        quick.observe(REQUEST_SECONDS, 0.0001, "forecast")
        slow.observe(REQUEST_SECONDS, 1.0, "forecast")
    both = [but(telemetry=quick.snapshot()), but(telemetry=slow.snapshot())]
    first, second = watching.seconds(instance(*both), 10).workers
    assert (first.requests, second.requests) == (2.0, 2.0)
    assert first.p99 is not None
    assert second.p99 is not None
    assert first.p99 < 0.001 < 0.5 < second.p99


def test_the_rate_of_a_worker_is_that_of_a_minute_however_often_somebody_looks(watching: Watching) -> None:
    worker = Telemetry()
    for _ in range(30):
        for _ in range(20):
            worker.histogram(REQUEST_SECONDS, "forecast").observe(0.001)
        state = instance(but(telemetry=worker.snapshot()))
        watching.seconds(state)
    for _ in range(200):
        watching.now += 0.01
        watching.observer.look(state, watching.telemetry.snapshot())
    (seen,) = watching.seconds(state).workers
    assert 15 < seen.requests < 20


def test_a_worker_that_does_not_respond_takes_nothing_back(watching: Watching) -> None:
    counted = Telemetry()
    counted.count(ANSWERS, "forecast", "near", "r1", amount=100)
    counted.count(REQUESTS, "forecast", "200", "answered", amount=100)
    state = instance(but(telemetry=counted.snapshot()), WELL)
    watching.seconds(instance(None, None))
    watching.seconds(state, 3)
    first, second = state.workers
    silent = msgspec.structs.replace(state, workers=(msgspec.structs.replace(first, responds=False), second))
    for seen in (watching.seconds(silent), watching.seconds(state)):
        assert (seen.latest.near, seen.hit_rate_hour.near) == (0, 100)
    assert texts(seen)[0] == "worker 100 does not respond"


def test_what_workers_saw_is_ranked(watching: Watching) -> None:
    watching.observer.board.add([Sample("refused", "192.0.2.1", "missing_api_key", 3)])
    (refused,) = watching.seconds(instance(WELL)).rankings.refused
    assert (refused.name, refused.detail, refused.count) == ("192.0.2.1", "missing_api_key", 3)


def test_what_changes_between_two_looks_is_an_event(watching: Watching) -> None:
    watching.seconds(instance(None))
    watching.seconds(instance(WELL))
    watching.seconds(instance(but(cache_up=False)))
    watching.seconds(instance(WELL))
    watching.seconds(msgspec.structs.replace(instance(WELL), inbox=Status(published=1, refused=2)))
    seen = watching.seconds(instance(WELL, draining=True))
    assert texts(seen) == [
        "the instance is stopping",
        "2 drops were refused",
        "a drop was published",
        "the shared cache is reachable again",
        "the shared cache is unreachable",
        "release r1 is live",
        "the instance started",
    ]
    counted = watching.observer.events.counted
    assert (counted["store"], counted["inbox"], counted["instance"], counted["purge"]) == (2, 2, 2, 0)


def test_the_current_release_comes_first(watching: Watching) -> None:
    ids = ("20261103T120000Z-cc", "20261002T120000Z-bb", "20260901T120000Z-aa")
    state = msgspec.structs.replace(instance(but(release=ids[1])), releases=ids)
    shown = watching.seconds(state).releases
    assert [release.id for release in shown] == [ids[1], ids[0], ids[2]]
    assert [release.current for release in shown] == [True, False, False]
    assert shown[0].published_at == 1790942400.0
    assert published_at("nothing of ours") == 0.0
    for current in ("r9", "r1"):  # in none of the releases that were listed
        state = msgspec.structs.replace(instance(but(release=current)), releases=("r8", "r7"))
        found = watching.seconds(state).releases
        assert [(one.id, one.current) for one in found] == [(current, True), ("r8", False), ("r7", False)]
