"""When an instance says for the first time that it serves."""

import asyncio

import pytest

from service.instance.first_words import FirstWords


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def words(said: list[str]) -> FirstWords:
    return FirstWords(2, lambda: said.append("ready"))


async def test_it_is_said_once_when_all_workers_serve(words: FirstWords, said: list[str]) -> None:
    seen = []
    for serving in (0, 1, 2, 1, 2):
        words.reported(serving)
        seen.append(len(said))
    assert seen == [0, 0, 1, 1, 1]


async def test_a_worker_that_cannot_start_does_not_keep_it_back(
    words: FirstWords, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it said again when that one serves after all."""
    monkeypatch.setattr("service.instance.first_words._PATIENCE_SECONDS", 0.01)
    words.reported(1)
    await asyncio.sleep(0.05)
    assert said == ["ready"]
    words.reported(2)
    assert said == ["ready"]
