"""Every type of a Parquet column becomes each kind of our columns exactly, or is refused by its name."""

import errno
import os
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.drops import POPULATION, location, people, project, write_drop, write_table
from tests.warehouse.helpers import NO_LIMITS, errors, examine, finding
from tests.warehouse.parquet_types import FORMS, Form, annotate, new, write_form
from warehouse.drops.messages import ReadRequest, ReadResult
from warehouse.drops.pipeline import read_drop
from warehouse.schema.column_types import TYPES, type_named
from warehouse.schema.findings import Finding
from warehouse.schema.tables import ColumnKind
from warehouse.sql import connections

# A column of each kind.
_OF_PROJECTS: dict[str, ColumnKind] = {
    "zip_code": "zip",
    "state_code": "state",
    "project_name": "text",
    "total_units": "integer",
    "latitude": "real",
    "start_date": "date",
}
_OF_LOCATIONS: dict[str, ColumnKind] = {"county_fips_code": "fips"}
# Types of DuckDB that no column of a Parquet file has.
_NEVER_READ = {"HUGEINT", "UHUGEINT", "ENUM", "TIMESTAMP_S", "TIMESTAMP_MS", "UNKNOWN"}
_NEVER_STORED = {"BIT", "BIGNUM", "TUPLE", "TYPE", "UNION"}

# Causes that say more of a value than its type does.
_OF_VALUES = (
    "true or false",
    "several values in one",
    "a nested value",
    "a state's FIPS number",
    "was a float",
    "a date",
)


def text_of(row: dict[str, Any], *without: str) -> dict[str, str]:
    """The other columns, as text."""
    return {name: "" if value is None else str(value) for name, value in row.items() if name not in without}


def test_a_type_becomes_each_kind_of_column_exactly_or_is_refused_by_its_name(tmp_path: Path) -> None:
    """All forms are files of one drop, which takes a fifth of the time."""
    for name, form in FORMS.items():
        write_form(form, tmp_path / f"{name}.p", _OF_PROJECTS, text_of(project(name), *_OF_PROJECTS))
        described = text_of(location("36436", "Dickinson", "AL"), *_OF_LOCATIONS)
        write_form(form, tmp_path / f"{name}.l", _OF_LOCATIONS, described)
    found = examine(tmp_path)
    assert not [one for one in found.report.findings if one.rule == "unreadable-file"]
    unreadable = {(one.file, one.column): one for one in found.report.findings if one.rule == "unreadable-value"}
    for ending, table, columns in ((".p", "development_projects", _OF_PROJECTS), (".l", "locations", _OF_LOCATIONS)):
        rows = {file: row for file, *row in found.rows(table, "_file", *columns)}
        assert rows.keys() == {name + ending for name in FORMS}
        for (name, form), (column, kind) in product(FORMS.items(), columns.items()):
            file = name + ending
            assert rows[file][list(columns).index(column)] == form.becomes.get(kind), (file, column)
            refused = kind not in form.becomes and form.held != "NULL"
            assert ((file, column) in unreadable) == refused, (file, column)
            if refused:
                _is_named(form, kind, unreadable[file, column])


def _is_named(form: Form, kind: ColumnKind, one: Finding) -> None:
    if kind in type_named(form.held).conversions:  # the value does not fit, not the type
        return
    assert one.samples[0].endswith(f"::{form.held}")
    assert one.cause in (f"the type {form.held}", *_OF_VALUES)
    assert one.remedy


def test_every_type_of_the_table_is_tried_here() -> None:
    assert {form.held for form in FORMS.values()} == {one.name for one in TYPES} - _NEVER_READ


def test_the_table_has_every_type_of_duckdb() -> None:
    names = {
        name for (name,) in connections.connect().execute("SELECT DISTINCT logical_type FROM duckdb_types()").fetchall()
    }
    suffixes = {"DECIMAL": "(9,2)", "STRUCT": "(a INTEGER)", "MAP": "(VARCHAR, INTEGER)", "ENUM": "('a')"}
    held = {
        name: {"LIST": "INTEGER[]", "ARRAY": "INTEGER[2]"}.get(name, name + suffixes.get(name, "")) for name in names
    }
    assert {name for name, full in held.items() if type_named(full).name == "UNKNOWN"} == _NEVER_STORED


@pytest.mark.parametrize("name", ["half", "list", "time", "boolean", "interval"])
def test_a_column_without_a_value_is_read_whatever_its_type(tmp_path: Path, name: str) -> None:
    kind = FORMS[name].kind if isinstance(FORMS[name].kind, pa.DataType) else pa.float16()
    write_table(tmp_path / "a.parquet", [people("36436", 2023, None)], {"tot_population": kind})
    found = examine(tmp_path)
    assert found.values("population", "tot_population") == [None]
    assert not errors(found.report)


def test_half_precision_is_refused_because_it_rounds(tmp_path: Path) -> None:
    """The figures were 2,049 and 783: both look like whole numbers."""
    rows = [people("36436", 2022, 2049.0), people("36436", 2023, 783.0)]  # type: ignore[arg-type]
    write_table(tmp_path / "a.parquet", rows, {"tot_population": pa.float16()})
    found = finding(examine(tmp_path).report, "unreadable-value")
    assert (found.count, found.cause) == (2, "the type FLOAT16")
    assert found.remedy == "FLOAT16 rounds: export it as BIGINT"
    assert found.samples[0] == "row 1 36436 2022 has 2048.0::FLOAT16"


@pytest.mark.parametrize("figure", ["0", "229", "-0", "1000000", "999999"])
def test_wide_decimals_of_whole_numbers_are_whole(tmp_path: Path, figure: str) -> None:
    """BIGNUMERIC of BigQuery. As a DOUBLE of DuckDB, 229 is 228.99999999999997."""
    row = people("36436", 2023, Decimal(figure))  # type: ignore[arg-type]
    write_table(tmp_path / "a.parquet", [row], {"tot_population": pa.decimal256(76, 38)})
    found = examine(tmp_path)
    assert found.values("population", "tot_population") == [int(figure)]
    assert not errors(found.report)


@pytest.mark.parametrize("figure", ["0.5", "0.0000001", "228.99999999999997", "1E+37"])
def test_wide_decimals_of_other_numbers_are_refused(tmp_path: Path, figure: str) -> None:
    row = people("36436", 2023, Decimal(figure))  # type: ignore[arg-type]
    write_table(tmp_path / "a.parquet", [row], {"tot_population": pa.decimal256(76, 38)})
    assert finding(examine(tmp_path).report, "unreadable-value").column == "tot_population"


@pytest.mark.parametrize("degrees", ["34.0522", "-118.2437", "0.7", "61.2", "-0.6000001"])
def test_coordinates_in_wide_decimals_get_no_noise(tmp_path: Path, degrees: str) -> None:
    row = location("36436", "Dickinson", "AL", latitude=Decimal(degrees))
    write_table(tmp_path / "a.parquet", [row], {"latitude": pa.decimal256(76, 38)})
    assert examine(tmp_path).values("locations", "latitude") == [float(degrees)]


@pytest.mark.parametrize(
    ("kind", "number"),
    [(pa.decimal128(38, 0), 10**30 + 1), (pa.decimal256(50, 0), 10**45 + 1), (pa.uint64(), 2**64 - 1)],
)
def test_ids_that_are_numbers_are_kept_digit_by_digit(tmp_path: Path, kind: pa.DataType, number: int) -> None:
    """NUMBER(38,0) of Snowflake is such a type."""
    value = Decimal(number) if pa.types.is_decimal(kind) else number
    write_table(tmp_path / "a.parquet", [{**project(""), "project_id": value}], {"project_id": kind})
    found = examine(tmp_path)
    assert found.values("development_projects", "project_id") == [str(number)]
    assert not errors(found.report)


def test_unsigned_numbers_of_writers_without_the_old_notation_keep_their_sign(tmp_path: Path) -> None:
    """DuckDB reads 3,000,000,000 as a negative number."""
    row = {**project(""), "project_id": 3_000_000_000 - 2**32}
    path = write_table(tmp_path / "a.parquet", [row], {"project_id": pa.int32()}, store_schema=False)
    annotate(path, "project_id", new(10, b"\x13\x20\x12"))
    assert examine(tmp_path).values("development_projects", "project_id") == ["3000000000"]


def test_rows_and_the_month_are_read_from_an_exact_copy_as_well(tmp_path: Path) -> None:
    """Row numbers are those of the file, over many batches."""
    rows = [people("36436", 2000, Decimal(row)) for row in range(20_000)]  # type: ignore[arg-type]
    rows[19_000] = people("3643", 2000, Decimal(7))  # type: ignore[arg-type]
    write_table(tmp_path / "a.parquet", rows, {"tot_population": pa.decimal256(40, 1)})
    found = examine(tmp_path)
    assert finding(found.report, "unreadable-value").samples == ("row 19001 2000 has 3643",)
    assert sum(found.values("population", "tot_population")) == sum(range(20_000)) - 19_000 + 7


def wide_population(folder: Path) -> Path:
    rows = [{**row, "tot_population": Decimal(row["tot_population"])} for row in POPULATION]
    drop = write_drop(folder, population=None)
    kinds = {"tot_population": pa.decimal256(76, 38)}
    return write_table(drop / "zip_population.parquet", rows, kinds, write_page_checksum=True, compression="none")


def read(path: Path) -> ReadResult:
    out = path.parent.parent / "out" / "tables"
    out.mkdir(parents=True)
    found = read_drop(ReadRequest(paths=(str(path.parent),), out=str(out), before=None, limits=NO_LIMITS))
    assert [one.name for one in out.parent.iterdir()] == ["tables"], "no copy is left"
    return found


def test_a_drop_with_an_exact_copy_is_published_like_any_other(tmp_path: Path) -> None:
    found = read(wide_population(tmp_path / "drop"))
    assert not [one for one in found.findings if one.severity == "error"]
    assert found.tables["population"].rows == len(POPULATION)


def test_a_damaged_file_is_not_copied(tmp_path: Path) -> None:
    path = wide_population(tmp_path / "drop")
    path.write_bytes(path.read_bytes().replace((783 * 10**38).to_bytes(32), (784 * 10**38).to_bytes(32), 1))
    assert "unreadable-file" in [one.rule for one in read(path).findings]


def test_a_full_disk_is_not_the_fault_of_a_drop_that_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("warehouse.drops.exact_copies.pq.ParquetWriter", full)
    found = read(wide_population(tmp_path / "drop"))
    assert (found.failure, found.findings) == ("the drop cannot be copied: No space left on device", ())
