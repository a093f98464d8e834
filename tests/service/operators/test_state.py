"""Readiness: 503 only while no client could be answered; all else is degraded, with its reasons."""

import time

import msgspec
import pytest

from service.base.ipc import WorkerReport
from service.base.telemetry import Snapshot
from service.inbox.status import Status
from service.operators.reasons import Readiness, readiness
from service.operators.state import InstanceState, WorkerState

WELL = WorkerReport(
    release="r1",
    release_problem=None,
    published_at=1.0,
    illustrative=False,
    keys_up=True,
    cache_up=True,
    push_connected=True,
    can_verify=True,
    keys_problem=None,
    usage_problem=None,
    usage_waits=3,
    near_bytes=1000,
    near_entries=2,
    telemetry=Snapshot(),
)


def instance(*reports: WorkerReport | None, draining: bool = False, wanted: int | None = None) -> InstanceState:
    workers = tuple(WorkerState(100 + number, report, 1 << 20) for number, report in enumerate(reports))
    return InstanceState(workers=workers, wanted_workers=wanted or len(reports), restarts=0, draining=draining)


def but(**changes: object) -> WorkerReport:
    return msgspec.structs.replace(WELL, **changes)


@pytest.mark.parametrize(
    ("ahead", "reasons"),
    [
        (None, ()),
        (5.0, ()),
        (-5.0, ()),
        (3600.0, ("This machine's clock is 1 hour ahead of the key store's. Days and expiry follow the key store's.",)),
        (-7.2, ("This machine's clock is 7 seconds behind the key store's. Days and expiry follow the key store's.",)),
    ],
)
def test_a_clock_that_differs_from_the_key_store_s_degrades(ahead: float | None, reasons: tuple[str, ...]) -> None:
    state = msgspec.structs.replace(instance(WELL), clock_ahead=ahead)
    assert readiness(state) == Readiness("degraded" if reasons else "ready", reasons, ("r1",))


def test_an_instance_that_lacks_nothing_is_ready() -> None:
    assert readiness(instance(WELL, but(release="r2"))) == Readiness("ready", (), ("r1", "r2"))


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (instance(WELL, draining=True), "The instance is stopping."),
        (instance(None, None), "The instance is starting."),
        (instance(wanted=1), "The instance is starting."),
        (instance(but(release=None)), "No release has been published yet. Publish a drop."),
        (
            instance(but(release=None, release_problem="the manifest is damaged")),
            "No worker can open a release: the manifest is damaged.",
        ),
        (
            instance(but(keys_up=False, can_verify=False)),
            "The key store is unreachable, and no worker remembers a verified key.",
        ),
        (
            instance(but(can_answer=False, release_problem="a file is lost")),
            "No look-up works, and no answer is cached: a file is lost.",
        ),
        (instance(but(can_verify=False, keys_problem="another pepper")), "Another pepper."),
    ],
)
def test_an_instance_that_can_answer_no_key_is_unavailable(state: InstanceState, reason: str) -> None:
    found = readiness(state)
    assert (found.status, found.reasons) == ("unavailable", (reason,))


@pytest.mark.parametrize(
    ("state", "part"),
    [
        (instance(WELL, but(can_answer=False, release_problem="a file is lost")), "A file is lost."),
        (instance(WELL, but(keys_up=False)), "key store is unreachable"),
        (instance(WELL, but(cache_up=False)), "shared cache is unreachable"),
        (instance(but(cache_up=False, cache_away=("h2:6379",))), "A part of the shared cache is unreachable (h2:6379)"),
        (instance(but(cache_up=False, cache_away=tuple(f"h{at}:1" for at in range(7)))), "h4:1 and 2 more"),
        (instance(WELL, but(release_problem="cannot open r2")), "Cannot open r2."),
        (instance(WELL, but(keys_problem="another pepper")), "Another pepper."),
        (instance(WELL, but(usage_problem="usage waits")), "Usage waits."),
        (instance(WELL, but(push_connected=False, push_refused=True)), "Revocations are not pushed"),
        (instance(WELL, None), "1 of 2 workers serve"),
        (
            msgspec.structs.replace(instance(WELL, None), start_problem="signal 9"),
            "1 of 2 workers serve. The last new worker ended: Signal 9.",
        ),
        (instance(WELL, but(can_verify=False, keys_up=False)), "key store is unreachable"),
        (instance(WELL, but(release=None, release_problem="slow disk")), "Slow disk."),
    ],
)
def test_an_instance_that_can_answer_some_keys_is_degraded(state: InstanceState, part: str) -> None:
    found = readiness(state)
    assert found.status == "degraded"
    assert any(part in reason for reason in found.reasons)


def test_an_inbox_that_cannot_be_watched_is_a_reason_and_a_refusal_is_none() -> None:
    """A refused drop concerns its sender. It does not affect what is served."""
    refused = msgspec.structs.replace(instance(WELL), inbox=Status(refused=3, waiting=2, last_refusal=1.0))
    assert readiness(refused).status == "ready"
    away = msgspec.structs.replace(refused, inbox_problem="the inbox /in does not exist")
    assert readiness(away) == Readiness(
        "degraded", ("Drops are not published: the inbox /in does not exist.",), ("r1",)
    )


def test_releases_that_are_not_mirrored_are_a_reason_and_the_only_one_of_an_empty_instance() -> None:
    astray = msgspec.structs.replace(instance(WELL), mirror_problem="the store is away")
    assert readiness(astray) == Readiness("degraded", ("Releases are not mirrored: the store is away.",), ("r1",))
    empty = msgspec.structs.replace(instance(but(release=None)), mirror_problem="the store is away")
    assert readiness(empty) == Readiness("unavailable", ("No worker can open a release: the store is away.",), ())


@pytest.mark.parametrize(
    ("age", "every", "overdue"), [(None, 60.0, 0.0), (90.0, None, 0.0), (59.0, 60.0, 0.0), (90.0, 60.0, 30.0)]
)
def test_the_next_drop_is_overdue_once_the_last_is_older_than_the_rhythm(
    age: float | None, every: float | None, overdue: float
) -> None:
    state = msgspec.structs.replace(instance(WELL), last_drop_age=age, drop_every=every)
    assert state.drop_overdue == overdue
    assert readiness(state).status == ("degraded" if overdue else "ready")
    late = msgspec.structs.replace(state, last_drop_age=33 * 86_400.0, drop_every=31 * 86_400.0)
    assert readiness(late).reasons == (
        "The next drop is overdue by 2 days. The last one came 33 days ago, and FORECAST_DROP_EVERY is 31 days.",
    )


def test_a_drop_that_waits_for_approval_is_a_reason_too() -> None:
    held = Status(held=2, held_since=time.time() - 7200)
    state = msgspec.structs.replace(instance(WELL), inbox=held)
    assert readiness(state) == Readiness(
        "degraded", ("2 drops wait for approval, for up to 2 hours. `forecast extracts held` lists them.",), ("r1",)
    )


def silent(*numbers: int) -> InstanceState:
    """An instance of two workers, of which some do not respond."""
    state = instance(WELL, WELL)
    workers = [
        msgspec.structs.replace(worker, responds=number not in numbers) for number, worker in enumerate(state.workers)
    ]
    return msgspec.structs.replace(state, workers=tuple(workers))


def test_a_worker_that_does_not_respond_does_not_serve() -> None:
    """Its report is old: what it says counts no more. When none responds, a balancer should send nothing."""
    assert readiness(silent(1)) == Readiness(
        "degraded", ("Worker 101 does not respond.", "1 of 2 workers serve."), ("r1",)
    )
    assert readiness(silent(0, 1)) == Readiness(
        "unavailable", ("Worker 100 does not respond. Worker 101 does not respond.",), ()
    )


def test_a_reason_that_all_workers_have_is_said_once() -> None:
    found = readiness(instance(*(but(release_problem="cannot open r2") for _ in range(8))))
    assert found.reasons == ("Cannot open r2.",)
