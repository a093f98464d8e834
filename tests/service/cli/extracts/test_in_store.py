"""The commands for releases where those are in a store."""

import json
from pathlib import Path

import pytest

from tests.service.cli.extracts.conftest import Runner
from warehouse.upstream.documents import POINTER, StoredPointer
from warehouse.upstream.store import KnownPointer, ReleasesStore


@pytest.mark.usefixtures("ticking")
def test_releases_are_published_shown_compared_rolled_back_and_retired_in_the_store(
    run: Runner, drops: list[str]
) -> None:
    assert run("list").startswith(f"No releases yet in {run.url}")
    first = run("publish", drops[0])
    second = run("publish", drops[1])
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


def test_a_missing_release_is_named_with_the_store(run: Runner, releases: list[str]) -> None:
    assert releases
    for command in (("show", "20200101T000000Z-00"), ("rollback", "20200101T000000Z-00"), ("diff", "../x")):
        assert f"in {run.url}; `forecast extracts list` shows the releases" in run(*command, code=1)


def test_before_the_first_release_the_store_is_named(run: Runner) -> None:
    for command in (("show",), ("diff", "20261005T090000Z-0123456789ab")):
        assert run(*command, code=1).startswith("forecast: nothing has been published yet in the store: run ")
    assert run("list").startswith(f"No releases yet in {run.url}: run ")


def test_a_deleted_pointer_is_reported_and_can_be_restored(run: Runner, releases: list[str]) -> None:
    run.store.objects.delete(POINTER)
    reported = run("list", code=1)
    assert reported.startswith(f"forecast: current.json is missing in {run.url}; the store has releases: ")
    assert reported.endswith(f"the newest is {releases[-1]}")
    run("rollback", releases[-1])
    assert releases[-1] in run("list")


def test_a_refused_drop_leaves_the_store_as_it_is(run: Runner, releases: list[str], drop: Path) -> None:
    before = run.store.pointer()
    (drop / "zip_population.parquet").write_bytes(b"PAR1")
    run("publish", str(drop), code=1)
    assert run.store.pointer() == before
    assert run.current == releases[-1]


def test_the_loser_of_a_race_ends_with_exit_code_3_and_names_the_winner(
    run: Runner, releases: list[str], drops: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    change = ReleasesStore.change

    def raced(store: ReleasesStore, known: KnownPointer, pointer: StoredPointer) -> KnownPointer:
        change(store, store.pointer(), store.pointer().pointer)
        return change(store, known, pointer)

    monkeypatch.setattr(ReleasesStore, "change", raced)
    for command in (("publish", drops[3]), ("rollback",), ("retire", releases[0])):
        assert f"another publish finished first: {releases[-1]} is current now" in run(*command, code=3)
    assert run.store.pointer().pointer.releases == tuple(reversed(releases))


def test_a_damaged_store_is_one_line(run: Runner, drops: list[str]) -> None:
    run.store.objects.put(POINTER, b"{")
    for command in (("publish", drops[0]), ("rollback",), ("list",), ("retire", "--keep", "1")):
        assert run(*command, code=1).startswith("forecast: current.json in the store of releases cannot be read: ")
