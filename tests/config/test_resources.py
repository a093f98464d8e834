"""Processors and memory as a cgroup allows them, read from folders made for the test."""

import os
from pathlib import Path

import pytest

from config.resources import memory, memory_kills, processors

TOTAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
MIB = 1 << 20


@pytest.fixture(autouse=True)
def _eight_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


def put(root: Path, **files: str) -> None:
    """Writes files; `__` in a name is a dot."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (root / name.replace("__", ".")).write_text(content + "\n")


def member(root: Path, *lines: str) -> Path:
    """The file that says which cgroups a process is in."""
    path = root / "membership"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("limit", "workers"),
    [("200000 100000", 2), ("150000 100000", 1), ("50000 100000", 1), ("1600000 100000", 8), ("max 100000", 8)],
)
def test_processors_follow_the_quota_of_version_2(limit: str, workers: int, tmp_path: Path) -> None:
    put(tmp_path, cpu__max=limit)
    assert processors(tmp_path, member(tmp_path, "0::/")) == workers


@pytest.mark.parametrize(("quota", "workers"), [("300000", 3), ("-1", 8), ("1000", 1)])
def test_processors_follow_the_quota_of_version_1(quota: str, workers: int, tmp_path: Path) -> None:
    put(tmp_path / "cpu", cpu__cfs_quota_us=quota, cpu__cfs_period_us="100000")
    assert processors(tmp_path, member(tmp_path, "3:cpu,cpuacct:/")) == workers


def test_without_a_cgroup_the_affinity_decides(tmp_path: Path) -> None:
    assert processors(tmp_path / "none", tmp_path / "none") == 8
    put(tmp_path, cpu__max="nonsense", memory__max="nonsense")
    assert processors(tmp_path, member(tmp_path, "nonsense")) == 8
    assert memory(tmp_path, member(tmp_path, "nonsense")) == TOTAL


@pytest.mark.parametrize(("limit", "expected"), [(str(64 * MIB), 64 * MIB), ("max", TOTAL), (str(1 << 62), TOTAL)])
def test_memory_follows_the_limit_of_version_2(limit: str, expected: int, tmp_path: Path) -> None:
    put(tmp_path, memory__max=limit)
    assert memory(tmp_path, member(tmp_path, "0::/")) == expected


@pytest.mark.parametrize(("limit", "expected"), [(64 * MIB, 64 * MIB), (9223372036854771712, TOTAL)])
def test_memory_follows_the_limit_of_version_1(limit: int, expected: int, tmp_path: Path) -> None:
    put(tmp_path / "memory", memory__limit_in_bytes=str(limit))
    assert memory(tmp_path, member(tmp_path, "4:memory:/")) == expected


def test_limits_far_below_the_root_count(tmp_path: Path) -> None:
    """A unit of systemd is limited in its own cgroup, or in any above it; the least limit holds."""
    put(tmp_path / "system.slice", memory__max=str(256 * MIB), cpu__max="300000 100000")
    put(tmp_path / "system.slice" / "forecast.service", memory__max=str(512 * MIB), cpu__max="500000 100000")
    own = member(tmp_path, "0::/system.slice/forecast.service")
    assert memory(tmp_path, own) == 256 * MIB
    assert processors(tmp_path, own) == 3


def test_limits_far_below_the_root_count_in_version_1(tmp_path: Path) -> None:
    """The older version has a tree for each controller, and a process its own place in each of them."""
    put(tmp_path / "memory" / "a" / "b", memory__limit_in_bytes=str(128 * MIB))
    put(tmp_path / "cpu" / "c", cpu__cfs_quota_us="200000", cpu__cfs_period_us="100000")
    own = member(tmp_path, "4:memory:/a/b", "3:cpu,cpuacct:/c", "1:name=systemd:/x")
    assert memory(tmp_path, own) == 128 * MIB
    assert processors(tmp_path, own) == 2


def test_a_container_sees_its_own_cgroup_as_the_root(tmp_path: Path) -> None:
    """The host's path of a container's cgroup is not there inside; the root's limits are the container's."""
    put(tmp_path / "memory", memory__limit_in_bytes=str(128 * MIB))
    assert memory(tmp_path, member(tmp_path, "4:memory:/docker/0123", "0::/../../other")) == 128 * MIB


def test_kills_are_counted_for_the_own_cgroup_of_version_2(tmp_path: Path) -> None:
    """Those above count the kills of other services, too."""
    put(tmp_path, memory__events="oom 9\noom_kill 9")
    put(tmp_path / "ours", memory__events="low 0\noom 3\noom_kill 2\noom_group_kill 0")
    assert memory_kills(tmp_path, member(tmp_path, "0::/ours")) == 2
    assert memory_kills(tmp_path, member(tmp_path, "0::/")) == 9


def test_kills_are_counted_for_the_own_cgroup_of_version_1(tmp_path: Path) -> None:
    put(tmp_path / "memory" / "ours", memory__oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 3")
    assert memory_kills(tmp_path, member(tmp_path, "4:memory:/ours")) == 3
    assert memory_kills(tmp_path / "none", tmp_path / "none") == 0


def test_a_count_that_is_no_number_counts_nothing(tmp_path: Path) -> None:
    put(tmp_path, memory__events="oom_kill nonsense")
    assert memory_kills(tmp_path, member(tmp_path, "0::/")) == 0
