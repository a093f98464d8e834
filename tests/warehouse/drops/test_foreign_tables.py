"""Of a file in another format, the table that it probably holds is named."""

import io
import zipfile
from pathlib import Path

import pytest

from tests.support.drops import write_drop
from tests.warehouse.helpers import finding
from warehouse.drops.collection import collect
from warehouse.drops.pipeline import unread_as_errors
from warehouse.schema.findings import Finding, make_report

BOTH = ("development_projects", "housing")
HOUSING = b"ZIP_CODE;TOT_HOME_AVAILABLE_2020;TOT_HOME_AVAILABLE_2021;TOT_HOME_AVAILABLE_2022\n36436;1;2;3\n"
UNKNOWN = b"a,b\n1,2\n"


def reported(folder: Path, name: str, content: bytes, lacking: tuple[str, ...] = BOTH) -> Finding:
    drop = write_drop(folder, housing=None)
    (drop / name).write_bytes(content)
    found = collect([str(drop)])
    return finding(make_report(unread_as_errors(found, list(found.findings), lacking)), "unread-table")


def zipped() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.parquet", "36436")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("US_HOUSING_FORECAST.csv", UNKNOWN, "the drop lacks housing, which it probably holds"),
        ("housing.zip", zipped(), "the drop lacks housing, which it probably holds"),
        ("projects.csv", UNKNOWN, "the drop lacks development_projects, which it probably holds"),
        ("export.csv", HOUSING, "the drop lacks housing, which it probably holds"),
        ("projects.csv", HOUSING, "the drop lacks housing, which it probably holds"),
        ("zip_city_alias.csv", UNKNOWN, "which is not read; it probably holds aliases"),
        ("export.csv", UNKNOWN, "the drop lacks housing, development_projects"),
    ],
)
def test_the_table_is_recognised_by_the_columns_or_else_by_the_name(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    """If neither tells, all that the drop lacks are named, needed ones first."""
    assert reported(tmp_path, name, content).message.endswith(says)


def test_an_archive_is_to_be_unpacked_and_a_table_to_be_exported(tmp_path: Path) -> None:
    packed, plain = reported(tmp_path / "a", "housing.zip", zipped()), reported(tmp_path / "b", "housing.csv", UNKNOWN)
    assert packed.remedy == "unpack it, and drop the Parquet files inside, or leave the file out"
    assert plain.remedy == "export the table as Parquet, or leave the file out"


def test_where_no_table_is_lacking_a_file_of_another_format_is_passed_over(tmp_path: Path) -> None:
    (write_drop(tmp_path) / "export.csv").write_bytes(HOUSING)
    found = collect([str(tmp_path)])
    assert unread_as_errors(found, list(found.findings), ()) == list(found.findings)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("row_counts.csv", b"table,rows\nhousing,2\n"),
        ("8f3b-manifest.csv", b"s3://b/k/1\n"),
        ("schema.json", b'[{"name": "A", "type": "STRING"}]'),
        ("Thumbs.db", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)),
        ("projects_schema.json", b'[{"name": "A", "type": "STRING"}]'),
    ],
)
@pytest.mark.parametrize("lacking", [("aliases", "development_projects"), BOTH])
def test_a_file_that_describes_tables_refuses_no_drop(
    tmp_path: Path, name: str, content: bytes, lacking: tuple[str, ...]
) -> None:
    """Also if the drop lacks a table."""
    (write_drop(tmp_path, housing=None) / name).write_bytes(content)
    found = collect([str(tmp_path)])
    assert [one.rule for one in unread_as_errors(found, list(found.findings), lacking)] == ["foreign-file"]


def test_a_schema_with_the_columns_of_a_missing_table_is_that_table(tmp_path: Path) -> None:
    """Columns identify a table better than names."""
    assert "the drop lacks housing" in reported(tmp_path, "schema.csv", HOUSING).message


@pytest.mark.parametrize("name", ["export.csv", "locations.csv"])
def test_the_lack_of_an_optional_table_makes_no_other_file_an_error(tmp_path: Path, name: str) -> None:
    (write_drop(tmp_path) / name).write_bytes(UNKNOWN)
    found = collect([str(tmp_path)])
    assert unread_as_errors(found, list(found.findings), ("development_projects",)) == list(found.findings)
    (tmp_path / "projects.csv").write_bytes(UNKNOWN)
    found = collect([str(tmp_path)])
    errors = unread_as_errors(found, list(found.findings), ("development_projects",))
    assert [(one.rule, one.file) for one in errors] == [("foreign-file", name), ("unread-table", "projects.csv")]
