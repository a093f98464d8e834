"""What a worker does beside what its parts do."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from service.worker.serving import settle


class Part:
    """Belongs to something that refers to itself, which only the collector can tell to be of no use."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_each_release_is_frozen_and_what_the_one_before_left_is_collected() -> None:
    """The key sets of a release are large, and stay as long as it is served."""
    part = Part()
    gone = weakref.ref(part)
    settle()
    assert gc.get_freeze_count() > 0
    assert all(one is not part for one in gc.get_objects())
    del part
    gc.collect()
    assert gone() is not None
    settle()
    assert gone() is None


def test_connections_leave_files_for_others() -> None:
    """Without a file to open, a worker that is full could answer nothing."""
    code = """
from resource import RLIMIT_NOFILE, setrlimit
from service.worker.serving import allow_files
for files in (10_000, 700, 400):
    setrlimit(RLIMIT_NOFILE, (min(files, 600), files))
    print(allow_files(5_000))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["5000", "200", "100"]
