from pathlib import Path

import pytest

from tests.support.drops import write_drop
from warehouse.releases.catalog import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """An empty data folder."""
    return Catalog(tmp_path / "data")


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    """A whole drop in the long shape, without a fault."""
    return write_drop(tmp_path / "drop")
