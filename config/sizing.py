"""What settings left open comes from the machine: how many workers, and how much memory each gives to what."""

from config import resources
from config.settings import Settings

_LEAST_MEMORY = 64 << 20
_MOST_MEMORY = 512 << 20
_MOST_NEAR_CACHE = 256 << 20


def worker_count(settings: Settings) -> int:
    return settings.workers or resources.processors()


def lookup_memory(settings: Settings) -> int:
    """Bytes for DuckDB in one worker; unset, an eighth of what is available, shared by the workers, within reason."""
    if settings.lookup_memory is not None:
        return settings.lookup_memory
    return max(_LEAST_MEMORY, min(_MOST_MEMORY, _eighth(settings)))


def near_cache_bytes(settings: Settings) -> int:
    """Bytes of the near cache in one worker; unset, 256 MiB, or its share of an eighth if that is less."""
    if settings.near_cache_bytes is not None:
        return settings.near_cache_bytes
    return min(_MOST_NEAR_CACHE, _eighth(settings))


def _eighth(settings: Settings) -> int:
    return resources.memory() // 8 // worker_count(settings)
