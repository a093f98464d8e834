"""Clients that ask at a fixed rate and keep each answer whole, to be judged when all is known."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.figures.common import exchange
from tests.support.instance import FORECAST

_ANSWER_SECONDS = 10.0
PROJECTS = "/v1/development-projects"
# Whose answers are compared: each has its release's figure in it, but for the last two.
FOUND = (f"{FORECAST}?zip_code=36436", f"{FORECAST}?city_name=Los+Angeles&state_code=CA", f"{FORECAST}?zip_code=90028")
OTHERS = (f"{FORECAST}?zip_code=99999", f"{PROJECTS}?zip_code=36436")


class Asked(NamedTuple):
    """One request and its answer; `status` is 0 if none came."""

    instance: str
    key: str  # its label
    path: str
    sent: float
    status: int
    release: str = ""
    body: bytes = b""
    why: str = ""


class Caller:
    """One connection of one key. It is opened again when the instance closes it between two requests."""

    def __init__(self, instance: str, base: str, label: str, key: str) -> None:
        self._instance, self._label, self._key = instance, label, key
        self._where = urlsplit(base)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str) -> Asked:
        sent = time.monotonic()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                status, fields, body = await self._exchange(path)
        except (OSError, EOFError, TimeoutError, asyncio.IncompleteReadError) as error:
            self.close()
            return Asked(self._instance, self._label, path, sent, 0, why=repr(error))
        return Asked(self._instance, self._label, path, sent, status, fields.get("x-data-release", ""), body)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _exchange(self, path: str) -> tuple[int, Mapping[str, str], bytes]:
        if self._streams is None or self._streams[0].at_eof():
            self.close()
            self._streams = await asyncio.open_connection(self._where.hostname, self._where.port)
        asked = f"GET {path} HTTP/1.1\r\nHost: figures\r\nx-api-key: {self._key}\r\n\r\n".encode()
        status, fields, body = await exchange(*self._streams, asked)
        if fields.get("connection") == "close":
            self.close()
        return status, fields, body


class Load:
    """Callers of several instances and keys, each with its rate. `asked` is all that they saw."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def begin(self, instance: str, base: str, label: str, key: str, per_second: float) -> None:
        """`per_second` of one key at one instance, over connections of 25/s each at most."""
        callers = max(1, round(per_second / 25))
        each = [Caller(instance, base, label, key) for _ in range(callers)]
        self._tasks[instance, label] = asyncio.create_task(self._all(each, per_second / callers))

    async def end(self, instance: str = "", label: str = "") -> None:
        """Of one instance, of one key, or of all."""
        ending = [pair for pair in self._tasks if instance in ("", pair[0]) and label in ("", pair[1])]
        for pair in ending:
            task = self._tasks.pop(pair)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _all(self, callers: Sequence[Caller], rate: float) -> None:
        stopping = asyncio.Event()
        asking = [asyncio.create_task(self._one(caller, rate, at, stopping)) for at, caller in enumerate(callers)]
        try:
            await stopping.wait()
        finally:  # each ends with an answer: what was asked is counted
            stopping.set()
            await asyncio.gather(*asking)

    async def _one(self, caller: Caller, rate: float, at: int, stopping: asyncio.Event) -> None:
        due = time.monotonic()
        for number in _endless(at):
            if stopping.is_set():
                break
            self.asked.append(await caller.ask((FOUND + OTHERS)[number % len(FOUND + OTHERS)]))
            due = max(due + 1 / rate, time.monotonic() - 1)  # late ones follow, of one second at most
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        caller.close()


def _endless(number: int) -> Iterator[int]:
    while True:
        yield number
        number += 1


def statuses(asked: Sequence[Asked]) -> dict[str, dict[int, int]]:
    """By key."""
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for one in asked:
        found[one.key][one.status] += 1
    return {label: dict(sorted(counts.items())) for label, counts in sorted(found.items())}


def wrong(asked: Sequence[Asked], figures: Mapping[str, int]) -> list[str]:
    """What was answered that its release does not say; `figures` are in every answer of a release, by its id.

    Whoever answers, and whenever: the bytes of one release to one question are the same.
    """
    right: dict[tuple[str, str], bytes] = {}
    found = []
    for one in asked:
        if one.status == 0 or one.status >= 500 or one.status in (401, 429):
            continue
        if one.path == OTHERS[0]:
            agrees = one.status == 404 and b'"no_matching_records"' in one.body
        elif one.release not in figures or one.status != 200:
            agrees = False
        else:
            agrees = one.body == right.setdefault((one.release, one.path), one.body)
            agrees = agrees and (one.path not in FOUND or b":%d}" % figures[one.release] in one.body)
        if not agrees:
            found.append(f"{one.instance} {one.path} {one.status} {one.release} {one.body[:200]!r}")
    return found
