"""What settings leave open, by the machine."""

import pytest

from config import resources
from config.resources import lookup_memory, near_cache_bytes, worker_count
from config.settings import Settings

MIB = 1 << 20


def machine(monkeypatch: pytest.MonkeyPatch, *, memory: int, processors: int = 2) -> None:
    monkeypatch.setattr(resources, "memory", lambda: memory)
    monkeypatch.setattr(resources, "processors", lambda: processors)


@pytest.mark.parametrize(
    ("memory", "processors", "near", "lookups"),
    [
        (64 << 30, 2, 256 * MIB, 512 * MIB),
        (4 << 30, 2, 256 * MIB, 256 * MIB),
        (4 << 30, 4, 128 * MIB, 128 * MIB),
        (1 << 30, 1, 128 * MIB, 128 * MIB),
        (256 * MIB, 2, 16 * MIB, 96 * MIB),
    ],
)
def test_memory_is_shared_by_the_workers(
    monkeypatch: pytest.MonkeyPatch, memory: int, processors: int, near: int, lookups: int
) -> None:
    """An eighth each for the near caches and for look-ups, within reason; DuckDB needs a minimum, a cache does not."""
    machine(monkeypatch, memory=memory, processors=processors)
    unset = Settings(data_dir="data")
    assert (near_cache_bytes(unset), lookup_memory(unset)) == (near, lookups)


def test_what_is_set_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, memory=256 * MIB)
    given = Settings(data_dir="data", workers=7, near_cache_bytes=0, lookup_memory=1 << 30)
    assert (worker_count(given), near_cache_bytes(given), lookup_memory(given)) == (7, 0, 1 << 30)


def test_workers_are_as_many_as_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, memory=1 << 30, processors=3)
    assert worker_count(Settings(data_dir="data")) == 3
