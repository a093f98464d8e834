"""File access in threads that may not start."""

import _thread
import asyncio

import pytest

from warehouse.files import file_access
from warehouse.files.file_access import FileAccess
from warehouse.schema.errors import FilesHang


async def test_a_call_whose_thread_never_began_counts_as_hanging_and_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CPython starts a thread, which then finds no memory to call anything."""
    files = FileAccess()
    with monkeypatch.context() as without_memory:
        without_memory.setattr(_thread, "start_new_thread", lambda *_: 0)
        with pytest.raises(FilesHang, match="reading a file hangs"):
            await files.run("reading a file", str, wait=0.01)
        with pytest.raises(FilesHang, match="reading a file hangs"):
            await files.run("reading it again", str)
    monkeypatch.setattr(file_access, "_AGAIN_SECONDS", 0.0)
    await asyncio.sleep(0.001)
    assert await files.run("reading it again", str, 7) == "7"
    assert not files.busy


async def test_a_thread_that_cannot_start_is_an_error_and_the_next_call_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    files = FileAccess()
    with monkeypatch.context() as at_the_limit:
        at_the_limit.setattr(_thread, "start_new_thread", refuse)
        with pytest.raises(FilesHang, match="reading a file failed: can't start new thread"):
            await files.run("reading a file", str)
    assert await files.run("reading a file", str, 7) == "7"
