"""File access where the file system may hang. Calls run in daemon threads, which process exit does not wait for."""

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

        def ended(value: Any, error: BaseException | None) -> None:
            self._calls.remove(under_way)
            if result.done():
                return  # the caller has stopped waiting
            if error is None:
                result.set_result(value)
            else:
                result.set_exception(error)

        _in_thread(lambda *outcome: _hand_over(loop, ended, *outcome), call, *arguments)
        done, _ = await asyncio.wait([result], timeout=wait)
        if not done:
            result.cancel()
            raise FilesHang(f"{what} hangs")
        return result.result()

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
    def work() -> None:
        try:
            value = call(*arguments)
        except BaseException as error:  # raised in the waiting caller
            ended(None, error)
        else:
            ended(value, None)

    # a daemon, because the interpreter waits for other threads when it exits
    threading.Thread(target=work, name="files", daemon=True).start()


def _hand_over(
    loop: asyncio.AbstractEventLoop,
    ended: Callable[[Any, BaseException | None], None],
    value: Any,
    error: BaseException | None,
) -> None:
    with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
        loop.call_soon_threadsafe(ended, value, error)
