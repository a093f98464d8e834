"""File access where the file system may hang. Calls run in daemon threads, which process exit does not wait for."""

import _thread
import asyncio
import contextlib
import errno
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import msgspec

from warehouse.schema.errors import FilesHang

# On a working file system, a call takes no longer than this unless its caller says so.
USUAL_SECONDS = 2.0
# After this long, a caller with several threads may try again: the file system may be back, even if the call that hangs
# never returns.
_AGAIN_SECONDS = 30.0
# A thread that has not begun after this long had no memory.
_START_SECONDS = 5.0
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


class _Call:
    """One call in a thread of its own; it is in `calls` until it has ended."""

    def __init__(self, what: str, usual: float, calls: "list[_Call]") -> None:
        self.what = what
        self.usual = usual
        self.began = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[Any] = self._loop.create_future()
        self._runs = False  # its thread has begun
        self._calls = calls

    def start(self, call: Callable[[], object]) -> None:
        """Raises FilesHang if no thread can start."""
        self._calls.append(self)
        try:
            _in_thread(self._hand_over, self._run, call)
        except OSError as error:
            self._calls.remove(self)
            raise FilesHang(f"{self.what} failed: {error.strerror}") from None
        self._loop.call_later(_START_SECONDS, self._give_up_unless_begun)

    def _run(self, call: Callable[[], object]) -> object:
        self._runs = True
        if self not in self._calls:
            raise FilesHang(f"{self.what} began too late")
        return call()

    def _give_up_unless_begun(self) -> None:
        if not self._runs:
            self._end(None, FilesHang(f"{self.what} failed: its thread did not start"))

    def _hand_over(self, value: object, error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
            self._loop.call_soon_threadsafe(self._end, value, error)

    def _end(self, value: object, error: BaseException | None) -> None:
        if self in self._calls:
            self._calls.remove(self)
        if self.result.done():
            return  # the caller has stopped waiting
        if error is None:
            self.result.set_result(value)
        else:
            self.result.set_exception(error)


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
            FilesHang: if an earlier call has not returned, this one does not within `wait` seconds (it runs on), or no
                thread can start.
        """
        if self._calls and not self._may_try_again():
            raise FilesHang(f"{self._calls[-1].what} hangs")
        under_way = _Call(what, usual, self._calls)
        under_way.start(partial(call, *arguments))
        done, _ = await asyncio.wait([under_way.result], timeout=wait)
        if not done:
            under_way.result.cancel()
            raise FilesHang(f"{what} hangs")
        result: T = under_way.result.result()
        return result

    def _may_try_again(self) -> bool:
        return len(self._calls) < self._threads and time.monotonic() - self._calls[-1].began > _AGAIN_SECONDS


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
    """Calls `ended` with the result or the error of `call`, in a daemon thread. Raises OSError if none can start."""

    def work() -> None:
        try:
            value = call(*arguments)
        except BaseException as error:  # raised again in the waiting caller
            _call_surely(ended, None, error)
        else:
            _call_surely(ended, value, None)

    # Not a threading.Thread: process exit waits for those, and `start` never returns if the thread finds no memory
    # (https://github.com/python/cpython/issues/140746).
    try:
        _thread.start_new_thread(work, ())
    except RuntimeError as error:  # no memory, or too many threads
        raise OSError(errno.EAGAIN, str(error)) from None


def _call_surely(ended: Callable[[Any, BaseException | None], None], value: Any, error: BaseException | None) -> None:
    while True:
        with contextlib.suppress(MemoryError):  # the caller must learn the end
            return ended(value, error)
        time.sleep(_MEMORY_SECONDS)
