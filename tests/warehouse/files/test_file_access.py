"""File access in threads that may not start."""

import _thread
from collections.abc import Callable
from typing import Any

import pytest

from warehouse.files import file_access
from warehouse.files.file_access import FileAccess
from warehouse.schema.errors import FilesHang


async def test_a_call_whose_thread_dies_before_it_begins_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython starts a thread, which then finds no memory to call anything. A thread that is only late does nothing."""
    late: list[Callable[..., Any]] = []
    called: list[str] = []
    files = FileAccess()
    monkeypatch.setattr(file_access, "_START_SECONDS", 0.05)
    with monkeypatch.context() as without_memory:
        without_memory.setattr(_thread, "start_new_thread", lambda begin, _: late.append(begin))
        with pytest.raises(FilesHang, match="reading a file failed: its thread did not start"):
            await files.run("reading a file", called.append, "late")
    assert await files.run("reading it again", str, 7) == "7"
    late[0]()
    assert (called, files.busy) == ([], False)


async def test_a_thread_that_cannot_start_is_an_error_and_the_next_call_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    files = FileAccess()
    with monkeypatch.context() as at_the_limit:
        at_the_limit.setattr(_thread, "start_new_thread", refuse)
        with pytest.raises(FilesHang, match="reading a file failed: can't start new thread"):
            await files.run("reading a file", str)
    assert await files.run("reading a file", str, 7) == "7"
