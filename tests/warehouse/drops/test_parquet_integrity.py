"""A file that contradicts itself, or the checksums its writer left, is never read as if it were whole."""

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.drops import Rows, people, write_table
from tests.warehouse.footers import change_footer, varint
from tests.warehouse.helpers import errors, examine, finding
from warehouse.drops.parquet_integrity import find_damage

_ROWS: Rows = [people(f"{zip_code:05}", 2023, 1_000_000 - zip_code) for zip_code in range(500)]


def written(tmp_path: Path, **options: Any) -> Path:
    plainly = {"compression": "none", "use_dictionary": False, **options}
    return write_table(tmp_path / "a.parquet", _ROWS, **plainly)


def with_another_figure(path: Path) -> None:
    """The figure of one ZIP code is another, as a flipped bit makes it."""
    data = path.read_bytes()
    (place,) = [at for at in range(len(data)) if data.startswith(struct.pack("<q", 1_000_000 - 250), at)]
    path.write_bytes(data[:place] + struct.pack("<q", 7) + data[place + 8 :])


def test_a_whole_file_has_no_fault(tmp_path: Path) -> None:
    for checksums in (True, False):
        path = written(tmp_path, write_page_checksum=checksums, row_group_size=100)
        assert find_damage(path, ["zip_code", "year", "tot_population"]) is None


def test_a_changed_figure_is_refused_where_the_writer_left_checksums(tmp_path: Path) -> None:
    with_another_figure(written(tmp_path, write_page_checksum=True))
    found = finding(examine(tmp_path).report, "unreadable-file")
    assert (found.file, "CRC" in found.message) == ("a.parquet", True)


def test_a_changed_figure_is_another_figure_where_the_writer_left_none(tmp_path: Path) -> None:
    """What nothing in the file contradicts, nobody can notice."""
    with_another_figure(written(tmp_path))
    found = examine(tmp_path)
    assert 7 in found.values("population", "tot_population")
    assert not errors(found.report)


def test_only_columns_that_are_read_are_looked_at(tmp_path: Path) -> None:
    path = written(tmp_path, write_page_checksum=True)
    with_another_figure(path)
    assert find_damage(path, ["zip_code", "year"]) is None
    assert find_damage(path, ["tot_population"]) is not None


@pytest.mark.parametrize("claimed", [0, 1, 499, 501, 1 << 40])
@pytest.mark.parametrize("which", ["file", "zip_code", "year", "tot_population", "row group", "all"])
def test_a_footer_that_lies_about_rows_is_refused(tmp_path: Path, claimed: int, which: str) -> None:
    """Its count, those of its row groups and columns, and what its pages hold must agree: fewer would lose rows.

    One that says fewer everywhere is a file of so many rows.
    """
    path = written(tmp_path)
    places = ["file", "zip_code", "year", "tot_population", "row group"]

    def lying(footer: bytes) -> bytes:
        first, *between = footer.split(varint(500))
        counts = [varint(claimed if which in (place, "all") else 500) for place in places]
        return first + b"".join(count + rest for count, rest in zip(counts, between, strict=True))

    change_footer(path, lying)
    found = examine(tmp_path).report
    assert "unreadable-file" in errors(found) or (which == "all" and claimed < 500), found


def test_statistics_that_lie_hide_no_value(tmp_path: Path) -> None:
    """A value outside the bounds that its file gives is seen all the same, and never cut down to a ZIP code."""
    rows = [people(zip_code, 2023, 1) for zip_code in (501, 502, 503)]  # type: ignore[arg-type]
    path = write_table(tmp_path / "a.parquet", rows, {"zip_code": pa.int32()}, compression="none")
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<i", 502), struct.pack("<i", 1_234_567)))
    found = examine(tmp_path)
    assert finding(found.report, "unreadable-value").samples == ("row 2 2023 has 1234567",)
    assert found.values("population", "zip_code") == ["00501", "00503", None]
