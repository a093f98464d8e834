"""The current release is followed; one that cannot be opened changes nothing."""

import logging
import shutil
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.support.drops import people, write_drop
from tests.support.waiting import eventually
from tests.warehouse.helpers import flip_byte, open_engine, publish
from warehouse import following
from warehouse.areas import forecast
from warehouse.following import OpenRelease, ReleaseFollower
from warehouse.places.match import Match
from warehouse.releases.catalog import Catalog
from warehouse.releases.changes import roll_back
from warehouse.schema.errors import LookupFailure

Publish = Callable[[int], str]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests wait for what happens; nothing depends on how soon."""
    monkeypatch.setattr(following, "POLL_SECONDS", 0.01)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Releases to copy, by the number of people of 36436."""
    folder = tmp_path_factory.mktemp("published")
    catalog, made = Catalog(folder / "data"), {}
    for figure in (5, 6, 7):
        manifest = publish(
            catalog, write_drop(folder / str(figure), population=[people("36436", 2023, figure)])
        ).manifest
        assert manifest is not None
        made[figure] = catalog.folder(manifest.id)
    return made


@pytest.fixture
def release(catalog: Catalog, published: dict[int, Path]) -> Publish:
    """Makes a release current in which 36436 has so many people, and returns its id."""

    def made(figure: int) -> str:
        folder = published[figure]
        shutil.copytree(folder, catalog.folder(folder.name))
        catalog.switch(folder.name)
        return folder.name

    return made


@pytest.fixture
async def follower(catalog: Catalog) -> AsyncIterator[ReleaseFollower]:
    made = ReleaseFollower(catalog.data, open_engine)
    yield made
    await made.stop()


def serves(follower: ReleaseFollower, release: str) -> Callable[[], bool]:
    return lambda: follower.current is not None and follower.current.id == release


async def people_of(opened: OpenRelease | None) -> int:
    assert opened is not None
    found = opened.keys["forecast"].resolve("36436", None, None)
    assert isinstance(found, Match)
    body = await forecast.look_up_forecast(opened.engine, found)
    return int(body.split(b'"tot_population":')[1].split(b"}")[0])


async def test_the_current_release_is_open_when_starting_returns(follower: ReleaseFollower, release: Publish) -> None:
    made = release(5)
    await follower.start()
    assert serves(follower, made)()
    assert follower.problem is None
    assert await people_of(follower.current) == 5


async def test_an_empty_data_folder_is_no_problem_and_the_first_release_is_found(
    follower: ReleaseFollower, release: Publish
) -> None:
    await follower.start()
    assert (follower.current, follower.problem) == (None, None)
    await eventually(serves(follower, release(5)))


async def test_a_new_release_is_switched_to(follower: ReleaseFollower, release: Publish) -> None:
    release(5)
    await follower.start()
    await eventually(serves(follower, release(6)))
    assert await people_of(follower.current) == 6


async def test_rolling_back_is_followed(follower: ReleaseFollower, release: Publish, catalog: Catalog) -> None:
    first, second = release(5), release(6)
    await follower.start()
    assert serves(follower, second)()
    roll_back(catalog)
    await eventually(serves(follower, first))
    assert await people_of(follower.current) == 5


async def test_a_caller_with_the_old_release_still_gets_its_answers(
    follower: ReleaseFollower, release: Publish
) -> None:
    """A request fixes its release once, and may be under way during the switch."""
    release(5)
    await follower.start()
    taken = follower.current
    await eventually(serves(follower, release(6)))
    assert await people_of(taken) == 5


async def test_each_switch_is_reported_once(catalog: Catalog, release: Publish) -> None:
    reported: list[str] = []
    follower = ReleaseFollower(catalog.data, open_engine, lambda opened: reported.append(opened.id))
    first = release(5)
    await follower.start()
    second = release(6)
    await eventually(serves(follower, second))
    assert reported == [first, second]
    await follower.stop()


async def test_a_listener_that_fails_does_not_end_the_following(
    catalog: Catalog, release: Publish, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: OpenRelease) -> None:
        raise ValueError("no")

    follower = ReleaseFollower(catalog.data, open_engine, fails)
    release(5)
    await follower.start()
    await eventually(serves(follower, release(6)))
    await eventually(serves(follower, release(7)))
    assert "a callback failed" in caplog.text
    await follower.stop()


@pytest.mark.parametrize("file", ["forecast.parquet", "forecast.keys", "manifest.json"])
async def test_a_damaged_release_is_not_switched_to_and_is_called_a_problem(
    follower: ReleaseFollower, release: Publish, catalog: Catalog, file: str
) -> None:
    """The old one goes on answering; the next good one is switched to."""
    first, second = release(5), release(6)
    roll_back(catalog)
    await follower.start()
    flip_byte(catalog.folder(second).joinpath(file), at=0)
    catalog.switch(second)
    await eventually(lambda: follower.problem is not None)
    assert file in (follower.problem or "")
    assert serves(follower, first)()
    assert await people_of(follower.current) == 5
    third = _repair(catalog, first, release)
    await eventually(serves(follower, third))
    assert follower.problem is None


def _repair(catalog: Catalog, good: str, release: Publish) -> str:
    roll_back(catalog, good)
    return release(7)


async def test_returning_to_the_release_that_answers_ends_the_problem(
    follower: ReleaseFollower, release: Publish, catalog: Catalog
) -> None:
    first = release(5)
    await follower.start()
    pointer = (catalog.data / "current.json").read_bytes()
    (catalog.data / "current.json").write_bytes(b"\xff")
    await eventually(lambda: follower.problem is not None)
    assert "current.json" in (follower.problem or "")
    assert serves(follower, first)()
    (catalog.data / "current.json").write_bytes(pointer)
    await eventually(lambda: follower.problem is None)


async def test_a_pointer_that_is_gone_is_a_problem_until_it_is_back(
    follower: ReleaseFollower, release: Publish, catalog: Catalog
) -> None:
    """What is open goes on; whoever starts now has nothing to serve."""
    first = release(5)
    await follower.start()
    kept = catalog.pointer_file.rename(catalog.data / "kept")
    await eventually(lambda: "current.json is gone" in (follower.problem or ""))
    assert serves(follower, first)()
    kept.rename(catalog.pointer_file)
    await eventually(lambda: follower.problem is None)


async def test_a_problem_is_logged_once_not_at_every_look(
    follower: ReleaseFollower, catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    catalog.data.mkdir()
    (catalog.data / "current.json").write_bytes(b"{")
    looks = 0
    pointer = catalog.pointer

    def counted() -> object:
        nonlocal looks
        looks += 1
        return pointer()

    follower._catalog.pointer = counted  # type: ignore[method-assign, assignment]
    with caplog.at_level(logging.ERROR):
        await follower.start()
        await eventually(lambda: looks > 3)
    assert len(caplog.records) == 1


async def test_the_old_release_is_closed_after_a_while_and_at_the_end(
    follower: ReleaseFollower, release: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files and threads of unused releases must not add up; `on_retire` is called for each."""
    retired: list[str] = []
    follower._on_retire = retired.append
    monkeypatch.setattr(following, "_RETIRE_AFTER_SECONDS", 0.01)
    release(5)
    await follower.start()
    first = follower.current
    await eventually(serves(follower, release(6)))
    await eventually(lambda: not follower._retired)
    with pytest.raises(LookupFailure):
        await people_of(first)
    assert first is not None
    assert retired == [first.id]
    monkeypatch.setattr(following, "_RETIRE_AFTER_SECONDS", 3600)
    second = follower.current
    await eventually(serves(follower, release(7)))
    assert await people_of(second) == 6
    third = follower.current
    await follower.stop()
    for closed in (second, third):
        with pytest.raises(LookupFailure):
            await people_of(closed)


async def test_an_area_that_only_a_later_version_knows_is_not_served(catalog: Catalog, release: Publish) -> None:
    """The others of its release are: going back to this version must be possible."""
    path = catalog.folder(release(5)) / "manifest.json"
    path.write_text(path.read_text().replace('"forecast"\n', '"forecast",\n    "schools"\n'))
    follower = ReleaseFollower(catalog.data, open_engine)
    await follower.start()
    assert follower.current is not None
    assert (set(follower.current.keys), follower.current.manifest.areas) == ({"forecast"}, ("forecast", "schools"))
    await follower.stop()


async def test_at_the_start_the_release_before_stands_in_for_one_that_cannot_be_opened(
    catalog: Catalog, release: Publish
) -> None:
    """If that is asked for; it says since when it is not the current one. The problem is told all the while, and ends
    when the current one can be opened."""
    first, second = release(5), release(6)
    file = catalog.folder(second) / "forecast.keys"
    whole = file.read_bytes()
    flip_byte(file)
    plain = ReleaseFollower(catalog.data, open_engine)
    await plain.start()
    assert plain.current is None
    await plain.stop()
    follower = ReleaseFollower(catalog.data, open_engine, keep_previous=True)
    await follower.start()
    assert serves(follower, first)()
    assert follower.problem is not None
    since = follower.stands_in_since
    assert since is not None
    assert since <= time.monotonic()
    file.write_bytes(whole)
    await eventually(serves(follower, second))
    assert follower.problem is None
    await eventually(lambda: follower.stands_in_since is None)
    assert follower.previous is not None
    assert (follower.previous.release.id, follower.previous.since) == (first, since)
    await follower.stop()


async def test_a_release_that_stood_in_and_is_made_the_current_one_stands_in_no_longer(
    catalog: Catalog, release: Publish
) -> None:
    first, second = release(5), release(6)
    flip_byte(catalog.folder(second) / "forecast.keys")
    follower = ReleaseFollower(catalog.data, open_engine, keep_previous=True)
    await follower.start()
    assert follower.stands_in_since is not None
    roll_back(catalog)
    await eventually(lambda: follower.stands_in_since is None)
    assert serves(follower, first)()
    assert follower.problem is None
    await follower.stop()


async def test_the_release_before_stays_open_until_the_next_switch(catalog: Catalog, release: Publish) -> None:
    follower = ReleaseFollower(catalog.data, open_engine, keep_previous=True)
    ids = [release(5)]
    await follower.start()
    for figure in (6, 7):
        ids.append(release(figure))
        await eventually(serves(follower, ids[-1]))
        assert follower.previous is not None
        assert follower.previous.release.id == ids[-2]
        assert await people_of(follower.previous.release) == figure - 1
    assert [one.id for one in follower._retired] == [ids[0]]
    await follower.stop()


async def test_the_release_before_is_open_also_in_a_process_that_never_served_it(
    catalog: Catalog, release: Publish
) -> None:
    """Most workers were started after the last publish."""
    first, second = release(5), release(6)
    follower = ReleaseFollower(catalog.data, open_engine, keep_previous=True)
    await follower.start()
    assert serves(follower, second)()
    assert follower.previous is not None
    assert follower.previous.release.id == first
    assert follower.previous.since <= time.monotonic()
    assert await people_of(follower.previous.release) == 5
    await follower.stop()


async def test_a_release_before_that_cannot_be_opened_is_none(
    catalog: Catalog, release: Publish, caplog: pytest.LogCaptureFixture
) -> None:
    """What is current answers all the same."""
    first, second = release(5), release(6)
    flip_byte(catalog.folder(first) / "forecast.keys")
    follower = ReleaseFollower(catalog.data, open_engine, keep_previous=True)
    await follower.start()
    assert serves(follower, second)()
    assert (follower.previous, follower.problem) == (None, None)
    assert "cannot open the previous release" in caplog.text
    await follower.stop()
