"""When an instance says for the first time that it serves."""

import pytest

from service.instance.workers import FirstWords
from tests.support.waiting import eventually


class Instance:
    """Workers that serve, and what was said of them."""

    def __init__(self) -> None:
        self.serving = self.said = 0
        self.words = FirstWords(2, lambda: self.serving, self._say)

    def report(self, serving: int) -> None:
        self.serving = serving
        self.words.reported()

    def _say(self) -> None:
        self.said += 1


async def test_it_is_said_once_when_all_workers_serve() -> None:
    instance, seen = Instance(), []
    for serving in (0, 1, 2, 1, 2):
        instance.report(serving)
        seen.append(instance.said)
    assert seen == [0, 0, 1, 1, 1]


async def test_a_worker_that_cannot_start_does_not_keep_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is it said again when that one serves after all."""
    monkeypatch.setattr("service.instance.workers._PATIENCE_SECONDS", 0.01)
    instance = Instance()
    instance.report(1)
    await eventually(lambda: instance.said == 1)
    instance.report(2)
    assert instance.said == 1


async def test_it_is_not_said_if_none_serves_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is, once another one does."""
    monkeypatch.setattr("service.instance.workers._PATIENCE_SECONDS", 0.01)
    instance = Instance()
    instance.report(1)
    instance.serving = 0  # it died, which no report tells
    await eventually(lambda: instance.words._waiting is None)
    assert instance.said == 0
    instance.report(1)
    await eventually(lambda: instance.said == 1)
