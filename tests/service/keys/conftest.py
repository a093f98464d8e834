"""Stores on a double, and the scene of the verifier's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.key_store import HeldKeyStore
from tests.support.verifying import Scene


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[HeldKeyStore]:
    made = HeldKeyStore(tmp_path)
    yield made
    await made.client.aclose()


@pytest.fixture
async def scene(store: HeldKeyStore) -> Scene:
    made = Scene(store, *await store.issue("acme", "", None))
    store.asked = 0
    return made
