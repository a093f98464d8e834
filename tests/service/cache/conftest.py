"""A cache that a test may hurt."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.valkey import ValkeyProcess


@pytest.fixture
def server(short: Path) -> Iterator[ValkeyProcess]:
    running = ValkeyProcess(short / "cache").start()
    yield running
    running.kill()
