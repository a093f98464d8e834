"""The scene of the verifier's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.key_store import HeldKeyStore
from tests.support.verifying import Scene


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    store = HeldKeyStore(tmp_path)
    made = Scene(store, *await store.issue("acme", "", None))
    store.asked = 0
    yield made
    await store.client.aclose()
