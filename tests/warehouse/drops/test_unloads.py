"""The same tables, unloaded in every way that warehouses have: each is the release that is current already."""

import random
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.drops import ALIASES, HOUSING, LOCATIONS, POPULATION, Rows, people, project, write_drop, write_table
from tests.warehouse.helpers import NO_LIMITS, publish
from warehouse.drops.messages import ReadRequest
from warehouse.drops.pipeline import read_drop
from warehouse.releases.catalog import Catalog, TableInfo

_PROJECTS: Rows = (project("p1"), project("p2", start_date=None, total_units=None))
_TABLES: Mapping[str, Rows] = {
    "locations": LOCATIONS,
    "population": POPULATION,
    "housing": HOUSING,
    "aliases": ALIASES,
    "projects": _PROJECTS,
}
# Of `write_table`, by table: what a writer does to rows, and with which types and options it writes them.
Writer = Callable[[Path, str, Rows], None]


def options(**given: Any) -> Writer:
    return lambda folder, name, rows: _wrote(write_table(folder / f"{name}.parquet", rows, **given))


def typed(kinds: Mapping[type, pa.DataType], convert: Callable[[Any], Any] = lambda value: value) -> Writer:
    """Columns whose values are of these Python types are written in another type."""

    def write(folder: Path, name: str, rows: Rows) -> None:
        kind_of = {column: {type(row[column]) for row in rows} - {type(None)} for column in rows[0]}
        types = {column: kinds[kind] for column, held in kind_of.items() for kind in held if kind in kinds}
        changed = [
            {column: convert(held) if column in types and held is not None else held for column, held in row.items()}
            for row in rows
        ]
        write_table(folder / f"{name}.parquet", changed, types)

    return write


def renamed(spell: Callable[[str], str]) -> Writer:
    def write(folder: Path, name: str, rows: Rows) -> None:
        path = write_table(folder / f"{name}.parquet", rows)
        table = pq.read_table(path)
        pq.write_table(table.rename_columns([spell(column) for column in table.column_names]), path)

    return write


def codecs(folder: Path, name: str, rows: Rows) -> None:
    """Each column in a codec of its own."""
    known = cycle(("none", "snappy", "gzip", "brotli", "zstd", "lz4"))
    write_table(folder / f"{name}.parquet", rows, compression=dict(zip(rows[0], known, strict=False)))


def shuffled(folder: Path, name: str, rows: Rows) -> None:
    """Rows and columns in no order, with columns that are not needed."""
    order = random.Random(name)
    columns = order.sample(list(rows[0]), len(rows[0]))
    mixed = [{**{column: row[column] for column in columns}, "batch": "7"} for row in order.sample(rows, len(rows))]
    write_table(folder / f"{name}.parquet", mixed)


def spark(folder: Path, name: str, rows: Rows) -> None:
    """A folder of parts without a row in some, checksums and markers beside them, text padded."""
    parts = folder / f"{name}.parquet"

    def padded(value: Any) -> Any:
        return f"  {value} " if isinstance(value, str) else value

    for number, row in enumerate(rows):
        given = {column: padded(value) for column, value in row.items()}
        part = write_table(parts / f"part-{number:05}-c000.snappy.parquet", [given], write_page_checksum=True)
        (parts / f".{part.name}.crc").write_bytes(b"crc")
    empty = write_table(parts / "part-99999.parquet", rows)
    pq.write_table(pq.read_table(empty).slice(0, 0), empty)
    (parts / "_SUCCESS").touch()
    (parts / "_temporary").mkdir()
    (parts / "_temporary" / "half.parquet").write_bytes(b"PAR1")


def by_state(folder: Path, name: str, rows: Rows) -> None:
    """`key=value` folders hold what their files leave out: the state, or the year."""
    key = next((column for column in ("state_code", "year") if column in rows[0]), None)
    if key is None:
        write_table(folder / f"{name}.parquet", rows)
        return
    for value in {row[key] for row in rows}:
        inside = [{column: held for column, held in row.items() if column != key} for row in rows if row[key] == value]
        write_table(folder / name / f"{key.upper()}={value}" / "part-0.parquet", inside)


def by_null(folder: Path, name: str, rows: Rows) -> None:
    """Snowflake's `PARTITION BY`: rows without a value are in a folder of their own."""
    for number, row in enumerate(rows):
        part = "__NULL__" if number % 2 else f"batch={number}"
        write_table(folder / name / part / f"data_{number}_0_0.snappy.parquet", [row])


def mixed_types(folder: Path, name: str, rows: Rows) -> None:
    """A part with integers beside one with text, and one whose writer had nothing to guess a type from."""
    for number, row in enumerate(rows):
        zips = {"zip_code": pa.int32()} if number % 2 and row.get("zip_code") else {}
        given = {**row, "zip_code": int(row["zip_code"])} if zips else row
        nothing = {column: pa.null() for column, value in row.items() if value is None}
        write_table(folder / name / f"data_{number}_0_0", [given], {**zips, **nothing})


def wide(folder: Path, name: str, rows: Rows) -> None:
    """A column for each year, its name in upper case, as text."""
    if name != "population":
        renamed(str.upper)(folder, name, rows)
        return
    years = sorted({row["year"] for row in rows})
    columns = {year: f"TOT_{'CENSUS' if year < 2020 else 'FX'}_POP_{year}" for year in years}
    figures: dict[str, dict[str, Any]] = {}
    for row in rows:
        figures.setdefault(row["zip_code"], dict.fromkeys(columns.values()))[columns[row["year"]]] = str(
            row["tot_population"]
        )
    table = [{"ZIP_CODE": zip_code, **of} for zip_code, of in figures.items()]
    write_table(folder / f"{name}.parquet", table, dict.fromkeys(columns.values(), pa.string()))


def _wrote(_: Path) -> None:
    return None


WRITERS: Mapping[str, Writer] = {
    "codecs": codecs,
    "data page 2": options(data_page_version="2.0", write_page_checksum=True),
    "format 1.0": options(version="1.0", use_deprecated_int96_timestamps=True),
    "small pages and groups": options(row_group_size=1, data_page_size=1, use_dictionary=False),
    "no statistics": options(write_statistics=False, store_schema=False),
    "page index": options(write_page_index=True),
    "dictionary types": typed({str: pa.dictionary(pa.int16(), pa.string())}),
    "large text": typed({str: pa.large_string()}),
    "bare bytes": typed({str: pa.binary()}, str.encode),
    "doubles": typed({int: pa.float64()}, float),
    "decimals": typed({int: pa.decimal128(38, 0), float: pa.decimal128(18, 6)}, lambda value: Decimal(str(value))),
    "unsigned": typed({int: pa.uint64()}),
    "numbers as text": typed({int: pa.string(), float: pa.string()}, str),
    "upper case": renamed(str.upper),
    "mixed case": renamed(str.title),
    "padded names": renamed(lambda name: f" {name} "),
    "shuffled": shuffled,
    "parts as Spark writes them": spark,
    "key=value folders": by_state,
    "folder of NULL": by_null,
    "parts of mixed types": mixed_types,
    "wide": wide,
}


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """A release of the tables, unloaded plainly."""
    folder = tmp_path_factory.mktemp("unloads")
    catalog = Catalog(folder / "data")
    assert publish(catalog, write_drop(folder / "drop", projects=_PROJECTS)).result == "published"
    return catalog


@pytest.mark.parametrize("writer", WRITERS)
def test_however_it_was_unloaded_its_tables_are_the_same(current: Catalog, tmp_path: Path, writer: str) -> None:
    """So is the release then, as below: its id has the checksums of its tables."""
    for name, rows in _TABLES.items():
        WRITERS[writer](tmp_path / "drop", name, rows)
    (tmp_path / "tables").mkdir()
    request = ReadRequest(paths=(str(tmp_path / "drop"),), out=str(tmp_path / "tables"), before=None, limits=NO_LIMITS)
    read = read_drop(request)
    assert (read.no_drop, read.failure, read.kept) == (None, None, ())
    assert not [found for found in read.findings if found.severity == "error"]
    assert contents_of(read.tables) == contents_of(current.current().tables)


def contents_of(tables: Mapping[str, TableInfo]) -> dict[str, tuple[int, str]]:
    return {name: (info.rows, info.checksum) for name, info in tables.items()}


@pytest.mark.parametrize("writer", ["parts of mixed types", "wide"])
def test_the_same_tables_are_the_release_that_is_current_already(current: Catalog, tmp_path: Path, writer: str) -> None:
    for name, rows in _TABLES.items():
        WRITERS[writer](tmp_path, name, rows)
    outcome = publish(current, tmp_path)
    assert outcome.result == "already_current", outcome.report.findings
    assert not [found for found in outcome.report.findings if found.severity == "error"]


def test_another_figure_is_another_release(current: Catalog, tmp_path: Path) -> None:
    """The comparison above would notice."""
    write_table(tmp_path / "population.parquet", [*POPULATION, people("36436", 2024, 784)])
    assert publish(current, tmp_path).result == "published"
