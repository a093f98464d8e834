"""The worker's parts as they are wired: the near cache follows the releases, and its figures are the worker's."""

from pathlib import Path

import msgspec
import pytest

from config.settings import Settings
from service.base.telemetry import LOOKUPS, NEAR_LEFT, Snapshot
from service.cache import near as near_cache
from tests.support.drops import people, write_drop
from tests.support.publishing import publish
from tests.support.served import Served, served
from tests.support.waiting import eventually
from warehouse import following
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog


def published(data: Path, figure: int) -> str:
    drop = write_drop(data.parent / f"drop-{figure}", population=[people("36436", 2023, figure)])
    outcome = publish(Catalog(data), [str(drop)], PublishOptions(attribution=("The tests",)))
    assert outcome.manifest is not None
    return outcome.manifest.id


def counted(running: Served) -> dict[tuple[str, ...], int]:
    async def figures() -> Snapshot:
        return running.app.figures()

    counters = running.run(figures).counters
    return {
        labels: value
        for name, labels, value in counters
        if name == NEAR_LEFT.name or (name == LOOKUPS.name and labels[0] == "near")
    }


def test_near_hits_and_misses_are_counted(settings: Settings) -> None:
    with served(settings) as running:
        for zip_code in ("36436", "36436", "90028", "36436", "99999"):
            running.forecast(zip_code=zip_code)
        figures = counted(running)
    assert (figures["near", "hit"], figures["near", "miss"]) == (2, 2)


def test_a_near_cache_that_is_off_counts_nothing(settings: Settings) -> None:
    with served(msgspec.structs.replace(settings, near_cache_bytes=0)) as running:
        assert [running.forecast(zip_code="36436").status for _ in range(2)] == [200, 200]
        assert counted(running) == {}


def test_the_near_cache_follows_releases(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(following, "_RETIRE_AFTER_SECONDS", 0.01)
    monkeypatch.setattr(near_cache, "_TIDY_SECONDS", 0.01)
    data = tmp_path / "data"
    published(data, 1000)
    with served(msgspec.structs.replace(settings, data_dir=str(data))) as running:
        for zip_code in ("36436", "36436", "90028"):
            assert running.forecast(zip_code=zip_code).status == 200
        near = running.app.near
        assert (near.entries, counted(running)["near", "hit"]) == (2, 1)
        second = published(data, 1001)

        async def followed() -> None:
            current = running.app.follower
            await eventually(lambda: current.current is not None and current.current.id == second)
            await eventually(lambda: near.left["retired"] == 2)

        running.run(followed)
        answers = [running.forecast(zip_code="36436") for _ in range(2)]
        assert [answer.header("x-data-release") for answer in answers] == [second] * 2
        assert "1001" in answers[1].body.decode()
        assert answers[1].header("cache-status") == "forecast; hit; detail=near"
        assert near.entries == 1
        assert counted(running)["retired",] == 2
