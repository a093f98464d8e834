"""What becomes of the values of a drop, whatever types its writer chose."""

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.drops import (
    HOUSING,
    LOCATIONS,
    POPULATION,
    alias,
    homes,
    location,
    people,
    project,
    wide_people,
    write_table,
)
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
    """Four digits of text may have lost a zero or another digit: nobody can know."""
    found = finding(one_column_of_zips(tmp_path, [bad], kind).report, "unreadable-value")
    assert (found.severity, found.column, found.file) == ("error", "zip_code", "a.parquet")
    assert found.samples[0].startswith("row 1: ")


def test_parts_of_different_types_do_not_decide_for_one_another(tmp_path: Path) -> None:
    """An INTEGER part beside a VARCHAR part: 501 and 00501 are the same ZIP code."""
    write_table(tmp_path / "part-0.parquet", [people(501, 2022, 1)], {"zip_code": pa.int32()})  # type: ignore[arg-type]
    write_table(tmp_path / "part-1.parquet", [people("00501", 2023, 2)])
    found = examine(tmp_path)
    assert found.rows("population", "zip_code", "year") == [("00501", 2022), ("00501", 2023)]
    assert not errors(found.report)


def test_a_part_whose_text_lost_its_zeros_is_an_error_beside_a_right_one(tmp_path: Path) -> None:
    write_table(tmp_path / "part-0.parquet", [people(501, 2022, 1)], {"zip_code": pa.int32()})  # type: ignore[arg-type]
    write_table(tmp_path / "part-1.parquet", [people("501", 2023, 2)])
    found = finding(examine(tmp_path).report, "unreadable-value")
    assert (found.file, found.samples) == ("part-1.parquet", ("row 1: 501",))


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
    assert found.samples[0].startswith("row 1: ")


def test_errors_count_every_row_and_show_the_first_five(tmp_path: Path) -> None:
    found = finding(one_population(tmp_path, [1.0, *([0.5] * 7)], pa.float64()).report, "unreadable-value")
    assert found.count == 7
    assert found.samples == tuple(f"row {row}: 0.5" for row in range(2, 7))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_coordinates_are_finite(tmp_path: Path, bad: float) -> None:
    write_table(tmp_path / "a.parquet", [location("36436", "Dickinson", "AL", latitude=bad)])
    assert finding(examine(tmp_path).report, "unreadable-value").column == "latitude"


def test_coordinates_may_be_decimals_or_text(tmp_path: Path) -> None:
    row = location("36436", "Dickinson", "AL", latitude=Decimal("31.7061"), longitude=" -87.9999 ")
    kinds = {"latitude": pa.decimal128(9, 4), "longitude": pa.string()}
    write_table(tmp_path / "a.parquet", [row], kinds)
    assert examine(tmp_path).rows("locations", "latitude", "longitude") == [(31.7061, -87.9999)]


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
    assert finding(examine(tmp_path).report, "unreadable-file").file == "a.parquet"


def test_many_parts_are_one_table(tmp_path: Path) -> None:
    for number in range(40):
        write_table(tmp_path / f"part-{number:03}.parquet", [people(f"{number:05}", 2023, number)])
    found = examine(tmp_path)
    assert found.values("population", "tot_population") == list(range(40))
    assert not errors(found.report)


def test_parts_may_have_no_row_as_long_as_one_has(tmp_path: Path) -> None:
    write_table(tmp_path / "part-0.parquet", [people("36436", 2023, 783)])
    pq.write_table(pq.read_table(tmp_path / "part-0.parquet").slice(0, 0), tmp_path / "part-1.parquet")
    found = examine(tmp_path)
    assert found.values("population", "zip_code") == ["36436"]
    assert not found.report.findings


@pytest.mark.parametrize(
    "kind", [pa.null(), pa.int32(), pa.float64(), pa.bool_(), pa.list_(pa.int32()), pa.struct({"a": pa.int8()})]
)
def test_a_column_without_a_value_may_have_any_type(tmp_path: Path, kind: pa.DataType) -> None:
    """Writers guess the type of a column of NULLs; the parts beside it have the right one."""
    write_table(tmp_path / "part-0.parquet", LOCATIONS)
    empty = {"county_name": None, "latitude": None}
    row = location("36437", "Jackson", "AL", **empty)
    write_table(tmp_path / "part-1.parquet", [row], {"county_name": kind, "latitude": kind})
    found = examine(tmp_path)
    assert ("36437", None, None) in found.rows("locations", "zip_code", "county_name", "latitude")
    assert not errors(found.report)


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


def test_key_value_folders_are_read_as_text_columns(tmp_path: Path) -> None:
    """The year of a partitioned unload is in the folder's name alone."""
    for year in (2022, 2023):
        rows = [{"zip_code": "00501", "tot_population": year}]
        write_table(tmp_path / f"year={year}" / "part-0.parquet", rows)
    assert examine(tmp_path).rows("population", "year", "tot_population") == [(2022, 2022), (2023, 2023)]


def test_a_zip_code_in_a_folder_name_keeps_its_zeros(tmp_path: Path) -> None:
    write_table(tmp_path / "zip_code=00501" / "part-0.parquet", [{"year": 2023, "tot_population": 1}])
    assert examine(tmp_path).values("population", "zip_code") == ["00501"]


def test_a_folder_of_null_is_a_missing_value(tmp_path: Path) -> None:
    rows = [{"zip_code": "00501", "tot_population": 1}]
    write_table(tmp_path / "year=__HIVE_DEFAULT_PARTITION__" / "part-0.parquet", rows)
    assert finding(examine(tmp_path).report, "missing-value").column == "year"


def test_the_column_of_a_file_wins_over_a_folder_of_its_name(tmp_path: Path) -> None:
    """What key=value folders there are above, or in, a drop must never overwrite what was exported."""
    write_table(tmp_path / "zip_code=99999" / "a.parquet", [people("36436", 2023, 783)])
    assert examine(tmp_path).values("population", "zip_code") == ["36436"]


@pytest.mark.parametrize(
    "name", ["it's", "a*b", "a?b", "a[b]c", "[", "two words", "größe–é", '"quoted"', "semi;colon", "{x}"]
)
def test_drops_may_have_any_name(tmp_path: Path, name: str) -> None:
    """Nothing in a path is a pattern, a quote or a placeholder; a sibling that a pattern would hit is not read."""
    write_table(tmp_path / name / f"{name}.parquet", [people("36436", 2023, 783)])
    write_table(tmp_path / "axb" / "axb.parquet", [people("90028", 2023, 1)])
    found = examine(tmp_path / name)
    assert found.values("population", "zip_code") == ["36436"]
    assert found.values("population", "_file") == [f"{name}.parquet"]


def test_empty_cells_of_the_wide_shape_are_years_without_a_figure(tmp_path: Path) -> None:
    rows = [
        wide_people("36436", TOT_CENSUS_POP_2010=None, TOT_CENSUS_POP_2011=5),
        wide_people("90028", TOT_CENSUS_POP_2010=0, TOT_CENSUS_POP_2011=None),
    ]
    write_table(tmp_path / "a.parquet", rows)
    found = examine(tmp_path)
    assert found.rows("population", "zip_code", "year", "tot_population") == [("36436", 2011, 5), ("90028", 2010, 0)]
    assert not found.report.count("warning")


def test_blank_cells_of_the_wide_shape_are_empty_ones(tmp_path: Path) -> None:
    rows = [wide_people("36436", TOT_CENSUS_POP_2010="", TOT_CENSUS_POP_2011="5")]
    text = {"TOT_CENSUS_POP_2010": pa.string(), "TOT_CENSUS_POP_2011": pa.string()}
    write_table(tmp_path / "a.parquet", rows, text)
    found = examine(tmp_path)
    assert found.rows("population", "year", "tot_population") == [(2011, 5)]
    assert not found.report.count("warning")


def test_an_unreadable_cell_of_the_wide_shape_names_its_column(tmp_path: Path) -> None:
    rows = [wide_people("36436", TOT_CENSUS_POP_2010=1.0, TOT_FX_POP_2030=1.5)]
    floats = {"TOT_CENSUS_POP_2010": pa.float64(), "TOT_FX_POP_2030": pa.float64()}
    write_table(tmp_path / "a.parquet", rows, floats)
    assert finding(examine(tmp_path).report, "unreadable-value").samples == ("row 1: 1.5 in tot_fx_pop_2030",)


def test_dates_may_be_timestamps_or_text(tmp_path: Path) -> None:
    kinds = {"start_date": pa.timestamp("us"), "completion_date": pa.string(), "status_date": pa.timestamp("ns")}
    started, changed = datetime(2024, 1, 2, 23, 30), datetime(2024, 3, 4)  # noqa: DTZ001 - as drops have them
    row = project("A-1", start_date=started, completion_date="2024-02-03", status_date=changed)
    write_table(tmp_path / "a.parquet", [row], kinds)
    found = examine(tmp_path).rows("development_projects", "start_date", "completion_date", "status_date")
    assert found == [(date(2024, 1, 2), date(2024, 2, 3), date(2024, 3, 4))]


def test_a_file_that_breaks_off_inside_is_an_error(tmp_path: Path) -> None:
    """Its footer is right, its pages are not."""
    path = write_table(tmp_path / "a.parquet", [people(f"{n:05}", 2023, n) for n in range(5000)], compression="gzip")
    data = bytearray(path.read_bytes())
    data[200:2000] = bytes(1800)
    path.write_bytes(data)
    found = finding(examine(tmp_path).report, "unreadable-file")
    assert (found.severity, found.table, found.file) == ("error", "population", "a.parquet")


def test_a_column_named_as_the_reader_numbers_rows_does_no_harm(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", [{**row, "file_row_number": "7"} for row in POPULATION])
    found = examine(tmp_path)
    assert len(found.rows("population", "zip_code")) == len(POPULATION)
    assert not errors(found.report)


def test_figures_of_all_tables_arrive_where_they_belong(tmp_path: Path) -> None:
    """Columns are taken by name: the order in which a file has them means nothing."""
    row = homes("36436")
    write_table(tmp_path / "h.parquet", [dict(reversed(row.items()))])
    write_table(tmp_path / "a.parquet", [alias("90028", "Hollywood", "CA", "Acceptable")])
    found = examine(tmp_path)
    assert found.rows("housing", *row) == [tuple(row.values())]
    assert found.rows("aliases", "zip_code", "city_name", "usps_status") == [("90028", "Hollywood", "Acceptable")]
    assert HOUSING[0] == row
