"""What operators see of an instance's workers."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

from config.settings import Settings
from service.instance.silence import Silence, ThreadSample
from service.instance.view import InstanceView, worker_state
from service.operators.reasons import readiness
from service.operators.state import InstanceState
from tests.service.operators.test_state import WELL
from tests.support.waiting import eventually, settled


def test_operators_hear_of_a_worker_that_does_not_respond_before_it_is_replaced() -> None:
    parts = {"pid": 7, "report": WELL, "started_at": 1.0, "leaving": False}
    worker: Any = SimpleNamespace(silence=Silence(), resident_bytes=lambda: 1, **parts)
    assert worker_state(worker).state == "serving"
    for look in range(8):
        worker.silence.look(look / 4, ThreadSample("T", 1, 2, 3))
    assert not worker.silence.hangs
    found = worker_state(worker)
    assert found.state == "hanging"
    instance = InstanceState(workers=(found,), wanted_workers=1, restarts=0, draining=False)
    assert readiness(instance).reasons == ("Worker 7 does not respond.",)


async def test_a_look_at_the_disk_that_began_before_a_request_does_not_answer_it(settings: Settings) -> None:
    """The disk may have become full since: the request waits for a look of its own."""
    looks: list[threading.Event] = []

    def look() -> None:
        looks.append(threading.Event())
        looks[-1].wait(60)

    parts: Any = SimpleNamespace()
    view = InstanceView("an-instance", settings, parts, parts, parts, lambda: None)
    view._servers = SimpleNamespace(owned=True, look_at_disk=look)  # type: ignore[assignment]
    first = asyncio.create_task(view.look_at_disk())
    await eventually(lambda: len(looks) == 1)
    second = asyncio.create_task(view.look_at_disk())
    await settled()
    looks[0].set()
    await first
    await eventually(lambda: len(looks) == 2)
    assert not second.done()
    looks[1].set()
    await second
