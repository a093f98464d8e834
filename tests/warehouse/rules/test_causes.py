"""A value that does not fit its column is explained by how it looks, with a remedy for that cause."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.drops import HOUSING, LOCATIONS, homes, location, people, write_drop, write_table
from tests.warehouse.helpers import connect, examine
from warehouse.rules.causes import CAUSES, causes_of
from warehouse.schema.findings import Finding
from warehouse.schema.tables import ColumnKind

EXPLAINED: tuple[tuple[ColumnKind, str, str | None], ...] = (
    ("zip", "3643", "leading zero lost"),
    ("zip", "501", "leading zero lost"),
    ("zip", "36436.0", "was a float"),
    ("zip", "36,436", "thousands separator"),
    ("zip", "36436-0001", "ZIP+4"),
    ("zip", "364360001", "ZIP+4"),
    ("zip", "36436 0001", "ZIP+4"),
    ("zip", "3.6436e4", "scientific notation"),
    ("zip", "3\\xB26436", "text that is not UTF-8"),
    ("zip", "\ufeff36436", "byte-order mark"),
    ("zip", "ï»¿36436", "byte-order mark"),
    ("zip", "36436\u200b", "an invisible character"),
    ("zip", "36436, 36437", "several values in one"),
    ("zip", "36436/36437", "several values in one"),
    ("zip", '["36436"]', "several values in one"),
    ("zip", "{'zip': 36436}", "a nested value"),
    ("zip", '="36436"', "quotation marks"),
    ("zip", "'36436", "quotation marks"),
    ("zip", "364360", "too many digits"),
    ("zip", "12", "too few digits"),
    ("zip", "501.5", "a fraction"),
    ("zip", "-501.0", "a negative number"),
    ("zip", "3643O", "a letter in place of a digit"),
    ("zip", "٣٦٤٣٦", "digits of another script"),
    ("zip", "2024-01-01", "a date"),
    ("zip", "Dickinson", "words"),
    ("zip", "3643A", None),
    ("fips", "1025", "leading zero lost"),
    ("fips", "25", "a county code without its state"),
    ("fips", "1025.0", "was a float"),
    ("state", "Alabama", "a state's full name"),
    ("state", "New York", "a state's full name"),
    ("state", "Ala.", "another abbreviation"),
    ("state", "N.Y.", "an abbreviation with periods"),
    ("state", "US-AL", "country and state"),
    ("state", "01", "a state's FIPS number"),
    ("state", "AL, GA", "several values in one"),
    ("integer", "30,000", "thousands separator"),
    ("integer", "30 000", "thousands separator"),
    ("integer", "1.234.567", "thousands separator"),
    ("integer", "783.5", "a fraction"),
    ("integer", "1e-05", "a fraction"),
    ("integer", "30,5", "decimal comma"),
    ("integer", "$783", "currency or per cent sign"),
    ("integer", "12 %", "currency or per cent sign"),
    ("integer", "1e3", "scientific notation"),
    ("integer", "1e+300", "too large for a number"),
    ("integer", "99999999999999999999", "too large for a number"),
    ("integer", "n/a", "a placeholder for missing"),
    ("integer", "NULL", "a placeholder for missing"),
    ("integer", "-", "a placeholder for missing"),
    ("integer", "nan", "a placeholder for missing"),
    ("integer", "#N/A", "a placeholder for missing"),
    ("integer", "inf", "infinity"),
    ("integer", "true", "true or false"),
    ("integer", "783|784", "several values in one"),
    ("integer", "(5)", "negative in parentheses"),
    ("integer", "100 to 200", "a range"),
    ("integer", "<10", "an estimate"),
    ("integer", "5k", "an abbreviated number"),
    ("integer", "783*", "a footnote mark"),
    ("integer", "five", "words"),
    ("real", "31,7061", "decimal comma"),
    ("real", "31°42'", "degrees and minutes"),
    ("real", "87.9 W", "degrees and minutes"),
    ("real", "POINT(-87.9 31.7)", "a geometry"),
    ("real", "31.7, -87.9", "several values in one"),
    ("date", "10/05/2026", "another notation of dates"),
    ("date", "Oct 5, 2026", "another notation of dates"),
    ("date", "2026", "a year alone"),
    ("date", "45935", "a spreadsheet's day number"),
    ("date", "1759622400", "seconds or milliseconds since 1970"),
    ("date", "2026-02-30", "an impossible day"),
    ("text", "1.0", "was a float"),
    ("text", "x" * 60, "too long"),
    ("integer", "-666666666", "the Census Bureau's code for a missing estimate"),
    ("integer", "-10261", "a negative number"),
    ("integer", "1000001", None),
    ("integer", "٧٨٣", "digits of another script"),
)


@pytest.mark.parametrize(("kind", "value", "cause"), EXPLAINED)
def test_a_value_is_explained_by_how_it_looks(kind: ColumnKind, value: str, cause: str | None) -> None:
    with connect() as connection:
        matching = [
            one.name
            for one in causes_of(kind)
            if connection.execute("SELECT regexp_full_match(?, ?, 's')", [value, one.pattern]).fetchall() == [(True,)]
        ]
    assert next(iter(matching), None) == cause


def test_every_cause_explains_a_value_here() -> None:
    assert {cause.name for cause in CAUSES} == {cause for _, _, cause in EXPLAINED if cause} | {"a year of two digits"}


def test_a_year_of_two_digits_is_named(tmp_path: Path) -> None:
    write_drop(tmp_path, population=[people("36436", 24, 10_261)])
    (found,) = (one for one in examine(tmp_path).report.findings if one.rule == "out-of-range")
    assert found.message.endswith("likely cause: a year of two digits")


def unreadable(folder: Path) -> list[Finding]:
    return [one for one in examine(folder).report.findings if one.rule == "unreadable-value"]


def test_each_cause_in_a_column_is_a_finding_of_its_own(tmp_path: Path) -> None:
    """With its own count, samples and remedy."""
    rows = [*HOUSING, homes("3643"), homes("501"), homes("36436-0001")]
    write_drop(tmp_path, housing=rows)
    found = unreadable(tmp_path)
    assert [(one.cause, one.count, one.remedy) for one in found] == [
        ("ZIP+4", 1, "export only the first five digits"),
        ("leading zero lost", 2, "cast to text and pad to five digits"),
    ]
    assert "not five-digit ZIP codes; likely cause: ZIP+4" in found[0].message
    assert found[1].samples == ("row 3 has 3643", "row 4 has 501")


def test_no_row_is_shown_twice_while_there_are_others(tmp_path: Path) -> None:
    """Rows 3 and 4 are wrong in both columns, row 5 in one."""
    wrong = [homes(zip_code, tot_home_available_2021="n/a") for zip_code in ("3643", "501")]
    rows = [{**row, "tot_home_available_2021": str(row["tot_home_available_2021"])} for row in HOUSING]
    rows += [*wrong, homes("63101", tot_home_available_2021="n/a")]
    write_drop(tmp_path, housing=None)
    write_table(tmp_path / "housing.parquet", rows, {"tot_home_available_2021": pa.string()})
    zip_codes, figures = unreadable(tmp_path)
    assert (zip_codes.samples, figures.samples) == (("row 3 has 3643", "row 4 has 501"), ("row 5 63101 has n/a",))
    assert figures.count == 3


def test_a_wide_row_of_broken_figures_is_one_sample(tmp_path: Path) -> None:
    years = {f"TOT_CENSUS_POP_{year}": "n/a" for year in range(2010, 2020)}
    rows = [{"ZIP_CODE": "36436", **years}, {"ZIP_CODE": "90028", **years}]
    write_table(tmp_path / "wide.parquet", rows, dict.fromkeys(years, pa.string()))
    (found,) = unreadable(tmp_path)
    assert found.count == 20
    assert [sample.split()[:2] for sample in found.samples] == [["row", "1"], ["row", "2"]]


def test_gaps_that_unreadable_locations_leave_follow_from_them(tmp_path: Path) -> None:
    """Somebody who pads the ZIP codes of the locations need not look for housing without a location."""
    rows = [location(row["zip_code"].lstrip("0"), row["city_name"], row["state_code"]) for row in LOCATIONS]
    write_drop(tmp_path, locations=rows, housing=[*HOUSING, homes("00501")])
    report = examine(tmp_path).report
    assert [(one.rule, one.follows) for one in report.findings] == [
        ("unreadable-value", None),
        ("orphan-rows", "unreadable-value"),
    ]
    assert report.summary() == "1 error, 1 consequence"


def test_gaps_without_an_error_stand_for_themselves(tmp_path: Path) -> None:
    write_drop(tmp_path, housing=[*HOUSING, homes("17270")], population=[people("3643", 2020, 1)])
    gap = next(one for one in examine(tmp_path).report.findings if one.rule == "orphan-rows")
    assert gap.follows is None
