"""What several test modules of the edge ask."""

from collections.abc import Iterator

import pytest

from config.settings import Settings
from tests.support.both_ways import Both, asked_both_ways


@pytest.fixture(scope="module", params=["near", "shared"])
def both(settings: Settings, request: pytest.FixtureRequest) -> Iterator[Both]:
    """Answers from the near cache, or from the shared one, where there is no other."""
    with asked_both_ways(settings, request.param) as made:
        yield made
