"""What a worker does beside what its parts do."""

import gc
import resource
import subprocess
import sys
import weakref
from collections.abc import Iterator
from functools import partial

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


def test_what_is_there_when_a_release_was_opened_is_left_out_of_later_collections() -> None:
    """The key sets of a release are large, and stay as long as it is served."""
    part = Part()
    settle()
    assert gc.get_freeze_count() > 0
    assert all(one is not part for one in gc.get_objects())


def test_what_the_release_before_left_is_collected_when_the_next_was_opened() -> None:
    """Or every switch would leave some memory behind for good."""
    part = Part()
    gone = weakref.ref(part)
    settle()
    del part
    gc.collect()
    assert gone() is not None
    settle()
    assert gone() is None


@pytest.mark.parametrize(("files", "served"), [(700, 200), (400, 100), (10_000, 5_000)])
def test_connections_leave_files_for_others(files: int, served: int) -> None:
    """However many are set: without a file to open, a worker that is full could answer nobody."""
    code = "from service.worker.serving import allow_files; print(allow_files(5_000))"
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (min(files, 600), files))
    ran = subprocess.run([sys.executable, "-c", code], preexec_fn=limit, capture_output=True, check=True)
    assert int(ran.stdout) == served
