"""Look-ups that share a statement: each with its own answer, deadline and fate."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.drops import LOCATIONS, location, write_drop
from tests.support.waiting import eventually
from tests.warehouse.helpers import publish, shorten
from tests.warehouse.lookup.test_engine import ENDLESS
from warehouse.areas.forecast import FORECAST_AREA
from warehouse.lookup import engine as engine_module
from warehouse.lookup.engine import Engine
from warehouse.lookup.query import LookupStatement
from warehouse.releases.catalog import Catalog
from warehouse.schema.errors import LookupBusy, LookupFailure, LookupTimeout

TOWN = [f"{number:05}" for number in range(10000, 11290)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """A release that no test may change."""
    folder = tmp_path_factory.mktemp("sharing")
    catalog = Catalog(folder / "data")
    places = [*LOCATIONS, *(location(zip_code, "Town", "AL") for zip_code in TOWN)]
    publish(catalog, write_drop(folder / "drop", locations=places))
    return catalog


@pytest.fixture
def file(made: Catalog, tmp_path: Path) -> Path:
    """Entries in three row groups, the test's own."""
    shutil.copytree(made.data, tmp_path / "data")
    catalog = Catalog(tmp_path / "data")
    return catalog.folder(catalog.current().id) / FORECAST_AREA.entries


class Shared:
    """An engine, and of how many look-ups its statements were."""

    def __init__(self, file: Path, *, in_memory: bool = True) -> None:
        self.statements: list[int] = []
        self.reported: list[tuple[str, int, str | None]] = []  # for each look-up: its name, how many shared, the error
        self.engine = Engine(
            file.parent,
            {FORECAST_AREA.name: FORECAST_AREA.lookup_in(file.parent)},
            memory=64 << 20,
            timeout=30,
            queue=100,
            in_memory=in_memory,
            observe=lambda _, lookups: self.statements.append(lookups),
            watch=lambda name: lambda began, seconds, lookups, error: self._tell(name, began, seconds, lookups, error),
        )
        self.engine._lookups["endless"] = LookupStatement(ENDLESS, ())
        self.engine._lookups["one"] = LookupStatement("SELECT 1", ())
        self.engine._lookups["wrong"] = LookupStatement("SELECT nothing, ?", ())

    def _tell(self, name: str, began: float, seconds: float, lookups: int, error: str | None) -> None:
        assert began + seconds <= time.monotonic()
        self.reported.append((name, lookups, error))

    async def look_up(self, *zip_codes: str) -> list[bytes]:
        return await self.engine.entries(FORECAST_AREA.name, zip_codes)

    def ask(self, *zip_codes: str, timeout: float = 30, lookup: str = FORECAST_AREA.name) -> asyncio.Task[list[bytes]]:
        """In a task that has asked when the others of this turn have."""

        async def ask() -> list[bytes]:
            self.engine._timeout = timeout
            return await self.engine.entries(lookup, zip_codes)

        return asyncio.create_task(ask())

    async def hold(self) -> None:
        """Both threads are busy until `release`."""
        self._held = [asyncio.create_task(self.engine.rows("endless", "x")) for _ in range(2)]
        await eventually(lambda: len(self.engine._running) == 2)

    async def release(self) -> None:
        queries = list(self.engine._running)
        while not all(query.ended.is_set() for query in queries):
            for query in queries:
                query.interrupt()
            await asyncio.sleep(0)
        assert {type(error) for error in await asyncio.gather(*self._held, return_exceptions=True)} == {LookupTimeout}


@pytest.fixture
async def shared(file: Path) -> AsyncIterator[Shared]:
    made = Shared(file)
    yield made
    made.engine.close()


@pytest.fixture
async def reading(file: Path) -> AsyncIterator[Shared]:
    """The same without the entries in memory: its statements read the file."""
    made = Shared(file, in_memory=False)
    yield made
    made.engine.close()


def of(entries: list[bytes]) -> list[str]:
    return [entry.partition(b'"zip_code":"')[2][:5].decode() for entry in entries]


def spoil_entries(file: Path, group: int) -> None:
    """The entries of one row group cannot be decoded any more; keys and footer are as they were."""
    chunk = pq.ParquetFile(file).metadata.row_group(group).column(1)
    data = bytearray(file.read_bytes())
    size = chunk.total_compressed_size
    data[chunk.data_page_offset : chunk.data_page_offset + size] = b"\xff" * size
    file.write_bytes(data)


async def test_what_is_asked_in_one_turn_is_one_statement(shared: Shared) -> None:
    asked = [TOWN[at * 60 : at * 60 + size] for at, size in enumerate((1, 1, 3, 17, 1, 40))]
    assert [of(found) for found in await asyncio.gather(*(shared.look_up(*zips) for zips in asked))] == asked
    assert shared.statements == [len(asked)]


async def test_each_look_up_gets_the_outcome_of_its_statement(shared: Shared) -> None:
    """Also of one that failed, and of the next one."""
    await asyncio.gather(*(shared.look_up(zip_code) for zip_code in TOWN[:3]))
    assert shared.reported == [(FORECAST_AREA.name, 3, None)] * 3
    shared.reported.clear()
    tasks = [shared.ask(zip_code, lookup="wrong") for zip_code in TOWN[:2]]
    failed = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(error) for error in failed] == [LookupFailure] * 2
    assert sorted(shared.reported) == [("wrong", 1, "LookupFailure")] * 2 + [("wrong", 2, "LookupFailure")] * 2


async def test_what_waits_for_a_thread_becomes_one_statement(shared: Shared) -> None:
    """Though it was asked for in different turns."""
    await shared.hold()
    tasks = []
    for zip_code in TOWN[:5]:
        tasks.append(shared.ask(zip_code))
        await asyncio.sleep(0)
    await shared.release()
    assert [of(found) for found in await asyncio.gather(*tasks)] == [[zip_code] for zip_code in TOWN[:5]]
    assert sorted(shared.statements) == [1, 1, 5]


async def test_a_lone_look_up_waits_for_no_other(shared: Shared) -> None:
    """Nor for one that takes long."""
    endless = asyncio.create_task(shared.engine.rows("endless", "x"))
    await eventually(lambda: len(shared.engine._running) == 1)
    assert of(await shared.look_up(TOWN[0])) == [TOWN[0]]
    assert shared.statements == [1]
    endless.cancel()


async def test_what_comes_while_a_statement_runs_becomes_one_statement_when_it_ends(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though a thread is free: statements of one key each would take several times as long in all."""
    monkeypatch.setattr(engine_module, "_LONG_SECONDS", 30)
    first = shared.ask(TOWN[0], lookup="endless", timeout=0.2)
    await eventually(lambda: len(shared.engine._running) == 1)
    tasks = []
    for zip_code in TOWN[:5]:
        tasks.append(shared.ask(zip_code))
        await asyncio.sleep(0)
    assert isinstance((await asyncio.gather(first, return_exceptions=True))[0], LookupTimeout)
    assert [of(found) for found in await asyncio.gather(*tasks)] == [[zip_code] for zip_code in TOWN[:5]]
    assert shared.statements == [1, 5]


async def test_rows_are_looked_up_while_a_statement_of_keys_runs(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share no statement, so that waiting would save nothing."""
    monkeypatch.setattr(engine_module, "_LONG_SECONDS", 30)
    running = shared.ask(TOWN[0], lookup="endless")
    await eventually(lambda: len(shared.engine._running) == 1)
    assert await shared.engine.rows("one") == [(1,)]
    running.cancel()


async def test_where_look_ups_come_together_the_next_statement_waits_for_more(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a moment, and not where one follows the other: a lone caller is never kept waiting."""
    moments: list[float] = []
    monkeypatch.setattr(shared.engine, "_gather", moments.append)
    await shared.look_up(TOWN[0])
    await shared.look_up(TOWN[1])
    assert moments == []
    await asyncio.gather(shared.look_up(TOWN[0]), shared.look_up(TOWN[1]))
    assert len(moments) == 1
    assert 0 < moments[0] <= 0.002


async def test_those_that_come_in_that_moment_share_a_statement(shared: Shared) -> None:
    """Though no other runs."""
    shared.engine._gather(30)
    tasks = []
    for zip_code in TOWN[:3]:
        tasks.append(shared.ask(zip_code))
        await asyncio.sleep(0)
    shared.engine._stop_gathering()
    assert [of(found) for found in await asyncio.gather(*tasks)] == [[zip_code] for zip_code in TOWN[:3]]
    assert shared.statements == [3]


async def test_a_cursor_serves_one_statement_after_another(shared: Shared) -> None:
    """One that failed is not used again: who knows what state it is in."""
    await shared.look_up(TOWN[0])
    (cursor,) = shared.engine._idle
    await shared.look_up(TOWN[1])
    assert shared.engine._idle == [cursor]
    assert isinstance(
        (await asyncio.gather(shared.ask(TOWN[0], lookup="wrong"), return_exceptions=True))[0], LookupFailure
    )
    assert shared.engine._idle == []
    assert of(await shared.look_up(TOWN[2])) == [TOWN[2]]


async def test_keys_that_several_ask_for_are_answered_to_each(shared: Shared) -> None:
    asked = [TOWN[:3], TOWN[2:4], [TOWN[2]], [TOWN[2]]]
    assert [of(found) for found in await asyncio.gather(*(shared.look_up(*zips) for zips in asked))] == asked
    assert shared.statements == [4]


async def test_a_key_without_entry_fails_only_who_asked_for_it(shared: Shared) -> None:
    found, missing = await asyncio.gather(
        shared.look_up(TOWN[0]), shared.look_up(TOWN[0], "99999"), return_exceptions=True
    )
    assert isinstance(found, list)
    assert isinstance(missing, LookupFailure)
    assert str(missing) == "found 1 of 2 entries"
    assert shared.statements == [2]


async def test_each_look_up_ends_at_its_own_deadline(shared: Shared) -> None:
    """The statement goes on for the others, and ends when the last deadline has passed."""
    soon = shared.ask(TOWN[0], timeout=0.05, lookup="endless")
    late = shared.ask(TOWN[1], timeout=0.4, lookup="endless")
    with pytest.raises(LookupTimeout):
        await soon
    assert not late.done()
    assert list(map(len, shared.engine._running.values())) == [2]
    with pytest.raises(LookupTimeout):
        await late
    await eventually(lambda: not shared.engine._running)
    assert shared.statements == [2]


async def test_one_whose_deadline_passes_while_it_waits_is_not_asked(shared: Shared) -> None:
    await shared.hold()
    late, patient = shared.ask(TOWN[0], timeout=0.05), shared.ask(TOWN[1])
    with pytest.raises(LookupTimeout):
        await late
    await shared.release()
    assert of(await patient) == [TOWN[1]]
    assert shared.statements == [1, 1, 1]


async def test_one_whose_caller_goes_while_it_waits_is_not_asked_and_leaves_its_place(shared: Shared) -> None:
    await shared.hold()
    shared.engine._queue = 4
    gone, patient = shared.ask(TOWN[0]), shared.ask(TOWN[1])
    await asyncio.sleep(0)
    with pytest.raises(LookupBusy, match="4 look-ups are waiting"):
        await shared.look_up(TOWN[2])
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    came = shared.ask(TOWN[2])
    await shared.release()
    assert of(await patient) + of(await came) == TOWN[1:3]
    assert sorted(shared.statements) == [1, 1, 2]


async def test_one_whose_caller_goes_while_it_runs_takes_nothing_from_the_others(shared: Shared) -> None:
    gone = shared.ask(TOWN[0], lookup="endless")
    stays = shared.ask(TOWN[1], timeout=0.2, lookup="endless")
    await eventually(lambda: len(shared.engine._running) == 1)
    gone.cancel()
    with pytest.raises(LookupTimeout):
        await stays
    assert gone.cancelled()


async def test_a_bad_row_group_fails_only_who_asked_for_it(reading: Shared, file: Path) -> None:
    """A statement that fails is asked again singly, once."""
    spoil_entries(file, 1)
    groups = [TOWN[100], TOWN[700], TOWN[1200]]
    results = await asyncio.gather(*(reading.look_up(zip_code) for zip_code in groups), return_exceptions=True)
    assert [of(result) if isinstance(result, list) else type(result) for result in results] == [
        [groups[0]],
        LookupFailure,
        [groups[2]],
    ]
    assert sorted(reading.statements) == [1, 1, 1, 3]


async def test_a_file_cut_short_under_us_fails_all(reading: Shared, file: Path) -> None:
    shorten(file)
    results = await asyncio.gather(*(reading.look_up(zip_code) for zip_code in TOWN[::300]), return_exceptions=True)
    assert {type(result) for result in results} == {LookupFailure}
