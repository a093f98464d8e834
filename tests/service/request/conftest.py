"""What several test modules ask of both doors."""

from collections.abc import Iterator

import pytest

from config.settings import Settings
from tests.support.doors import Doors, asked_through_doors


@pytest.fixture(scope="module")
def doors(settings: Settings) -> Iterator[Doors]:
    """Answers from the near cache."""
    with asked_through_doors(settings, "near") as made:
        yield made
