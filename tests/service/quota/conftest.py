"""Workers that count usage, on a double of the key store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.usage import UsageWorker, double


@pytest.fixture
async def usage(tmp_path: Path) -> AsyncIterator[UsageWorker]:
    client = double()
    yield UsageWorker(client, tmp_path)
    await client.aclose()


@pytest.fixture
def other(usage: UsageWorker, tmp_path: Path) -> UsageWorker:
    """A second worker on the same server and data folder, with the same clock."""
    return UsageWorker(usage.client, tmp_path, usage.clock)
