"""Ways to spoil a good drop: each leaves one fault behind in the folder that it is called with."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.drops import ALIASES, HOUSING, LOCATIONS, POPULATION, Rows, homes, people, project, write_table
from tests.warehouse.helpers import shorten

AT = "36436"
GOOD: Mapping[str, Rows] = {
    "zip_locations": LOCATIONS,
    "zip_population": POPULATION,
    "zip_housing": HOUSING,
    "zip_city_aliases": ALIASES,
    "development_projects": [project("A-1")],
}

Spoil = Callable[[Path], object]


def good_drop(folder: Path) -> Path:
    for name, rows in GOOD.items():
        write_table(folder / f"{name}.parquet", rows)
    return folder


def add(table: str, *rows: dict[str, Any], **types: pa.DataType) -> Spoil:
    return lambda folder: write_table(folder / f"{table}.parquet", [*GOOD[table], *rows], types)


def only(table: str, rows: Rows, **types: pa.DataType) -> Spoil:
    return lambda folder: write_table(folder / f"{table}.parquet", rows, types)


def renamed(table: str, **names: str) -> Spoil:
    rows = [{names.get(name, name): value for name, value in row.items()} for row in GOOD[table]]
    return only(table, rows)


def without(table: str, column: str) -> Spoil:
    return only(table, [{name: value for name, value in row.items() if name != column} for row in GOOD[table]])


def file(name: str, content: bytes) -> Spoil:
    return lambda folder: (folder / name).write_bytes(content)


def figures_as(kind: pa.DataType, *figures: Any) -> Spoil:
    """The population table with figures of another type."""
    rows = [people(AT, 2001 + at, figure) for at, figure in enumerate(figures)]
    return only("zip_population", rows, tot_population=kind)


def zip_codes_as(kind: pa.DataType, *zip_codes: Any) -> Spoil:
    return only("zip_housing", [homes(zip_code) for zip_code in zip_codes], zip_code=kind)


def instead(name: str, content: bytes, table: str = "zip_housing") -> Spoil:
    """A file in place of a table."""

    def spoil(folder: Path) -> None:
        (folder / f"{table}.parquet").unlink()
        (folder / name).write_bytes(content)

    return spoil


def in_folder(table: str, *inside: str) -> Spoil:
    """A table in a folder of its own, whose other entries (of no content) say what manages it."""

    def spoil(folder: Path) -> None:
        managed = folder / table
        for entry in inside:
            (managed / entry).parent.mkdir(parents=True, exist_ok=True)
            (managed / entry).write_bytes(b"{}")
        (folder / f"{table}.parquet").rename(managed / "part-0.parquet")

    return spoil


def dated(table: str, name: str, first: Any, rest: Any = None, kind: pa.DataType | None = None) -> Spoil:
    """The table with a column that dates it, of another value in the first row if `rest` is given."""
    rows = [{**row, name: rest if number and rest is not None else first} for number, row in enumerate(GOOD[table])]
    return only(table, rows, **{name: kind} if kind else {})


def each(*spoils: Spoil) -> Spoil:
    def spoil(folder: Path) -> None:
        for one in spoils:
            one(folder)

    return spoil


def moved(table: str, into: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / into).mkdir(parents=True, exist_ok=True)
        (folder / f"{table}.parquet").rename(folder / into / f"{table}.parquet")

    return spoil


def truncated(folder: Path) -> None:
    shorten(folder / "zip_housing.parquet")


def footer_gone(folder: Path) -> None:
    """Both markers are there, and nothing that makes sense between them."""
    (folder / "zip_housing.parquet").write_bytes(b"PAR1" + b"\xff" * 200 + b"PAR1")


def footer_of_zeros(folder: Path) -> None:
    """A hole, which takes no disk."""
    with (folder / "zip_housing.parquet").open("wb") as stream:
        stream.write(b"PAR1")
        stream.seek(65 << 20)
        stream.write((64 << 20 | 1).to_bytes(4, "little") + b"PAR1")


def pages_damaged(folder: Path) -> None:
    """The footer is whole, so the file is recognised; what it points to is not."""
    path = folder / "zip_population.parquet"
    rows = [people(AT, 1900 + at, 783 * at) for at in range(300)]
    write_table(path, rows, compression="snappy", use_dictionary=False)
    data, start = bytearray(path.read_bytes()), pq.read_metadata(path).row_group(0).column(2).data_page_offset
    data[start : start + 300] = b"\xff" * 300
    path.write_bytes(data)


def link_out(folder: Path) -> None:
    outside = write_table(folder.parent / "outside" / "zip_housing.parquet", HOUSING)
    (folder / "linked.parquet").symlink_to(outside)


def link_nowhere(folder: Path) -> None:
    (folder / "linked.parquet").symlink_to(folder / "gone.parquet")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe.parquet")


def name_not_text(folder: Path) -> None:
    """A name in Latin-1, as an archive from another system leaves it."""
    (folder / "zip_housing.parquet").rename(folder / os.fsdecode(b"Do\xf1a.parquet"))


def in_folders(folder: Path) -> None:
    (folder / "zip_population.parquet").unlink()
    rows = [{"zip_code": AT, "tot_population": 1}]
    write_table(folder / "year=unknown" / "part-0.parquet", rows)


def column_twice(folder: Path) -> None:
    columns = [pa.array(["36436"]), pa.array([1]), pa.array([2]), pa.array([2023])]
    names = ["zip_code", "tot_population", "TOT_POPULATION", "year"]
    pq.write_table(pa.table(columns, names=names), folder / "zip_population.parquet")


def no_rows(folder: Path) -> None:
    path = folder / "zip_housing.parquet"
    pq.write_table(pq.read_table(path).slice(0, 0), path)


def nothing(_: Path) -> None:
    """The fault is elsewhere."""
