"""Files are sent block by block, to as many readers as there are places for."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from service.http.releases import downloads
from service.http.releases.downloads import Downloads
from service.http.releases.ranges import Part
from service.request.errors import ApiError
from tests.support.waiting import eventually

CONTENT = bytes(range(256)) * 2000  # of several blocks
START = (200, ((b"content-length", b"1"),))


@pytest.fixture
async def sender() -> AsyncIterator[Downloads]:
    made = Downloads()
    yield made
    made.stop()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    return path


async def stays() -> Any:
    await asyncio.Event().wait()


class Reader:
    """The ASGI `send` of a reader; `pause` holds up whatever follows the first message until it is set."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.pause: asyncio.Event | None = None

    async def __call__(self, message: Any) -> None:
        self.messages.append(message)
        if self.pause is not None:
            await self.pause.wait()

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


async def received(sender: Downloads, path: Path, part: Part, receive: Callable[[], Any] = stays) -> Reader:
    reader = Reader()
    await sender.of("a", path, len(CONTENT), part, START)({}, receive, reader)
    return reader


@pytest.mark.parametrize("part", [Part(0, len(CONTENT)), Part(5, 6), Part(100_000, 400_001), Part(0, 0)])
async def test_the_part_arrives_whole(sender: Downloads, file: Path, part: Part) -> None:
    reader = await received(sender, file, part)
    assert reader.messages[0]["status"] == 200
    assert reader.body == CONTENT[part.first : part.end]
    assert [message.get("more_body") for message in reader.messages[-2:]].pop() is False
    assert max(len(message.get("body", b"")) for message in reader.messages) <= downloads._BLOCK_BYTES


async def test_a_reader_that_has_gone_ends_it(sender: Downloads, file: Path) -> None:
    async def gone() -> Any:
        return {"type": "http.disconnect"}

    reader = await received(sender, file, Part(0, len(CONTENT)), gone)
    assert len(reader.body) <= 2 * downloads._BLOCK_BYTES < len(CONTENT)
    assert reader.messages[-1]["more_body"] is False


@pytest.mark.parametrize("fault", ["missing", "longer"])
async def test_a_file_that_differs_from_the_manifest_is_not_sent(sender: Downloads, file: Path, fault: str) -> None:
    path = file if fault == "longer" else file.with_name("missing")
    reader = Reader()
    with pytest.raises(ApiError) as raised:
        await sender.of("a", path, len(CONTENT) - 1, Part(0, 10), START)({}, stays, reader)
    assert (raised.value.code, reader.messages) == ("unavailable", [])


async def test_a_file_that_becomes_shorter_never_looks_complete(sender: Downloads, file: Path) -> None:
    reader = Reader()
    reader.pause = asyncio.Event()
    sending = asyncio.create_task(sender.of("a", file, len(CONTENT), Part(0, len(CONTENT)), START)({}, stays, reader))
    await eventually(lambda: bool(reader.messages))
    os.truncate(file, 5)
    reader.pause.set()
    with pytest.raises(OSError, match="shorter"):
        await sending
    assert all(message.get("more_body", True) for message in reader.messages)


async def test_what_is_being_sent_is_sent_to_its_end_when_its_release_is_retired(sender: Downloads, file: Path) -> None:
    reader = Reader()
    reader.pause = asyncio.Event()
    sending = asyncio.create_task(sender.of("a", file, len(CONTENT), Part(0, len(CONTENT)), START)({}, stays, reader))
    await eventually(lambda: bool(reader.messages))
    await asyncio.to_thread(file.unlink)
    reader.pause.set()
    await sending
    assert reader.body == CONTENT


async def test_a_key_gets_its_places_back(sender: Downloads, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MOST_OF_A_KEY", 2)
    monkeypatch.setattr(downloads, "MOST_AT_ONCE", 3)
    readers = [Reader() for _ in range(3)]
    pause = asyncio.Event()
    for reader in readers:
        reader.pause = pause
    sending = [
        asyncio.create_task(sender.of(key, file, len(CONTENT), Part(0, 1), START)({}, stays, reader))
        for key, reader in zip("aab", readers, strict=True)
    ]
    await eventually(lambda: all(reader.messages for reader in readers))
    for key, code in (("a", "rate_limited"), ("c", "unavailable")):
        with pytest.raises(ApiError) as raised:
            await sender.of(key, file, len(CONTENT), Part(0, 1), START)({}, stays, Reader())
        assert raised.value.code == code
    pause.set()
    await asyncio.gather(*sending)
    assert (await received(sender, file, Part(0, 1))).body == CONTENT[:1]
