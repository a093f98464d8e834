"""What a file is, told by its first bytes, and by its name where bytes do not tell."""

import gzip

import pytest

from warehouse.drops.file_kinds import (
    columns_of,
    has_companion_name,
    is_unfinished,
    kind_of,
    may_hold_table,
    says_parquet,
)


@pytest.mark.parametrize(
    ("head", "name", "kind", "table"),
    [
        (b"PARE", "a", "an encrypted Parquet file", True),
        (gzip.compress(b"x", mtime=0), "a.csv.gz", "a gzip file", True),
        (bytes(257) + b"ustar", "a.tar", "a tar archive", True),
        (b"PK\x03\x04" + bytes(30) + b"xl/workbook.xml", "a.xlsx", "an Excel workbook", True),
        (b"PK\x03\x04" + bytes(30) + b"a.parquet", "a.zip", "a zip archive", True),
        (b"\xef\xbb\xbfzip_code,year,tot\n1,2,3\n", "a", "a CSV file", True),
        (b"zip_code\n36436\n", "a.csv", "a CSV file", True),
        (b'[\n {"zip_code": "36436"}]', "a.json", "a JSON file", True),
        (b'{"a": 1}\n{"a": 2}\n', "a", "a JSON file", True),
        (b'{"entries": [{"url": "s3://a"}]}', "housing_manifest", "a JSON file", False),
        (b"figures of October", "README.md", "a text file", False),
        (b"exported on Monday, by ada\nand checked, by bob\n", "notes.txt", "a text file", False),
        (b"<html>", "report.html", "a web page", False),
        (b"<?xml version='1.0'?><Error>", "a", "an XML file", False),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "map.png", "not Parquet", False),
        (b"", "a", "empty", False),
        (b"[.ShellClassInfo]\r\nIconResource=a.dll,5\r\n", "desktop.ini", "a text file", False),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Thumbs.db", "a Microsoft Office or Windows file", False),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "housing.xls", "an Excel workbook", True),
    ],
)
def test_a_kind_of_file_is_recognised_by_its_bytes_and_name(head: bytes, name: str, kind: str, table: bool) -> None:
    reported = kind_of(head, name)
    assert reported.name == kind
    assert may_hold_table(reported, name) is table


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("housing.parquet", True),
        ("housing.PARQUET.GZ", True),
        ("housing.pq", True),
        ("housing.snappy.parquet.tmp", True),
        ("parquet-files.zip", True),
        ("about-parquet.rst", False),
        ("housing.csv", False),
        ("part-00000", False),
    ],
)
def test_a_name_can_promise_parquet(name: str, says: bool) -> None:
    assert says_parquet(name) is says


@pytest.mark.parametrize("name", ["a.parquet.tmp", "a.crdownload", "a.parquet.PART", "a.parquet._COPYING_"])
def test_tools_name_unfinished_files_so(name: str) -> None:
    assert is_unfinished(name)
    assert not is_unfinished("part-00000.parquet")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("row_counts.csv", True),
        ("Housing-RowCounts.xlsx", True),
        ("counts.csv", True),
        ("8f3b-manifest.csv", True),
        ("schema.json", True),
        ("housing.schema.json", True),
        ("data dictionary.xlsx", True),
        ("housing.md5", True),
        ("population_counts.xlsx", False),
        ("catalogs.csv", False),
        ("housing.csv", False),
    ],
)
def test_some_names_are_those_of_files_that_describe_others(name: str, is_one: bool) -> None:
    """The census publishes counts, so the counts of a table may be the table itself."""
    assert has_companion_name(name) is is_one


@pytest.mark.parametrize(
    ("head", "columns"),
    [
        (b"ZIP_CODE,Year\r\n36436,2023\r\n", ("zip_code", "year")),
        (b'\xef\xbb\xbf"zip_code";"year"\n"36436";"2023"\n', ("zip_code", "year")),
        (b"zip_code\tyear\n36436\t2023\n", ("zip_code", "year")),
        (b'[{"zip_code": 1}]', ()),
    ],
)
def test_the_first_line_of_a_csv_file_names_its_columns(head: bytes, columns: tuple[str, ...]) -> None:
    assert columns_of(kind_of(head, "a.csv"), head) == columns
