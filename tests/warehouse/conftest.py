import shutil
from pathlib import Path

import pytest

from tests.support.drops import write_drop
from tests.warehouse.helpers import publish
from warehouse.releases.catalog import Catalog, Manifest


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """An empty data folder."""
    return Catalog(tmp_path / "data")


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    """A whole drop in the long shape, without a fault."""
    return write_drop(tmp_path / "drop")


@pytest.fixture(scope="session")
def with_a_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder to copy, with one release."""
    folder = tmp_path_factory.mktemp("made")
    assert publish(Catalog(folder / "data"), write_drop(folder / "drop")).result == "published"
    return folder / "data"


@pytest.fixture
def first(catalog: Catalog, with_a_release: Path) -> Manifest:
    """The current release, of what `drop` brings."""
    shutil.copytree(with_a_release, catalog.data)
    return catalog.current()
