"""Too little memory: the kernel kills a process of the container, and operators learn why."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import Site
from tests.support.drops import write_drop
from tests.support.instance import environment, forecast, serving
from tests.support.network import Machine
from tests.support.waiting import until

_V1, _V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
_IS_V1 = (_V1 / "memory.limit_in_bytes").exists()
_MIB = 1 << 20


class MemoryLimit(Machine):
    """A cgroup whose processes may use `mib` MiB together, without swap."""

    def __init__(self, mib: int) -> None:
        self.folder = (_V1 if _IS_V1 else _V2) / f"forecast-test-{os.getpid()}"
        self.folder.mkdir()
        (self.folder / ("memory.limit_in_bytes" if _IS_V1 else "memory.max")).write_text(str(mib * _MIB))
        self.prefix = ("sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh")

    def close(self) -> None:
        for pid in (self.folder / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        until(lambda: not (self.folder / "cgroup.procs").read_text())
        self.folder.rmdir()


@contextlib.contextmanager
def limited(mib: int) -> Iterator[MemoryLimit]:
    made = MemoryLimit(mib)
    try:
        yield made
    finally:
        made.close()


def _permitted() -> bool:
    try:
        with limited(1000):
            return _IS_V1 or "memory" in (_V2 / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not _permitted(), reason="needs the right to make cgroups with a memory limit")


def test_memory_is_named_as_the_cause_of_a_killed_reader(published: Site, short: Path) -> None:
    """The reader dies, not the command. It names the limit, what is needed, and no damaged file."""
    env = environment(published.data, keys_url=published.keys.url, cache_url=published.cache.url)
    with limited(70) as machine:
        done = forecast(env, "extracts", "publish", str(write_drop(short / "drop")), machine=machine)
    assert done.returncode == 1, done.stderr
    text = " ".join((done.stdout + done.stderr).split())
    assert "reader-failed" in text
    assert "killed because memory ran out: 70 MiB are allowed; publishing a drop of the whole country needs" in text
    assert "allow more memory" in text
    assert "damaged" not in text


def test_workers_that_do_not_fit_leave_the_instance_alive(published: Site, short: Path) -> None:
    """The supervisor outlives its workers, names memory as the cause, and starts new ones ever more rarely."""
    with (
        limited(130) as machine,
        serving(published.env, short / "serve.log", workers=4, prefix=machine.prefix) as instance,
    ):
        until(lambda: "killed because memory ran out: 130 MiB are allowed" in instance.ready().text)
        assert instance.process.poll() is None
        assert instance.zip_code(published.key).status_code in (200, 503)
