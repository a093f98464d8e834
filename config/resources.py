"""The processors and memory that this process may use, according to its cgroups, and the defaults that follow."""

import os
from collections.abc import Iterator
from pathlib import Path

from config.settings import Settings

_CGROUP = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_LEAST_LOOKUP_BYTES = 96 << 20
_MOST_LOOKUP_BYTES = 512 << 20
_MOST_NEAR_CACHE_BYTES = 256 << 20


def processors(cgroup: Path = _CGROUP, membership: Path = _MEMBERSHIP) -> int:
    """Returns the usable processors, at least 1: the process's affinity, limited by the lowest quota of its cgroups."""
    available = len(os.sched_getaffinity(0))
    quotas = [quota for folder in _folders("cpu", cgroup, membership) if (quota := _quota(folder)) is not None]
    return max(1, int(min([available, *quotas])))


def memory(cgroup: Path = _CGROUP, membership: Path = _MEMBERSHIP) -> int:
    """Returns the usable memory in bytes: the machine's, limited by the lowest limit of the process's cgroups."""
    limits = [
        int(limit)
        for folder in _folders("memory", cgroup, membership)
        for name in ("memory.max", "memory.limit_in_bytes")  # v2, v1
        if (limit := _read(folder / name)).isdigit()
    ]
    return min([_machine_memory(), *limits])


def processors_source() -> str:
    """Returns what sets the number of processors, in words."""
    is_limited = processors() < len(os.sched_getaffinity(0))
    return "the processor limit of this cgroup" if is_limited else "the processors of this machine"


def memory_source() -> str:
    """Returns what sets the usable memory, in words."""
    return "the memory limit of this cgroup" if memory() < _machine_memory() else "the memory of this machine"


def memory_kills(cgroup: Path = _CGROUP, membership: Path = _MEMBERSHIP) -> int:
    """Returns how many processes of this process's cgroup the kernel has killed because memory ran out."""
    counted = [
        int(words[1])
        for folder in _folders("memory", cgroup, membership)
        for name in ("memory.events", "memory.oom_control")  # v2, v1
        for line in _read(folder / name).splitlines()
        if len(words := line.split()) == 2 and words[0] == "oom_kill" and words[1].isdigit()
    ]
    return counted[-1] if counted else 0  # the outer ones count other programs too


def out_of_memory(needed: str) -> str:
    """Returns why a process was killed, in words. `needed` says how much memory is enough."""
    return f"killed because memory ran out: {memory() >> 20} MiB are allowed; {needed}"


def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _folders(controller: str, cgroup: Path, membership: Path) -> Iterator[Path]:
    """Yields the cgroups that limit this process, v2 and v1.

    In a container, the process sees its own cgroup as the root. Under systemd, its cgroup is far below the root, and
    every level above limits it too.
    """
    yield cgroup
    yield cgroup / controller
    for line in _read(membership).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        root = cgroup / controller if controllers else cgroup
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(1, len(parts) + 1):
            yield root.joinpath(*parts[:depth])


def _quota(folder: Path) -> float | None:
    limit, _, period = _read(folder / "cpu.max").partition(" ")  # v2
    if not limit:
        limit, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")  # v1
    if limit.isdigit() and period.isdigit() and int(period):
        return int(limit) / int(period)
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def worker_count(settings: Settings) -> int:
    return settings.workers or processors()


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
    return memory() // 8 // worker_count(settings)
