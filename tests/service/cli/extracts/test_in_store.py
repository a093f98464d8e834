"""The commands for releases where those are in a store, from a folder that has nothing else, as a CI runner has."""

import itertools
import json
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from tests.support.drops import people, write_drop
from tests.support.instance import environment, forecast_here
from warehouse.publishing import build
from warehouse.upstream.documents import POINTER, StoredPointer
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import KnownPointer, ReleasesStore


class _Ticking:
    """A clock that is a second later each time: ids of releases have seconds, and tests are faster."""

    def __init__(self) -> None:
        self._ticks = itertools.count(1)

    def now(self, zone: tzinfo) -> datetime:
        return datetime(2026, 10, 5, 9, tzinfo=zone) + timedelta(seconds=next(self._ticks))


@pytest.fixture(autouse=True)
def _ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "datetime", _Ticking())


class Runner:
    """Each command has a data folder of its own: nothing but the store is there from one to the next."""

    def __init__(self, folder: Path) -> None:
        self.url = f"file://{folder / 'bucket'}"
        self.store = ReleasesStore(open_objects(self.url))
        self._folder = folder
        self._times = 0

    def __call__(self, *arguments: str, code: int = 0) -> str:
        returned, stdout, stderr = self.tried(*arguments)
        assert returned == code, stderr
        return stdout if code == 0 else stderr

    def tried(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        self._times += 1
        env = environment(self._folder / f"data{self._times}", releases_url=self.url)
        done = forecast_here(env, "extracts", *arguments)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    @property
    def current(self) -> str | None:
        return self.store.pointer().pointer.release


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture
def drops(tmp_path: Path) -> tuple[str, str]:
    other = (people("36436", 2023, 784), people("63101", 2023, 2620))
    return str(write_drop(tmp_path / "one")), str(write_drop(tmp_path / "two", population=other))


def test_releases_are_published_shown_compared_rolled_back_and_retired_in_the_store(
    run: Runner, drops: tuple[str, str]
) -> None:
    assert run("list").startswith(f"No releases yet in {run.url}")
    first = run("publish", drops[0])
    second = run("publish", drops[1])
    assert run("publish", drops[1]) == second
    listed = json.loads(run("list", "--json"))
    assert [(one["id"], one["current"], one["store"]) for one in listed] == [
        (second, True, run.url),
        (first, False, run.url),
    ]
    assert f"store of releases {run.url}" in run("list")
    assert json.loads(run("show", "--json"))["manifest"]["previous"] == first
    assert "current since" in run("show", second)
    assert json.loads(run("show", first, "--json"))["current"] is False
    compared = json.loads(run("diff", first, "--json"))
    assert (compared["old"], compared["new"]) == (first, second)
    assert compared["comparison"]["changed_zip_codes"] > 0
    checked = json.loads(run("check", drops[0], "--accept", "delivered-before", "--json"))
    assert any(found["rule"] == "delivered-before" for found in checked["findings"])
    assert run("rollback") == run.current == first
    assert run("rollback", second) == run.current == second
    assert "is in use" in run("retire", first, code=1)
    third = run("publish", drops[0], "--accept", "delivered-before", "--reason", "on purpose")
    assert run("retire", "--keep", "2") == first
    assert [one["id"] for one in json.loads(run("list", "--json"))] == [third, second]


def test_a_missing_release_is_named_with_the_store(run: Runner, drops: tuple[str, str]) -> None:
    run("publish", drops[0])
    for command in (("show", "20200101T000000Z-00"), ("rollback", "20200101T000000Z-00"), ("diff", "../x")):
        assert f"in {run.url}; `forecast extracts list` shows the releases" in run(*command, code=1)


def test_before_the_first_release_the_store_is_named(run: Runner) -> None:
    for command in (("show",), ("diff", "20261005T090000Z-0123456789ab")):
        assert run(*command, code=1).startswith("forecast: nothing has been published yet in the store: run ")
    assert run("list").startswith(f"No releases yet in {run.url}: run ")


def test_a_deleted_pointer_is_reported_and_can_be_restored(run: Runner, drops: tuple[str, str]) -> None:
    release = run("publish", drops[0]).splitlines()[0]
    run.store.objects.delete(POINTER)
    reported = run("list", code=1)
    assert reported.startswith(f"forecast: current.json is missing in {run.url}; the store has releases: ")
    assert reported.endswith(f"the newest is {release}")
    run("rollback", release)
    assert release in run("list")


def test_a_refused_drop_leaves_the_store_as_it_is(run: Runner, drops: tuple[str, str], tmp_path: Path) -> None:
    run("publish", drops[0])
    before = run.store.pointer()
    (Path(drops[1]) / "zip_population.parquet").write_bytes(b"PAR1")
    run("publish", drops[1], code=1)
    assert run.store.pointer() == before


def test_the_loser_of_a_race_ends_with_exit_code_3_and_names_the_winner(
    run: Runner, drops: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = ("--accept", "delivered-before", "--reason", "on purpose")
    releases = run("publish", drops[0]), run("publish", drops[1]), run("publish", drops[0], *accepted)
    change = ReleasesStore.change

    def raced(store: ReleasesStore, known: KnownPointer, pointer: StoredPointer) -> KnownPointer:
        change(store, store.pointer(), store.pointer().pointer)
        return change(store, known, pointer)

    monkeypatch.setattr(ReleasesStore, "change", raced)
    for command in (("publish", drops[1], *accepted), ("rollback",), ("retire", releases[0])):
        assert f"another publish finished first: {releases[-1]} is current now" in run(*command, code=3)
    assert run.store.pointer().pointer.releases == releases[::-1]


def test_a_damaged_store_is_one_line(run: Runner, drops: tuple[str, str]) -> None:
    run.store.objects.put(POINTER, b"{")
    for command in (("publish", drops[0]), ("rollback",), ("list",), ("retire", "--keep", "1")):
        assert run(*command, code=1).startswith("forecast: current.json in the store of releases cannot be read: ")
