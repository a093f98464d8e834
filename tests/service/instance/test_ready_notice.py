"""Tests of the notice that an instance serves."""

import pytest

from service.instance.workers import ReadyNotice
from tests.support.waiting import eventually


class Instance:
    """Counts of serving workers and of notices."""

    def __init__(self) -> None:
        self.serving = self.sent = 0
        self.notice = ReadyNotice(2, lambda: self.serving, self._send)

    def report(self, serving: int) -> None:
        self.serving = serving
        self.notice.reported()

    def _send(self) -> None:
        self.sent += 1


async def test_it_is_sent_once_when_all_workers_serve() -> None:
    instance, seen = Instance(), []
    for serving in (0, 1, 2, 1, 2):
        instance.report(serving)
        seen.append(instance.sent)
    assert seen == [0, 0, 1, 1, 1]


async def test_a_worker_that_cannot_start_does_not_prevent_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.instance.workers._PATIENCE_SECONDS", 0.01)
    instance = Instance()
    instance.report(1)
    await eventually(lambda: instance.sent == 1)
    instance.report(2)
    assert instance.sent == 1


async def test_it_is_not_sent_if_none_serves_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.instance.workers._PATIENCE_SECONDS", 0.01)
    instance = Instance()
    instance.report(1)
    instance.serving = 0  # it died, which no report shows
    await eventually(lambda: instance.notice._waiting is None)
    assert instance.sent == 0
    instance.report(1)
    await eventually(lambda: instance.sent == 1)
