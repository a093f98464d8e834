"""What settings left open comes from the machine: how many workers, and how much memory each gives to look-ups."""

from config import resources
from config.settings import Settings

_LEAST_MEMORY = 64 << 20
_MOST_MEMORY = 512 << 20


def worker_count(settings: Settings) -> int:
    return settings.workers or resources.processors()


def lookup_memory(settings: Settings) -> int:
    """Bytes for DuckDB in one worker; unset, an eighth of what is available, shared by the workers, within reason."""
    if settings.lookup_memory is not None:
        return settings.lookup_memory
    share = resources.memory() // 8 // worker_count(settings)
    return max(_LEAST_MEMORY, min(_MOST_MEMORY, share))
