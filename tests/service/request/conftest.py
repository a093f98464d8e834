"""What several test modules ask of the steps, and of both doors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from config.settings import Settings
from tests.support.doors import Doors, asked_through_doors
from tests.support.pipeline import Steps


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return Steps(tmp_path)


@pytest.fixture(scope="module")
def doors(settings: Settings) -> Iterator[Doors]:
    with asked_through_doors(settings, "near") as made:
        yield made
