"""Where the current release fails, the one before answers, if that is set, and says so."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from config.settings import Settings
from tests.support.drops import LOCATIONS, location, people, project, write_drop
from tests.support.problems import problem
from tests.support.publishing import publish
from tests.support.served import FORECAST, Served, served
from tests.support.wire import Answer
from tests.warehouse.helpers import NO_LIMITS
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog
from warehouse.schema.errors import LookupBusy, LookupFailure, LookupTimeout

GOOD = f"{FORECAST}?zip_code=36436"


def published(data: Path, drop: Path) -> str:
    outcome = publish(Catalog(data), [str(drop)], PublishOptions(limits=NO_LIMITS))
    assert outcome.manifest is not None
    assert outcome.result == "published", outcome.report
    return outcome.manifest.id


def assert_stands_in(answer: Answer, release: str) -> None:
    age = int(answer.header("age") or 0)
    assert 1 <= age < 60
    assert (answer.status, answer.header("x-data-release")) == (200, release)
    assert answer.header("cache-status") == f"forecast; hit; ttl=-{age}; detail=previous-release"


@pytest.fixture(scope="module", params=[True, False], ids=["set", "not set"])
def failing(
    request: pytest.FixtureRequest, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, str, bool]]:
    """A worker that served one release, then another whose files are lost; and the id of the first."""
    tmp_path = tmp_path_factory.mktemp("failing")
    data = tmp_path / "data"
    first = published(data, write_drop(tmp_path / "first", projects=[project("A-1")]))
    own = msgspec.structs.replace(
        settings, data_dir=str(data), previous_release_on_failure=request.param, lookups_in_memory=False
    )
    with served(own) as worker:
        assert worker.ask(GOOD).header("x-data-release") == first
        newer = [*LOCATIONS, location("36437", "Jackson", "AL")]
        drop = write_drop(tmp_path / "second", locations=newer, population=[people("36436", 2023, 9)])
        second = published(data, drop)
        worker.wait_for(second)
        for file in Catalog(data).folder(second).glob("*.parquet"):
            file.unlink()
        yield worker, first, request.param


def test_a_release_whose_files_are_lost_is_stood_in_for_by_the_one_before(failing: tuple[Served, str, bool]) -> None:
    worker, first, is_set = failing
    if not is_set:
        assert problem(worker.ask(GOOD)) == (503, "unavailable")
        return
    for _ in range(3):
        answer = worker.ask(GOOD)
        assert_stands_in(answer, first)
        assert b'"tot_population":783' in answer.body
    again = worker.ask(GOOD, if_none_match=answer.header("etag") or "")
    assert (again.status, again.header("x-data-release")) == (304, first)


def test_what_only_the_lost_release_has_is_a_503(failing: tuple[Served, str, bool]) -> None:
    for zip_code, error in (
        ("36437", (503, "unavailable")),
        ("99999", (404, "no_matching_records")),
        ("x", (400, "invalid_parameter")),
    ):
        assert problem(failing[0].ask(f"{FORECAST}?zip_code={zip_code}")) == error


@pytest.mark.parametrize("kind", [LookupBusy, LookupTimeout])
def test_a_look_up_that_is_busy_or_slow_is_not_repeated_elsewhere(
    failing: tuple[Served, str, bool], monkeypatch: pytest.MonkeyPatch, kind: type[LookupFailure]
) -> None:
    async def entries(area: str, keys: Sequence[str]) -> list[bytes]:
        raise kind("no")

    worker = failing[0]
    current = worker.app.follower.current
    assert current is not None
    monkeypatch.setattr(current.engine, "entries", entries)
    assert problem(worker.ask(GOOD)) == (503, "unavailable")


@pytest.fixture(scope="module")
def standing_in(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, str, Callable[[], object], str]]:
    """A worker that started when the files of the current release were lost; the id of the one before, what brings the
    files back, and the id of the current one."""
    tmp_path = tmp_path_factory.mktemp("standing in")
    data = tmp_path / "data"
    first = published(data, write_drop(tmp_path / "first"))
    newer = [*LOCATIONS, location("36437", "Jackson", "AL")]
    second = published(data, write_drop(tmp_path / "second", locations=newer, projects=[project("A-1")]))
    folder, aside = Catalog(data).folder(second), tmp_path / "aside"
    folder.rename(aside)
    own = msgspec.structs.replace(settings, data_dir=str(data), previous_release_on_failure=True)
    with served(own) as worker:
        yield worker, first, lambda: aside.rename(folder), second


def test_a_stand_in_says_so_until_the_current_release_is_back(
    standing_in: tuple[Served, str, Callable[[], object], str],
) -> None:
    worker, first, bring_back, second = standing_in
    for _ in range(3):
        assert_stands_in(worker.ask(GOOD), first)
    assert problem(worker.ask(f"{FORECAST}?zip_code=36437")) == (503, "unavailable")
    assert problem(worker.ask("/v1/development-projects?zip_code=36436")) == (503, "unavailable")
    assert problem(worker.ask(f"{FORECAST}?zip_code=x")) == (400, "invalid_parameter")
    bring_back()
    worker.wait_for(second)
    answer = worker.ask(GOOD)
    assert (answer.status, answer.header("age"), answer.header("x-data-release")) == (200, None, second)
    assert worker.ask(f"{FORECAST}?zip_code=36437").status == 200
