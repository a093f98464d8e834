"""What operators see of an instance's workers."""

from types import SimpleNamespace
from typing import Any

from service.instance.silence import Sample, Silence
from service.instance.view import worker_state
from service.operators.state import InstanceState, readiness
from tests.service.operators.test_state import WELL


def test_operators_hear_of_a_worker_that_does_not_respond_before_it_is_replaced() -> None:
    """As soon as its silence is long."""
    parts = {"pid": 7, "report": WELL, "started_at": 1.0, "leaving": False}
    worker: Any = SimpleNamespace(silence=Silence(), resident_bytes=lambda: 1, **parts)
    assert worker_state(worker).state == "serving"
    for look in range(8):
        worker.silence.look(look / 4, Sample("T", 1, 2, 3))
    assert not worker.silence.hangs
    found = worker_state(worker)
    assert found.state == "hanging"
    instance = InstanceState(workers=(found,), wanted_workers=1, restarts=0, draining=False)
    assert readiness(instance).reasons == ("worker 7 does not respond",)
