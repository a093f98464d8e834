"""Defaults that depend on the machine: the number of workers, and the memory of their parts."""

from config import resources
from config.settings import Settings

_LEAST_LOOKUP_BYTES = 96 << 20
_MOST_LOOKUP_BYTES = 512 << 20
_MOST_NEAR_CACHE_BYTES = 256 << 20


def worker_count(settings: Settings) -> int:
    return settings.workers or resources.processors()


def lookup_memory(settings: Settings) -> int:
    """Returns the bytes for DuckDB in one worker; if unset, its share of an eighth of the memory, within bounds."""
    if settings.lookup_memory is not None:
        return settings.lookup_memory
    return max(_LEAST_LOOKUP_BYTES, min(_MOST_LOOKUP_BYTES, _eighth(settings)))


def near_cache_bytes(settings: Settings) -> int:
    """Returns the bytes of one worker's near cache; if unset, 256 MiB, or its share of an eighth of memory if less."""
    if settings.near_cache_bytes is not None:
        return settings.near_cache_bytes
    return min(_MOST_NEAR_CACHE_BYTES, _eighth(settings))


def _eighth(settings: Settings) -> int:
    return resources.memory() // 8 // worker_count(settings)
