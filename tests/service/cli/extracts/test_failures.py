"""--failures: all failing rows as files, listed in the output."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.service.conftest import Cli
from tests.support.drops import HOUSING, homes, write_drop
from tests.warehouse.helpers import contents


@pytest.fixture
def bad(tmp_path: Path) -> str:
    return str(write_drop(tmp_path / "bad", housing=[*HOUSING, *(homes(f"{number}") for number in range(1000, 1007))]))


@pytest.mark.parametrize("command", ["check", "publish"])
def test_all_failing_rows_are_written_and_a_good_drop_removes_their_file(
    cli: Cli, bad: str, drop: Path, tmp_path: Path, command: str
) -> None:
    folder = tmp_path / "new" / "faults"
    done = cli("extracts", command, bad, "--failures", str(folder))
    assert done.code == 1
    file = folder / "unreadable-value.parquet"
    assert f"{file}: 7 rows" in done.err
    assert pq.read_table(file).num_rows == 7
    as_json = cli("extracts", command, bad, "--failures", str(folder), "--json").json
    assert as_json["failures"] == [{"rule": "unreadable-value", "path": str(file), "rows": 7, "cut": False}]
    good = cli("extracts", command, str(drop), "--failures", str(folder))
    assert good.code == 0
    assert "no failing rows" in good.err
    assert list(folder.iterdir()) == []


def test_the_folder_must_not_become_part_of_the_drop(cli: Cli, bad: str) -> None:
    before = contents(Path(bad))
    for given, folder in (
        (".", "faults"),
        ("*.parquet", ""),
        ("*.parquet", "faults"),
        ("**/*.parquet", "faults"),
        ("zip_housing.parquet", ""),
    ):
        done = cli("extracts", "check", f"{bad}/{given}", "--failures", f"{bad}/{folder}")
        assert done.code == 2
        assert "inside the drop" in done.err
    assert contents(Path(bad)) == before


@pytest.mark.parametrize("given", ["zip_locations.parquet", "parts/*.parquet"])
def test_a_folder_beside_the_files_of_a_drop_is_no_part_of_it(cli: Cli, drop: Path, given: str) -> None:
    (drop / "parts").mkdir()
    (drop / "zip_housing.parquet").rename(drop / "parts" / "a.parquet")
    done = cli("extracts", "check", str(drop / given), "--no-release", "--partial", "--failures", str(drop / "faults"))
    assert done.code == 0


def test_a_folder_that_cannot_be_made_is_one_line(cli: Cli, bad: str) -> None:
    done = cli("extracts", "check", bad, "--failures", "/proc/faults")
    assert done.code == 1
    assert "cannot write the failing rows to /proc/faults" in done.error()
