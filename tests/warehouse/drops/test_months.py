"""Of which month a drop is: what tables say of it is kept, and no drop of two months goes through unnoticed."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.drops import HOUSING, LOCATIONS, Rows, homes, location, people, wide_people, write_drop, write_table
from tests.warehouse.helpers import finding, publish
from warehouse.drops.messages import ReadRequest, ReadResult
from warehouse.drops.pipeline import read_drop
from warehouse.releases.catalog import Catalog
from warehouse.schema.findings import make_report


def read(tmp_path: Path, folder: Path) -> ReadResult:
    out = tmp_path / "out"
    out.mkdir()
    return read_drop(ReadRequest(paths=(str(folder),), out=str(out), before=None))


def rules(read: ReadResult) -> list[str]:
    return [finding.rule for finding in read.findings]


def with_column(rows: Rows, name: str, *values: Any) -> Rows:
    """The rows with a column whose values repeat."""
    return [{**row, name: values[number % len(values)]} for number, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("name", "kind", "value", "as_of", "month", "found"),
    [
        ("UPDATED_AT", pa.date32(), date(2026, 10, 5), "2026-10-05", None, []),
        ("updated_at", pa.timestamp("us"), datetime(2026, 10, 5, 23, 59), "2026-10-05", None, []),  # noqa: DTZ001
        ("Updated_At", pa.string(), "2026-10-05T08:00:00", "2026-10-05", None, []),
        ("updated_at", pa.string(), " ", None, None, []),
        ("updated_at", pa.string(), "06/05/2026", None, None, ["06/05/2026"]),
        ("updated_at", pa.int64(), 20261005, None, None, ["20261005::BIGINT"]),
        ("updated_at", pa.list_(pa.int64()), [2026], None, None, ["[2026]::LIST"]),
        ("updated_at", pa.date32(), date(9999, 12, 31), None, None, ["9999-12-31"]),
        ("updated_at", pa.timestamp("ns", "UTC"), datetime(2026, 10, 5, tzinfo=UTC), "2026-10-05", None, []),
        ("updated_at", pa.uuid(), bytes(16), None, None, ["00000000-0000-0000-0000-000000000000::UUID"]),
        ("MONTH_CODE", pa.int32(), 10, None, 10, []),
        ("month_code", pa.decimal256(76, 38), Decimal(10), None, 10, []),
        ("month_code", pa.float16(), 10.0, None, None, ["10.0::FLOAT16"]),
        ("month_code", pa.string(), "10", None, 10, []),
        ("month_code", pa.float64(), 10.0, None, 10, []),
        ("month_code", pa.int32(), 13, None, None, ["13"]),
        ("month_code", pa.string(), "October", None, None, ["October"]),
    ],
)
def test_a_table_carries_its_day_and_month(
    tmp_path: Path, name: str, kind: pa.DataType, value: Any, as_of: str | None, month: int | None, found: list[str]
) -> None:
    """In any letter case and type; no column is ignored. A value that is no date is reported, an empty one is not."""
    drop = write_drop(tmp_path / "drop")
    write_table(drop / "zip_housing.parquet", with_column(HOUSING, name, value), {name: kind})
    done = read(tmp_path, drop)
    assert [(one.rule, one.severity, one.file) for one in done.findings] == [
        ("unreadable-date", "warning", "zip_housing.parquet") for _ in found
    ]
    assert [sample for one in done.findings for sample in one.samples] == found
    assert (done.tables["housing"].as_of, done.tables["housing"].month) == (as_of, month)
    assert (done.tables["population"].as_of, done.tables["population"].month) == (None, None)


def test_the_latest_day_of_all_parts_counts(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop", housing=None)
    for number, row in enumerate(HOUSING):
        write_table(drop / f"part-{number}.parquet", [{**row, "updated_at": f"2026-10-0{number + 4}"}])
    assert read(tmp_path, drop).tables["housing"].as_of == "2026-10-05"


def test_unreadable_dates_of_all_parts_are_one_finding_beside_those_that_can_be_read(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop", housing=None)
    write_table(drop / "a.parquet", with_column(HOUSING, "updated_at", "soon", "2026-10-05"))
    write_table(drop / "b.parquet", with_column([homes("63101"), homes("63102")], "updated_at", "later", "n/a"))
    done = read(tmp_path, drop)
    found = finding(make_report(done.findings), "unreadable-date")
    assert found.message == "3 value(s) of housing.updated_at cannot be read as dates from 2000 to 2100"
    assert (found.table, found.column, found.file, found.count) == ("housing", "updated_at", None, 3)
    assert found.samples == ("soon", "later", "n/a")
    assert done.tables["housing"].as_of == "2026-10-05"


def test_the_manifest_keeps_day_and_month(catalog: Catalog, tmp_path: Path) -> None:
    """Also of a table that stays when the next drop does not bring it."""
    drop = write_drop(tmp_path / "drop")
    write_table(drop / "zip_housing.parquet", with_column(HOUSING, "updated_at", "2026-10-05"))
    publish(catalog, drop)
    publish(catalog, write_drop(tmp_path / "next", housing=None, locations=LOCATIONS[:-1]))
    kept = catalog.current().tables["housing"]
    assert kept.carried_from
    assert kept.as_of == "2026-10-05"


def test_tables_exported_within_days_of_each_other_are_of_one_month(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop")
    write_table(drop / "zip_housing.parquet", with_column(HOUSING, "updated_at", "2026-10-01"))
    write_table(drop / "zip_locations.parquet", with_column(LOCATIONS, "updated_at", "2026-10-11"))
    assert rules(read(tmp_path, drop)) == []


def test_days_of_single_rows_say_nothing_of_the_export(tmp_path: Path) -> None:
    """A table may say when each row was changed last."""
    days = [(date(2024, 1, 1) + timedelta(days=100 * number)).isoformat() for number in range(9)]
    drop = write_drop(tmp_path / "drop")
    write_table(drop / "zip_locations.parquet", with_column(LOCATIONS, "updated_at", *days))
    write_table(drop / "zip_housing.parquet", with_column(HOUSING, "updated_at", "2026-10-05"))
    done = read(tmp_path, drop)
    assert rules(done) == []
    assert done.tables["locations"].as_of == days[-1]


def test_part_files_of_two_months_are_named_oldest_first(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop", housing=None)
    write_table(drop / "new.parquet", with_column(HOUSING[:1], "month_code", 10))
    write_table(drop / "old.parquet", with_column(HOUSING[1:], "month_code", 9))
    found = finding(make_report(read(tmp_path, drop).findings), "mixed-months")
    assert (found.severity, found.table, found.count) == ("error", "housing", 2)
    assert found.samples == ("old.parquet: month 9", "new.parquet: month 10")


def test_rows_that_repeat_because_of_another_month_follow_from_that(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop", housing=None)
    write_table(drop / "month=9" / "a.parquet", HOUSING)
    write_table(drop / "month=10" / "a.parquet", HOUSING)
    report = make_report(read(tmp_path, drop).findings)
    assert [(one.rule, one.follows) for one in report.findings if one.severity == "error"] == [
        ("mixed-months", None),
        ("duplicate-key", "mixed-months"),
    ]


@pytest.mark.parametrize(
    "folders",
    [
        "year=2026/month=10",
        "year=2026/month=October",
        "month=2026-10",
        "dt=2026-10-05",
        "ds=20261005",
        "date=2026-10-05/region=south",
        "day=5",
    ],
)
def test_a_drop_in_folders_of_its_month_is_good(tmp_path: Path, folders: str) -> None:
    drop = write_drop(tmp_path / "drop" / folders)
    dated = with_column(with_column(HOUSING, "month_code", 10), "updated_at", "2026-10-05")
    write_table(drop / "zip_housing.parquet", dated)
    assert not {"mixed-months", "wrong-folder"} & set(rules(read(tmp_path, tmp_path / "drop")))


def test_a_month_that_is_exported_early_in_the_next_one_is_in_its_folder(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop" / "year=2026" / "month=09")
    write_table(drop / "zip_housing.parquet", with_column(HOUSING, "updated_at", "2026-10-05"))
    assert "wrong-folder" not in rules(read(tmp_path, tmp_path / "drop"))


@pytest.mark.parametrize("own", [True, False])
def test_folders_of_years_are_data_of_a_long_table(tmp_path: Path, own: bool) -> None:
    """Whether the files have the year as a column as well or not."""
    drop = write_drop(tmp_path / "drop", population=None)
    for year in (2010, 2023):
        row = people("36436", year, 783)
        write_table(drop / f"year={year}" / "part.parquet", [row if own else {**row, "year": None}][:1])
        if not own:
            write_table(drop / f"year={year}" / "part.parquet", [{"zip_code": "36436", "tot_population": 783}])
    assert rules(read(tmp_path, drop)) == []


def test_a_wide_table_in_the_folder_of_a_year_has_data_of_many(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop", population=None)
    wide = wide_people("36436", TOT_CENSUS_POP_2010=531, TOT_FX_POP_2030=801)
    write_table(drop / "year=2026" / "month=10" / "wide.parquet", [wide])
    assert rules(read(tmp_path, drop)) == ["ignored-column"]


def test_locations_may_be_of_any_month_if_they_do_not_say(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop", locations=[*LOCATIONS, location("36437", "Jackson", "AL")])
    write_table(drop / "zip_housing.parquet", [{**homes("36436"), "month_code": 9}])
    assert rules(read(tmp_path, drop)) == []
