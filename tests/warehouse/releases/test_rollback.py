"""An earlier release becomes current again."""

from pathlib import Path

import pytest

from tests.support.drops import people, write_drop
from tests.warehouse.helpers import contents, flip_byte, publish
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.changes import roll_back
from warehouse.schema.errors import CatalogError, NoReleaseError

OTHER_POPULATION = [people("36436", 2021, 5)]


def test_rolling_back_goes_there_and_back(catalog: Catalog, tmp_path: Path, first: Manifest) -> None:
    second = publish(catalog, write_drop(tmp_path / "b", population=OTHER_POPULATION)).manifest
    assert roll_back(catalog) == first == catalog.current()
    assert roll_back(catalog) == second == catalog.current()
    assert roll_back(catalog) == first


def test_rolling_back_to_a_named_release(catalog: Catalog, tmp_path: Path, first: Manifest) -> None:
    for number in (1, 2):
        publish(catalog, write_drop(tmp_path / str(number), population=[people("36436", 2023, number)]))
    assert roll_back(catalog, first.id) == catalog.current() == first


def test_rolling_back_to_the_current_release_changes_nothing(catalog: Catalog, tmp_path: Path, first: Manifest) -> None:
    """Otherwise the way back would be lost."""
    second = publish(catalog, write_drop(tmp_path / "b", population=OTHER_POPULATION)).manifest
    assert second is not None
    pointer = catalog.pointer()
    assert roll_back(catalog, second.id) == second
    assert catalog.pointer() == pointer


@pytest.mark.parametrize("release", ["20200101T000000Z-000000000000", "..", ".", "", "a/b", "a\0b", "../staging"])
def test_rolling_back_to_an_unknown_release_is_refused(catalog: Catalog, release: str, first: Manifest) -> None:
    before = contents(catalog.data)
    with pytest.raises(CatalogError):
        roll_back(catalog, release)
    assert contents(catalog.data) == before


@pytest.mark.parametrize("file", ["forecast.parquet", "forecast.keys", "manifest.json"])
@pytest.mark.parametrize("missing", [False, True])
def test_rolling_back_to_a_damaged_release_is_refused(
    catalog: Catalog, tmp_path: Path, file: str, missing: bool, first: Manifest
) -> None:
    publish(catalog, write_drop(tmp_path / "b", population=OTHER_POPULATION))
    assert first is not None
    path = catalog.folder(first.id) / file
    if missing:
        path.unlink()
    else:
        flip_byte(path, at=0)
    before = contents(catalog.data)
    with pytest.raises(CatalogError):
        roll_back(catalog)
    assert contents(catalog.data) == before


def test_rolling_back_needs_something_to_return_to(catalog: Catalog, drop: Path) -> None:
    with pytest.raises(NoReleaseError):
        roll_back(catalog)
    publish(catalog, drop)
    with pytest.raises(CatalogError, match="no release before"):
        roll_back(catalog)


def test_a_damaged_pointer_stops_a_publish_and_a_named_rollback_repairs_it(
    catalog: Catalog, drop: Path, first: Manifest
) -> None:
    """A publish could not know what to carry over."""
    (catalog.data / "current.json").write_bytes(b'{"release": "\xff')
    with pytest.raises(CatalogError, match=r"current\.json cannot be read"):
        publish(catalog, drop)
    assert roll_back(catalog, first.id) == first == catalog.current()
