"""Look-ups: right, bounded in time and number, and locked in."""

import asyncio
import random
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import duckdb
import msgspec
import pytest

from tests.support.drops import HOUSING, write_drop, write_table
from tests.support.waiting import eventually
from tests.warehouse.helpers import publish
from warehouse.areas import entry_file
from warehouse.areas.forecast import FORECAST_AREA
from warehouse.lookup.batching import MAX_KEYS_PER_STATEMENT
from warehouse.lookup.engine import Engine, ObserveStatement
from warehouse.lookup.query import LookupStatement
from warehouse.releases.catalog import Catalog
from warehouse.schema.errors import LookupBusy, LookupFailure, LookupTimeout

# Runs for hours, unless it is interrupted.
ENDLESS = "SELECT encode(count(*)::VARCHAR) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range > len(?)"

# Opens the release whose entries are in the file, and waits until a third of what that took is free again.
_LOADS = """
import re
import sys
from pathlib import Path
from tests.support.waiting import until
from tests.warehouse.lookup.test_engine import opened

def kibibytes(what):
    return int(re.search(what + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

before = kibibytes("VmRSS")
engine = opened(Path(sys.argv[1]), memory=512 << 20)
taken = kibibytes("VmHWM") - before
until(lambda: kibibytes("VmHWM") - kibibytes("VmRSS") > taken / 3)
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one release, for all tests of this module."""
    folder = tmp_path_factory.mktemp("engine")
    catalog = Catalog(folder / "data")
    publish(catalog, write_drop(folder / "drop"))
    return catalog.folder(catalog.current().id)


@pytest.fixture
def file(published: Path, tmp_path: Path) -> Path:
    """The entries of a release of the test's own."""
    return Path(shutil.copytree(published, tmp_path / "release")) / FORECAST_AREA.entries


def opened(
    file: Path,
    timeout: float = 30,
    queue: int = 8,
    observe: ObserveStatement = lambda _seconds, _lookups: None,
    memory: int = 64 << 20,
    *,
    in_memory: bool = True,
) -> Engine:
    lookups = {FORECAST_AREA.name: FORECAST_AREA.lookup_in(file.parent)}
    return Engine(
        file.parent, lookups, memory=memory, timeout=timeout, queue=queue, observe=observe, in_memory=in_memory
    )


async def look_up(engine: Engine, *zip_codes: str) -> list[bytes]:
    return await engine.entries(FORECAST_AREA.name, zip_codes)


def of(entries: list[bytes]) -> list[str]:
    return [msgspec.json.decode(entry)["location"]["zip_code"] for entry in entries]


def replace_statement(engine: Engine, text: str) -> None:
    engine._lookups[FORECAST_AREA.name] = LookupStatement(text, FORECAST_AREA.probe)


@pytest.fixture
async def engine(file: Path) -> AsyncIterator[Engine]:
    made = opened(file)
    yield made
    made.close()


@pytest.fixture
def raw(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The connection that look-ups use."""
    made = opened(file)
    yield made._connection
    made.close()


async def test_entries_come_in_the_order_of_their_keys(engine: Engine) -> None:
    wanted = ["90028", "00501", "36436"]
    assert of(await look_up(engine, *wanted)) == wanted


def test_statements_run_with_the_settings_of_their_connection(raw: duckdb.DuckDBPyConnection) -> None:
    """Each has a cursor, which has the global ones alone. A list of more keys than the threshold scans the table."""
    names = ("dynamic_or_filter_threshold", "disabled_optimizers", "parquet_metadata_cache", "threads")
    shown = ", ".join(f"current_setting('{name}')" for name in names)
    assert raw.cursor().execute(f"SELECT {shown}").fetchone() == (MAX_KEYS_PER_STATEMENT, "in_clause", True, 1)


async def test_no_keys_have_no_entries(engine: Engine) -> None:
    assert await look_up(engine) == []


async def test_a_look_up_ends_at_its_deadline_and_the_engine_goes_on(file: Path) -> None:
    engine = opened(file, timeout=0.15)
    answering = engine._lookups[FORECAST_AREA.name].text
    replace_statement(engine, ENDLESS)
    with pytest.raises(LookupTimeout):
        await look_up(engine, "36436")
    replace_statement(engine, answering)
    assert len(await look_up(engine, "36436")) == 1
    engine.close()


async def test_waiting_counts_towards_the_deadline(file: Path) -> None:
    """Five endless queries in two threads: the last is not asked after the first ones."""
    engine = opened(file, timeout=0.15)
    replace_statement(engine, ENDLESS)
    results = await asyncio.gather(*(engine.rows(FORECAST_AREA.name, "x") for _ in range(5)), return_exceptions=True)
    assert {type(result) for result in results} == {LookupTimeout}
    engine.close()


async def test_more_look_ups_than_the_queue_holds_are_turned_away_at_once(file: Path) -> None:
    engine = opened(file, timeout=0.2, queue=3)
    answering = engine._lookups[FORECAST_AREA.name].text
    replace_statement(engine, ENDLESS)
    waiting = [asyncio.create_task(look_up(engine, "36436")) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(LookupBusy, match="3 look-ups are waiting"):
        await look_up(engine, "36436")
    await asyncio.gather(*waiting, return_exceptions=True)
    await eventually(lambda: not engine._running)
    replace_statement(engine, answering)
    assert len(await look_up(engine, "36436")) == 1
    engine.close()


async def test_a_look_up_whose_caller_has_gone_keeps_its_place_and_its_deadline(file: Path) -> None:
    """It still holds a thread; two of them must not block the engine for ever."""
    engine = opened(file, timeout=0.2, queue=2)
    answering = engine._lookups[FORECAST_AREA.name].text
    replace_statement(engine, ENDLESS)
    gone = [asyncio.create_task(engine.rows(FORECAST_AREA.name, "x")) for _ in range(2)]
    await eventually(lambda: len(engine._running) == 2)
    for task in gone:
        task.cancel()
    await asyncio.gather(*gone, return_exceptions=True)
    with pytest.raises(LookupBusy):
        await look_up(engine, "36436")
    await eventually(lambda: not engine._running)
    replace_statement(engine, answering)
    assert len(await look_up(engine, "36436")) == 1
    engine.close()


async def test_closing_fails_what_waits_and_what_comes(file: Path) -> None:
    """At once, and as a failed look-up: to a caller, a cancellation would look like its own."""
    engine = opened(file)
    replace_statement(engine, ENDLESS)
    under_way = [asyncio.create_task(engine.rows(FORECAST_AREA.name, "x")) for _ in range(4)]
    await eventually(lambda: len(engine._running) == 2)
    queries = list(engine._running)
    engine.close()
    engine.close()
    results = await asyncio.gather(*under_way, return_exceptions=True)
    assert {type(result) for result in results} == {LookupFailure}
    with pytest.raises(LookupFailure, match="closed"):
        await look_up(engine, "36436")
    await eventually(lambda: all(query.ended.is_set() for query in queries))


async def test_each_query_is_observed(file: Path) -> None:
    """Its seconds, and how many look-ups it was for; also where it failed."""
    seen: list[tuple[float, int]] = []
    engine = opened(file, observe=lambda seconds, lookups: seen.append((seconds, lookups)))
    await look_up(engine, "36436", "90028")
    await asyncio.gather(look_up(engine, "36436"), look_up(engine, "90028"))
    replace_statement(engine, "SELECT nothing, ?")
    with pytest.raises(LookupFailure):
        await look_up(engine, "36436")
    assert [lookups for _, lookups in seen] == [1, 2, 1]
    assert all(0 < seconds < 30 for seconds, _ in seen)
    engine.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_parquet('{other}')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "COPY (SELECT 1) TO '{other}.new'",
        "ATTACH '{other}.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM read_parquet('https://localhost/x.parquet')",
        "SET enable_external_access = true",
        "SET memory_limit = '64GB'",
        "SET allowed_directories = ['/']",
        "SET lock_configuration = false",
        "RESET lock_configuration",
        "PRAGMA threads = 8",
    ],
)
def test_the_connection_is_locked_in(raw: duckdb.DuckDBPyConnection, tmp_path: Path, statement: str) -> None:
    """Whatever were to reach it, it reads one release and changes nothing."""
    other = write_table(tmp_path / "other.parquet", HOUSING)
    with pytest.raises(duckdb.Error):
        raw.cursor().execute(statement.format(other=other)).fetchall()
    assert not Path(f"{other}.new").exists()


def test_memory_is_bounded(raw: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.OutOfMemoryException):
        raw.execute("SELECT max(len(x)) FROM (SELECT list(range) AS x FROM range(50000000))").fetchall()


async def test_entries_in_memory_outlive_their_file(engine: Engine, file: Path) -> None:
    file.unlink()  # noqa: ASYNC240 - no other task uses the loop
    assert of(await look_up(engine, "36436", "00501")) == ["36436", "00501"]


async def test_entries_in_memory_are_those_of_the_file(engine: Engine, file: Path) -> None:
    """For as many keys as a list has, and for more, which one parameter brings."""
    reading = opened(file, in_memory=False)
    every = [zip_code for zip_code, _ in entry_file.read_entries(file)]
    for count in (1, 7, len(every)):
        assert await look_up(engine, *every[:count]) == await look_up(reading, *every[:count])
    reading.close()


async def test_what_does_not_fit_into_memory_is_read_from_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of it stays in memory, and operators see it."""
    rows = [(f"{number:05}", random.Random(number).randbytes(100_000)) for number in range(400)]
    file = tmp_path / FORECAST_AREA.entries
    entry_file.write_entries(file, ["zip_code"], [rows[at : at + 10] for at in range(0, 400, 10)])
    engine = opened(file, memory=32 << 20)
    assert await look_up(engine, rows[399][0], rows[0][0]) == [rows[399][1], rows[0][1]]
    databases = engine._connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()
    assert (FORECAST_AREA.name,) not in databases
    assert "cannot be loaded into memory" in caplog.text
    engine.close()


def test_memory_that_loading_took_is_given_back(tmp_path: Path) -> None:
    """In a process of its own, because memory that another test left would be used again."""
    file, word = tmp_path / FORECAST_AREA.entries, b"%08d" * 125
    rows = [(f"{number:05}", word % ((number,) * 125)) for number in range(60_000)]
    entry_file.write_entries(file, ["zip_code"], [rows[at : at + 512] for at in range(0, len(rows), 512)])
    done = subprocess.run([sys.executable, "-c", _LOADS, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def test_a_deleted_file_is_a_failure(file: Path) -> None:
    engine = opened(file, in_memory=False)
    file.unlink()  # noqa: ASYNC240 - no other task uses the loop
    with pytest.raises(LookupFailure):
        await look_up(engine, "36436")
    engine.close()


@pytest.mark.parametrize("damage", ["missing", "truncated", "text", "another table"])
def test_a_file_that_cannot_be_opened_is_a_failure_that_names_it(file: Path, damage: str) -> None:
    if damage == "missing":
        file.unlink()
    elif damage == "truncated":
        file.write_bytes(file.read_bytes()[:-9])
    elif damage == "text":
        file.write_text("entries")
    else:
        write_table(file, HOUSING)
    with pytest.raises(LookupFailure, match=r"forecast in .*release cannot be opened"):
        opened(file)


async def test_releases_may_be_anywhere(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path.joinpath("it's", "a*b", "a[b]c", "semi;colon", "entry=1", "größe"))
    publish(catalog, write_drop(tmp_path / "drop"))
    engine = opened(catalog.folder(catalog.current().id) / FORECAST_AREA.entries)
    (entry,) = await look_up(engine, "36436")
    assert entry.startswith(b'{"location":{"zip_code":"36436"')
    engine.close()


async def test_a_relative_data_folder_answers(tmp_path: Path, drop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = Catalog(Path("data"))
    publish(catalog, drop)
    engine = opened(catalog.folder(catalog.current().id) / FORECAST_AREA.entries)
    assert len(await look_up(engine, "36436")) == 1
    engine.close()
