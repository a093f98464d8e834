"""Sends parts of files, block by block: read in threads of their own, and no faster than the client reads."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

from service.http.releases.ranges import Part
from service.request.errors import ApiError
from service.request.response import Header, Send

# Block in memory, two per download at most; writing one takes the event loop some 30 µs.
_BLOCK_BYTES = 128 << 10
_THREADS = 4
# A disk that needs longer for a block counts as hanging.
_DISK_SECONDS = 3.0
# In each worker. Clients often read parts of a file on as many connections as they have processors.
MOST_AT_ONCE = 64
MOST_OF_A_KEY = 16

T = TypeVar("T")


class Downloads:
    """The downloads of one worker, which owns it and calls `stop` at its end."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "send files")
        self._under_way: Counter[str] = Counter()

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, call: Callable[..., T], *arguments: Any) -> T:
        """Returns the result of a call that reads files.

        Raises OSError (TimeoutError if the disk hangs), and as `call`.
        """
        working = asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)
        return await asyncio.wait_for(working, _DISK_SECONDS)

    def of(
        self, key_id: str, path: Path, size: int, part: Part, start: tuple[int, tuple[Header, ...]]
    ) -> Callable[[Any, Any, Send], Coroutine[Any, Any, None]]:
        """Returns an ASGI app that sends a part of the file at `path`, which has `size` bytes.

        `start` is status and headers.

        A disconnected client ends it. It raises ApiError before the answer begins: 429 or 503 if too many downloads
        are under way, 503 if the file cannot be read; and OSError afterwards: the server then closes the connection.
        """
        status, headers = start

        async def answer(_: Any, receive: Any, send: Send) -> None:
            with self._place(key_id):
                try:
                    file = await self.run(_open, path, size)
                except OSError as error:
                    raise ApiError("unavailable") from error
                gone = asyncio.create_task(_until_gone(receive))
                try:
                    begin = {"type": "http.response.start", "status": status, "headers": [*headers]}
                    await send(begin)
                    await self._send(file, part, gone, send)
                finally:
                    gone.cancel()
                    file.close()

        return answer

    async def _send(self, file: FileIO, part: Part, gone: asyncio.Task[None], send: Send) -> None:
        at = part.first
        while at < part.end and not gone.done():
            block = await self.run(os.pread, file.fileno(), min(_BLOCK_BYTES, part.end - at), at)
            if not block:
                raise OSError("the file became shorter")
            at += len(block)
            await send({"type": "http.response.body", "body": block, "more_body": True})
        # also if the client has disconnected: sent bytes count
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    @contextmanager
    def _place(self, key_id: str) -> Iterator[None]:
        """Holds a download slot of this key. Raises ApiError (429, 503) if there are too many downloads."""
        if self._under_way[key_id] >= MOST_OF_A_KEY:
            detail = f"More than {MOST_OF_A_KEY} downloads at once. Wait until one of yours has ended."
            raise ApiError("rate_limited", detail)
        if self._under_way.total() >= MOST_AT_ONCE:
            raise ApiError("unavailable", "Too many downloads are under way. Try again as Retry-After says.")
        self._under_way[key_id] += 1
        try:
            yield
        finally:
            self._under_way[key_id] -= 1
            self._under_way += Counter()  # drops keys without downloads


def _open(path: Path, size: int) -> FileIO:
    """Returns an object, not a descriptor: it is closed also if the disk hangs and the request has ended."""
    file = FileIO(path)
    if os.fstat(file.fileno()).st_size == size:
        return file
    file.close()
    raise OSError(f"{path} has not the size that the manifest says")


async def _until_gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
