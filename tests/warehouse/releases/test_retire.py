"""Old releases can go; those in use stay, whatever is asked."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.drops import alias, people, write_drop
from tests.warehouse.helpers import a_month_apart, contents, publish
from warehouse.files.atomic import exclusive
from warehouse.releases.catalog import Catalog
from warehouse.releases.changes import in_use, retire, retire_all_but
from warehouse.releases.instances import InstanceFile, InstanceRecord, live_instances
from warehouse.schema.errors import BusyError, CatalogError


@pytest.fixture(scope="module", autouse=True)
def months() -> Iterator[None]:
    with a_month_apart():
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A data folder with four releases, in the order in which they were published."""
    folder = tmp_path_factory.mktemp("made")
    catalog = Catalog(folder / "data")
    ids = []
    for number in range(4):
        drop = write_drop(folder / f"drop-{number}", population=[people("36436", 2023, 700 + number)])
        manifest = publish(catalog, drop).manifest
        assert manifest is not None
        ids.append(manifest.id)
    return catalog.data, ids


@pytest.fixture
def releases(catalog: Catalog, made: tuple[Path, list[str]]) -> list[str]:
    """Four releases, oldest first; the last is current, the third is the one to roll back to."""
    shutil.copytree(made[0], catalog.data)
    return made[1]


@pytest.fixture
def serving(catalog: Catalog, releases: list[str]) -> Iterator[InstanceFile]:
    """A live instance, one worker of which still serves the oldest release."""
    file = InstanceFile(catalog.data, "a")
    file.write(InstanceRecord("a", 1, "here", "http://127.0.0.1:1", (releases[0], None, releases[3])))
    yield file
    if live_instances(catalog.data):
        file.close()


def test_an_unused_release_is_removed_with_all_its_files(catalog: Catalog, releases: list[str]) -> None:
    assert retire(catalog, releases[:1]) == releases[:1]
    assert set(catalog.names()) == set(releases[1:])
    assert not any(releases[0] in name for name in contents(catalog.data))
    assert list(catalog.staging.iterdir()) == []


@pytest.mark.parametrize("at", [3, 2], ids=["current", "previous"])
def test_the_current_release_and_the_one_before_stay(catalog: Catalog, releases: list[str], at: int) -> None:
    with pytest.raises(CatalogError, match=f"{releases[at]} is in use"):
        retire(catalog, [releases[at]])
    assert set(catalog.names()) == set(releases)


def test_after_a_rollback_the_release_gone_back_from_stays(catalog: Catalog, releases: list[str]) -> None:
    with catalog.publishing():
        catalog.switch(releases[0])
    assert in_use(catalog) == {releases[0], releases[3]}


def test_what_any_worker_of_a_live_instance_serves_stays(
    catalog: Catalog, releases: list[str], serving: InstanceFile
) -> None:
    with pytest.raises(CatalogError, match=f"{releases[0]} is in use"):
        retire(catalog, [releases[0]])
    serving.close()
    assert retire(catalog, [releases[0]]) == [releases[0]]


def test_of_several_none_goes_if_one_must_stay(catalog: Catalog, releases: list[str]) -> None:
    before = contents(catalog.data)
    with pytest.raises(CatalogError, match="is in use"):
        retire(catalog, [releases[0], releases[3]])
    with pytest.raises(CatalogError, match="no release 20261005T090000Z-0123456789ab"):
        retire(catalog, [releases[0], "20261005T090000Z-0123456789ab"])
    assert contents(catalog.data) == before


@pytest.mark.parametrize("name", ["", ".", "..", "../releases", "x" * 300, "a\0b"])
def test_what_is_no_release_is_none_to_retire(catalog: Catalog, releases: list[str], name: str) -> None:
    with pytest.raises(CatalogError, match="no release"):
        retire(catalog, [name])
    assert set(catalog.names()) == set(releases)


def test_a_release_named_twice_goes_once(catalog: Catalog, releases: list[str]) -> None:
    assert retire(catalog, [releases[0], releases[0]]) == [releases[0]]


def test_a_damaged_release_can_be_retired(catalog: Catalog, releases: list[str]) -> None:
    (catalog.folder(releases[0]) / "manifest.json").unlink()
    assert retire(catalog, [releases[0]]) == [releases[0]]


def test_keep_leaves_that_many_of_the_newest(catalog: Catalog, releases: list[str]) -> None:
    assert retire_all_but(catalog, 3) == [releases[0]]
    assert catalog.names() == releases[:0:-1]


def test_what_brings_no_figures_pushes_no_figures_out(catalog: Catalog, tmp_path: Path) -> None:
    """The newest release of each of the last versions of the figures stays, beside the newest releases."""
    ids = []
    for number in range(5):
        figure = 700 + min(number, 1)  # two versions of the figures, then three of the aliases
        drop = write_drop(
            tmp_path / f"drop-{number}",
            population=[people("36436", 2023, figure)],
            aliases=[alias("36436", f"Dixon {number}", "AL")],
        )
        manifest = publish(catalog, drop).manifest
        assert manifest is not None
        ids.append(manifest.id)
    retire_all_but(catalog, 2)
    assert catalog.names() == [ids[4], ids[3], ids[0]]
    retire_all_but(catalog, 1)
    assert ids[0] not in catalog.names()


def test_keep_never_takes_one_in_use(catalog: Catalog, releases: list[str], serving: InstanceFile) -> None:
    """However few are to be kept: current, previous, and what the instance serves."""
    assert retire_all_but(catalog, 1) == [releases[1]]
    assert set(catalog.names()) == set(releases) - {releases[1]}


def test_keep_more_than_there_are_retires_none(catalog: Catalog, releases: list[str]) -> None:
    assert retire_all_but(catalog, 10) == []
    assert set(catalog.names()) == set(releases)


def test_an_empty_data_folder_has_nothing_to_retire(catalog: Catalog) -> None:
    assert in_use(catalog) == set()
    assert retire_all_but(catalog, 1) == []


def test_nothing_is_retired_during_a_publish(catalog: Catalog, releases: list[str]) -> None:
    with exclusive(catalog.data / "publish.lock") as held:
        assert held
        with pytest.raises(BusyError):
            retire(catalog, releases[:1])
        with pytest.raises(BusyError):
            retire_all_but(catalog, 1)
    assert set(catalog.names()) == set(releases)
