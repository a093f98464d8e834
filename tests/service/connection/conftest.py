"""Connections to a worker, for several modules."""

from collections.abc import Iterator

import pytest

from config.settings import Settings
from tests.support.doors import Doors, asked_through_doors
from tests.support.served import Served
from tests.support.wire import Wire


@pytest.fixture(scope="module", params=["near", "shared"])
def doors(settings: Settings, request: pytest.FixtureRequest) -> Iterator[Doors]:
    """Answers from the near cache, or from the shared one, where there is no other."""
    with asked_through_doors(settings, request.param) as made:
        yield made


@pytest.fixture
def wire(worker: Served) -> Iterator[Wire]:
    with worker.wire() as opened:
        yield opened
