"""File access where the file system may hang. Calls run in daemon threads, which process exit does not wait for."""

import _thread
import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from warehouse.schema.errors import FilesHang

# On a working file system, a call takes no longer than this unless its caller says so.
USUAL_SECONDS = 2.0
# After this long, a caller with several threads may try again: the file system may be back, even if the call that hangs
# never returns.
_AGAIN_SECONDS = 30.0
# Interval of retries while there is no memory.
_MEMORY_SECONDS = 0.5

T = TypeVar("T")


class Hang(msgspec.Struct, frozen=True):
    """A hanging call, as seen at one moment."""

    what: str  # as operators read it
    seconds: float  # for how long it has hung so far

    def __str__(self) -> str:
        since = datetime.fromtimestamp(time.time() - self.seconds, UTC)
        return f"{self.what} since {since:%Y-%m-%dT%H:%M:%SZ}"


class _Call(msgspec.Struct, eq=False):
    what: str
    began: float
    usual: float
    runs: bool = False  # its thread has called it


class FileAccess:
    """Runs an owner's file calls, one at a time, from one event loop. Lives as long as its owner.

    At most `threads` of its calls hang at once.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._calls: list[_Call] = []

    @property
    def busy(self) -> bool:
        """Whether a call is still running."""
        return bool(self._calls)

    @property
    def hang(self) -> Hang | None:
        """The newest call, if it is taking longer than usual."""
        if not self._calls:
            return None
        newest = self._calls[-1]
        seconds = time.monotonic() - newest.began
        return Hang(f"{newest.what} hangs", seconds) if seconds > newest.usual else None

    async def run(
        self,
        what: str,
        call: Callable[..., T],
        *arguments: Any,
        usual: float = USUAL_SECONDS,
        wait: float | None = None,
    ) -> T:
        """Returns the result of `call`. Operators see it, as `what`, as hanging after `usual` seconds.

        Raises:
            FilesHang: if an earlier call has not returned, or this one does not within `wait` seconds (it runs on).
        """
        if self._calls and not self._may_try_again():
            raise FilesHang(f"{self._calls[-1].what} hangs")
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()
        under_way = _Call(what, time.monotonic(), usual)
        self._calls.append(under_way)

        def noted() -> T:
            under_way.runs = True
            return call(*arguments)

        def ended(value: Any, error: BaseException | None) -> None:
            if under_way in self._calls:
                self._calls.remove(under_way)
            if result.done():
                return  # the caller has stopped waiting
            if error is None:
                result.set_result(value)
            else:
                result.set_exception(error)

        try:
            _in_thread(lambda *outcome: _hand_over(loop, ended, *outcome), noted)
        except RuntimeError as error:  # no memory, or too many threads
            self._calls.remove(under_way)
            raise FilesHang(f"{what} failed: {error}") from None
        done, _ = await asyncio.wait([result], timeout=wait)
        if not done:
            result.cancel()
            raise FilesHang(f"{what} hangs")
        return result.result()

    def _may_try_again(self) -> bool:
        newest = self._calls[-1]
        if time.monotonic() - newest.began <= _AGAIN_SECONDS:
            return False
        if not newest.runs:  # its thread had no memory to start
            self._calls.pop()
        return len(self._calls) < self._threads


def returned_within(seconds: float, call: Callable[..., object], *arguments: Any) -> bool:
    """Returns whether `call` returned within `seconds`, for callers without an event loop.

    Raises what `call` raises.
    """
    raised: list[BaseException] = []
    returned = threading.Event()

    def ended(_: object, error: BaseException | None) -> None:
        raised.extend([] if error is None else [error])
        returned.set()

    _in_thread(ended, call, *arguments)
    in_time = returned.wait(seconds)
    if raised:
        raise raised[0]
    return in_time


def _in_thread(ended: Callable[[Any, BaseException | None], None], call: Callable[..., Any], *arguments: Any) -> None:
    def work() -> None:
        value, error = None, None
        try:
            value = call(*arguments)
        except BaseException as raised:  # raised again in the waiting caller
            error = raised
        while True:
            with contextlib.suppress(MemoryError):  # the caller must learn the end
                return ended(value, error)
            time.sleep(_MEMORY_SECONDS)

    # Not a threading.Thread: process exit waits for those, and `start` never returns if the thread finds no memory
    # (https://github.com/python/cpython/issues/140746).
    _thread.start_new_thread(work, ())


def _hand_over(
    loop: asyncio.AbstractEventLoop,
    ended: Callable[[Any, BaseException | None], None],
    value: Any,
    error: BaseException | None,
) -> None:
    with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
        loop.call_soon_threadsafe(ended, value, error)
