"""What this process may use: processors and memory, from the cgroup where there is one."""

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def processors(cgroup: Path = _CGROUP) -> int:
    """Processors that this process may use, at least 1: its affinity, cut to the cgroup's quota (v2, then v1)."""
    available = len(os.sched_getaffinity(0))
    quota = _quota(cgroup)
    return max(1, min(available, int(quota))) if quota else max(1, available)


def memory(cgroup: Path = _CGROUP) -> int:
    """Bytes of memory that this process may use: the machine's, cut to the cgroup's limit (v2, then v1)."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        limit = _read(cgroup / name)
        if limit.isdigit():
            return min(total, int(limit))
    return total


def _quota(cgroup: Path) -> float | None:
    limit, _, period = _read(cgroup / "cpu.max").partition(" ")
    if limit.isdigit() and period.isdigit():
        return int(limit) / int(period)
    limit, period = _read(cgroup / "cpu/cpu.cfs_quota_us"), _read(cgroup / "cpu/cpu.cfs_period_us")
    if limit.isdigit() and period.isdigit() and int(period):
        return int(limit) / int(period)
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
