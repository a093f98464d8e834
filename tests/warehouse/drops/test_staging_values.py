"""What becomes of the values of a drop, whatever types its writer chose."""

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.drops import location, people, project, write_table
from tests.warehouse.helpers import Examined, errors, examine, finding


def one_population(path: Path, figures: list[Any], kind: pa.DataType) -> Examined:
    """A population table with these figures, one year each."""
    rows = [people("36436", 2000 + number, None) for number in range(len(figures))]
    rows = [{**row, "tot_population": figure} for row, figure in zip(rows, figures, strict=True)]
    write_table(path / "a.parquet", rows, {"tot_population": kind})
    return examine(path)


def one_column_of_zips(path: Path, zips: list[Any], kind: pa.DataType) -> Examined:
    write_table(path / "a.parquet", [people(value, 2023, 1) for value in zips], {"zip_code": kind})
    return examine(path)


@pytest.mark.parametrize(
    ("kind", "zips"),
    [
        (pa.int16(), [501, 6390]),
        (pa.int64(), [501, 6390]),
        (pa.uint32(), [501, 6390]),
        (pa.float32(), [501.0, 6390.0]),
        (pa.float64(), [501.0, 6390.0]),
        (pa.decimal128(10, 0), [Decimal(501), Decimal(6390)]),
        (pa.decimal128(38, 4), [Decimal(501), Decimal(6390)]),
        (pa.string(), ["00501", " 06390 "]),
        (pa.large_string(), ["00501\n", "\t06390"]),
        (pa.binary(), [b"00501", b"06390"]),
        (pa.binary(5), [b"00501", b"06390"]),
        (pa.dictionary(pa.int32(), pa.string()), ["00501", "06390"]),
    ],
)
def test_zip_codes_keep_their_leading_zeros_in_every_type(tmp_path: Path, kind: pa.DataType, zips: list[Any]) -> None:
    found = one_column_of_zips(tmp_path, zips, kind)
    assert found.values("population", "zip_code") == ["00501", "06390"]
    assert not errors(found.report)


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (pa.string(), "501"),
        (pa.string(), "36436-1234"),
        (pa.string(), "3643O"),
        (pa.string(), "٣٦٤٣٦"),
        (pa.int64(), 100_000),
        (pa.int64(), -501),
        (pa.float64(), 501.5),
        (pa.float64(), float("nan")),
        (pa.float64(), float("inf")),
        (pa.bool_(), True),
        (pa.date32(), date(2024, 1, 1)),
    ],
)
def test_what_is_no_zip_code_is_an_error_with_its_row(tmp_path: Path, kind: pa.DataType, bad: Any) -> None:
    """Four digits of text may have lost a zero or another digit: it cannot be known."""
    found = finding(one_column_of_zips(tmp_path, [bad], kind).report, "unreadable-value")
    assert (found.severity, found.column, found.file) == ("error", "zip_code", "a.parquet")
    assert found.samples[0].startswith("row 1 ")


@pytest.mark.parametrize(
    ("kind", "figures"),
    [
        (pa.int8(), [7]),
        (pa.uint64(), [7]),
        (pa.float32(), [7.0]),
        (pa.float64(), [7.0]),
        (pa.decimal128(9, 0), [Decimal(7)]),
        (pa.decimal128(38, 9), [Decimal(7)]),
        (pa.decimal256(50, 0), [Decimal(7)]),
        (pa.string(), ["7"]),
        (pa.string(), [" 7 "]),
        (pa.string(), ["7.00"]),
        (pa.string(), ["+7"]),
        (pa.dictionary(pa.int8(), pa.int64()), [7]),
    ],
)
def test_whole_numbers_are_right_in_every_type(tmp_path: Path, kind: pa.DataType, figures: list[Any]) -> None:
    found = one_population(tmp_path, figures, kind)
    assert found.values("population", "tot_population") == [7]
    assert not errors(found.report)


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (pa.float64(), 7.5),
        (pa.float64(), float("nan")),
        (pa.float64(), float("inf")),
        (pa.float64(), float("-inf")),
        (pa.float64(), 1e300),
        (pa.float32(), 0.25),
        (pa.decimal128(9, 2), Decimal("7.01")),
        (pa.uint64(), 2**64 - 1),
        (pa.string(), "7.5"),
        (pa.string(), "7,000"),
        (pa.string(), "1e3"),
        (pa.string(), "n/a"),
        (pa.string(), "99999999999999999999"),
        (pa.bool_(), True),
    ],
)
def test_what_is_no_whole_number_is_an_error_and_never_rounded(tmp_path: Path, kind: pa.DataType, bad: Any) -> None:
    report = one_population(tmp_path, [bad], kind).report
    found = finding(report, "unreadable-value")
    assert (found.severity, found.column, found.file) == ("error", "tot_population", "a.parquet")
    assert found.samples[0].startswith("row 1 ")


def test_errors_count_every_row_and_show_the_first_five(tmp_path: Path) -> None:
    found = finding(one_population(tmp_path, [1.0, *([0.5] * 7)], pa.float64()).report, "unreadable-value")
    assert found.count == 7
    assert found.samples == tuple(f"row {row} 36436 {1999 + row} has 0.5" for row in range(2, 7))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_coordinates_are_finite(tmp_path: Path, bad: float) -> None:
    write_table(tmp_path / "a.parquet", [location("36436", "Dickinson", "AL", latitude=bad)])
    assert finding(examine(tmp_path).report, "unreadable-value").column == "latitude"


def test_text_is_trimmed_and_blank_text_is_no_value(tmp_path: Path) -> None:
    """Fixed-width exports pad; no-break spaces come from spreadsheets."""
    row = location(" 36436", "  Dickinson\u00a0", "al ", county_name="   ", county_fips_code=" 01025 ")
    write_table(tmp_path / "a.parquet", [row])
    columns = ("zip_code", "city_name", "state_code", "county_name", "county_fips_code")
    assert examine(tmp_path).rows("locations", *columns) == [("36436", "Dickinson", "AL", None, "01025")]


@pytest.mark.parametrize("text", ["Doña Ana", "uau 0a0 u", "O'Fallon", 'the "X"', "{city}", "a|b", "北京"])
def test_text_is_kept_letter_by_letter(tmp_path: Path, text: str) -> None:
    write_table(tmp_path / "a.parquet", [location("36436", text, "AL")])
    assert examine(tmp_path).values("locations", "city_name") == [text]


def test_text_that_is_not_utf_8_is_an_error(tmp_path: Path) -> None:
    """Old writers mark text as bare bytes, which may be in any encoding."""
    row = {**location("36436", "x", "AL"), "city_name": "Doña Ana".encode("latin-1")}
    write_table(tmp_path / "a.parquet", [row], {"city_name": pa.binary()})
    found = finding(examine(tmp_path).report, "unreadable-value")
    assert (found.file, found.column, found.cause) == ("a.parquet", "city_name", "text that is not UTF-8")
    assert found.samples == (r"row 1 36436 has Do\xF1a Ana",)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.list_(pa.int64()), [783]),
        (pa.struct({"figure": pa.int64()}), {"figure": 783}),
        (pa.map_(pa.string(), pa.int64()), [("figure", 783)]),
        (pa.list_(pa.decimal128(9, 0)), [Decimal(783)]),
        (pa.time32("s"), 783),
    ],
)
def test_nested_and_foreign_types_are_refused(tmp_path: Path, kind: pa.DataType, value: Any) -> None:
    found = finding(one_population(tmp_path, [value], kind).report, "unreadable-value")
    assert (found.column, found.file) == ("tot_population", "a.parquet")


def test_dates_may_be_timestamps_or_text(tmp_path: Path) -> None:
    kinds = {"start_date": pa.timestamp("us"), "completion_date": pa.string(), "status_date": pa.timestamp("ns")}
    started, changed = datetime(2024, 1, 2, 23, 30), datetime(2024, 3, 4)  # noqa: DTZ001 - as drops have them
    row = project("A-1", start_date=started, completion_date="2024-02-03", status_date=changed)
    write_table(tmp_path / "a.parquet", [row], kinds)
    found = examine(tmp_path).rows("development_projects", "start_date", "completion_date", "status_date")
    assert found == [(date(2024, 1, 2), date(2024, 2, 3), date(2024, 3, 4))]
