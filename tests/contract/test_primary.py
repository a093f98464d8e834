"""Which server is the primary, as Sentinels say: one suite over doubles and over real Sentinels with real Valkeys."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from config.server_lists import Node
from service.redis import primary as primary_module
from service.redis.errors import StoreUnavailable
from service.redis.primary import Primary, open_store
from tests.support.sentinel_doubles import SentinelDouble
from tests.support.sentinels import Trio
from tests.support.waiting import PATIENCE, eventually


class Sentinels(Protocol):
    """Three of them, and the servers that they watch."""

    @property
    def url(self) -> str: ...
    async def named(self) -> Node: ...
    async def move(self) -> None: ...
    def silence(self, count: int) -> None: ...


class Doubles:
    def __init__(self, sentinels: list[SentinelDouble]) -> None:
        self.sentinels = sentinels

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(str(one.node) for one in self.sentinels)}/keys/0"

    async def named(self) -> Node:
        assert self.sentinels[0].primary is not None
        return self.sentinels[0].primary

    async def move(self) -> None:
        for sentinel in self.sentinels:
            assert sentinel.primary is not None
            sentinel.primary = Node("127.0.0.1", sentinel.primary.port + 1)

    def silence(self, count: int) -> None:
        for at, sentinel in enumerate(self.sentinels):
            sentinel.silent = at < count


class Real:
    def __init__(self, trio: Trio) -> None:
        self.trio = trio

    @property
    def url(self) -> str:
        return self.trio.url

    async def named(self) -> Node:
        return self.trio.primary().node

    async def move(self) -> None:
        old = self.trio.primary()
        await asyncio.to_thread(self.trio.sentinels[0].command, "SENTINEL", "FAILOVER", Trio.SERVICE)
        await asyncio.to_thread(self.trio.wait_for_another, old)
        await asyncio.to_thread(self.trio.wait_whole)

    def silence(self, count: int) -> None:
        for at, sentinel in enumerate(self.trio.sentinels):
            if at < count:
                sentinel.stall()
            else:
                sentinel.go_on()


@pytest.fixture(scope="session")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    folder: Path = tmp_path_factory.mktemp("trio")
    started = Trio(folder)
    yield started.start()
    started.kill()


@pytest.fixture(params=["doubles", "real"])
async def sentinels(request: pytest.FixtureRequest) -> AsyncIterator[Sentinels]:
    if request.param == "real":
        real = Real(request.getfixturevalue("trio"))
        yield real
        real.silence(0)
        await asyncio.to_thread(real.trio.wait_whole)
        return
    doubles = [await SentinelDouble(Node("127.0.0.1", 6000)).start() for _ in range(3)]
    yield Doubles(doubles)
    for double in doubles:
        double.stop()


@pytest.fixture
async def primary(sentinels: Sentinels) -> AsyncIterator[Primary]:
    made = Primary(sentinels.url)
    await made.start()
    yield made
    await made.stop()


async def test_the_one_that_sentinels_name_is_the_primary(primary: Primary, sentinels: Sentinels) -> None:
    """From the start, with the database of the URL; the agreement is as old as the question."""
    assert primary.url == f"redis://{await sentinels.named()}/0"
    assert time.monotonic() - primary.agreed_at < 60
    assert primary.problem == ""


async def test_a_follower_hears_where_the_primary_moved(primary: Primary, sentinels: Sentinels) -> None:
    reported: list[str | None] = []
    primary.follow(reported.append)
    await sentinels.move()
    await eventually(lambda: bool(reported))
    assert reported == [f"redis://{await sentinels.named()}/0"]
    assert primary.url == reported[0]


async def test_one_silent_sentinel_of_three_changes_nothing(primary: Primary, sentinels: Sentinels) -> None:
    """The others are asked at once, and are a majority: agreements go on."""
    sentinels.silence(1)
    before = time.monotonic()
    await eventually(lambda: primary.agreed_at > before)
    assert primary.url is not None


async def test_without_a_majority_there_is_no_primary(
    primary: Primary, sentinels: Sentinels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some seconds; the last agreement stays as old as it is. It is found again when enough of them speak."""
    monkeypatch.setattr(primary_module, "AWAY_AFTER_SECONDS", 1.2)
    reported: list[str | None] = []
    primary.follow(reported.append)
    sentinels.silence(2)
    await eventually(lambda: primary.url is None)
    assert reported == [None]
    assert "no majority of 3 Sentinels" in primary.problem
    assert time.monotonic() - primary.agreed_at >= 1.2
    sentinels.silence(0)
    await eventually(lambda: primary.url is not None)
    assert reported == [None, f"redis://{await sentinels.named()}/0"]


async def test_a_store_without_a_known_primary_is_unreachable(sentinels: Sentinels) -> None:
    """Nothing is asked anywhere, and the reason is reported; it is there as soon as Sentinels agree."""
    sentinels.silence(2)
    primary = Primary(sentinels.url)
    await primary.start()
    store = open_store("a store", primary, timeout=5)
    await store.start()
    assert (store.healthy, store.is_unreachable) == (False, True)
    with pytest.raises(StoreUnavailable):
        await store.call(lambda client: client.ping())
    sentinels.silence(0)
    await eventually(lambda: primary.url is not None)
    await store.stop()
    await primary.stop()


async def test_a_command_asks_once_and_fails_with_the_reason(sentinels: Sentinels) -> None:
    """It does not wait until the Sentinels agree."""
    async with primary_module.found(sentinels.url) as found:
        assert found.url == f"redis://{await sentinels.named()}/0"
    sentinels.silence(2)
    with pytest.raises(StoreUnavailable, match=r"no majority of 3 Sentinels names a primary \(.*:[0-9]+ has 1\)"):
        async with primary_module.found(sentinels.url):
            pass


@pytest.mark.parametrize(
    ("named", "says"), [([None] * 3, "know no service `keys`"), ([6000, 6001, 6002], "no majority")]
)
async def test_an_unknown_service_is_named_and_sentinels_that_differ_are_no_majority(
    named: list[int | None], says: str
) -> None:
    """It is most likely misspelt; each names another server, as while they are cut off from each other."""
    doubles = [await SentinelDouble(Node("127.0.0.1", port) if port else None).start() for port in named]
    with pytest.raises(StoreUnavailable, match=says):
        async with primary_module.found(Doubles(doubles).url):
            pass
    for double in doubles:
        double.stop()


async def test_who_is_silent_is_not_waited_for_when_the_others_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each silent Sentinel would delay every failover by the time that an answer may take."""
    monkeypatch.setattr(primary_module, "_ANSWER_SECONDS", 600)
    doubles = [await SentinelDouble(Node("127.0.0.1", 6000)).start() for _ in range(3)]
    doubles[0].silent = True
    primary = Primary(Doubles(doubles).url)
    await asyncio.wait_for(primary.find(), PATIENCE)
    assert primary.url == "redis://127.0.0.1:6000/0"
    await primary.stop()
    for double in doubles:
        double.stop()
