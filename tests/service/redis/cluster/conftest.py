"""A cluster of doubles for each test, and the service's view of it, with a generous budget: test machines are busy."""

from collections.abc import AsyncIterator

import pytest

from service.redis.cluster.store import ClusterStore
from tests.support.cluster_double import ClusterDouble

BUDGET = 5.0


@pytest.fixture
async def cluster() -> AsyncIterator[ClusterDouble]:
    made = await ClusterDouble().start()
    yield made
    await made.stop()


@pytest.fixture
async def store(cluster: ClusterDouble) -> AsyncIterator[ClusterStore]:
    made = ClusterStore("cache", cluster.listed, BUDGET)
    await made.start()
    yield made
    await made.stop()
