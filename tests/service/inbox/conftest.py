"""An inbox whose publisher answers what a test says."""

from pathlib import Path

import pytest

from tests.support.inbox import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)
