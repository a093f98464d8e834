"""Which files a delivery brings, and what is said of the rest."""

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest

from tests.support.drops import HOUSING, write_drop, write_table
from tests.warehouse.helpers import finding
from warehouse.drops.collection import Drop, collect
from warehouse.schema.errors import DropError
from warehouse.schema.findings import make_report


def labels(drop: Drop) -> list[str]:
    return [file.label for file in drop.files]


def test_a_folder_brings_all_its_parquet_files_in_every_depth(tmp_path: Path) -> None:
    """Unloads put part files into folders of their own."""
    write_table(tmp_path / "b.parquet", HOUSING)
    write_table(tmp_path / "parts" / "deep" / "a.parquet", HOUSING)
    assert labels(collect([str(tmp_path)])) == ["b.parquet", "parts/deep/a.parquet"]


def test_a_file_counts_by_what_it_holds_not_by_its_name(tmp_path: Path) -> None:
    """Some unloads write part files without an extension."""
    write_table(tmp_path / "data_0_0_0", HOUSING)
    assert labels(collect([str(tmp_path)])) == ["data_0_0_0"]


def test_a_file_given_twice_is_taken_once(tmp_path: Path) -> None:
    """A folder beside a glob into it must not look like duplicate rows."""
    write_table(tmp_path / "a.parquet", HOUSING)
    assert labels(collect([str(tmp_path), str(tmp_path / "*.parquet"), str(tmp_path / "a.parquet")])) == ["a.parquet"]


def test_a_glob_brings_what_it_matches(tmp_path: Path) -> None:
    write_drop(tmp_path)
    found = collect([str(tmp_path / "zip_*ion.parquet")])
    assert labels(found) == ["zip_population.parquet"]


@pytest.mark.parametrize(
    "name", ["a[1]*?.parquet", "it's.parquet", "two words.parquet", "größe–é.parquet", '"x".parquet']
)
def test_a_path_that_exists_is_never_taken_for_a_glob(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / name, HOUSING)
    assert labels(collect([str(tmp_path / name)])) == [name]


@pytest.mark.parametrize("glob", ["", "*", "**"])
def test_what_writers_leave_beside_the_data_is_passed_over_and_listed(tmp_path: Path, glob: str) -> None:
    """Also if a glob hits it, because a shell's `drop/*` does."""
    write_table(tmp_path / "a.parquet", HOUSING)
    write_table(tmp_path / "_temporary" / "b.parquet", HOUSING)
    for name in ("_SUCCESS", ".a.parquet.crc", "a.parquet.crc"):
        (tmp_path / name).write_bytes(b"")
    found = collect([f"{tmp_path}/{glob}"])
    assert labels(found) == ["a.parquet"]
    note = finding(make_report(list(found.findings)), "ignored-file")
    assert note.severity == "info"
    listed = {sample.rstrip("/") for sample in note.samples}
    assert {"_SUCCESS", "_temporary", "a.parquet.crc"} <= listed


def test_a_deep_glob_does_not_reach_into_ignored_folders(tmp_path: Path) -> None:
    """What an unload has not committed yet is not part of the drop."""
    write_table(tmp_path / "a.parquet", HOUSING)
    write_table(tmp_path / "_temporary" / "0" / "b.parquet", HOUSING)
    assert labels(collect([f"{tmp_path}/**/*.parquet"])) == ["a.parquet"]


@pytest.mark.parametrize("name", ["__NULL__", "_NULL_", "__null__", "__HIVE_DEFAULT_PARTITION__", "_state=AL"])
@pytest.mark.parametrize("glob", ["", "*", "**/*.parquet"])
def test_folders_of_partitions_are_read_although_their_names_begin_with_an_underscore(
    tmp_path: Path, name: str, glob: str
) -> None:
    """Snowflake writes rows without a partition value into `__NULL__`."""
    write_table(tmp_path / "housing" / name / "a.parquet", HOUSING)
    found = collect([f"{tmp_path}/housing/{glob}"])
    assert [file.path.parent.name for file in found.files] == [name]
    assert not found.findings


@pytest.mark.parametrize("name", ["_archive/a.parquet", ".a.parquet", "_000", "old/.b/c/a.parquet", "a.crc"])
def test_parquet_with_rows_under_an_ignored_name_is_an_error(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / "b.parquet", HOUSING)
    write_table(tmp_path / name, HOUSING)
    found = collect([str(tmp_path)])
    assert labels(found) == ["b.parquet"]
    reported = finding(make_report(list(found.findings)), "hidden-rows")
    assert (reported.severity, reported.count, reported.samples) == ("error", 1, (name,))


@pytest.mark.parametrize("name", ["_metadata", "_common_metadata", ".empty.parquet", "._a.parquet", "_archive/a.txt"])
def test_files_without_rows_under_ignored_names_are_only_listed(tmp_path: Path, name: str) -> None:
    """A summary has the row counts of other files in its footer."""
    table = pq.read_table(write_table(tmp_path / "b.parquet", HOUSING))
    (tmp_path / name).parent.mkdir(exist_ok=True)
    if name.endswith(("a.parquet", ".txt")):
        (tmp_path / name).write_bytes(b"\x00\x05\x16\x07Mac OS X")
    else:
        pq.write_table(table if "metadata" in name else table.slice(0, 0), tmp_path / name)
    assert [one.rule for one in collect([str(tmp_path)]).findings] == ["ignored-file"]


@pytest.mark.parametrize(
    ("folder", "glob"),
    [
        ("_temporary/0", ""),
        ("_temporary/0", "*"),
        ("_temporary/0", "**"),
        (".spark-staging-5f1c", ""),
        (".hive-staging_hive_2026/-ext-1", ""),
        ("_impala_insert_staging", ""),
    ],
)
def test_rows_that_a_writer_has_not_committed_are_an_error(tmp_path: Path, folder: str, glob: str) -> None:
    """Half a file remains of a failed attempt; a complete one may be the only copy of its rows."""
    write_table(tmp_path / "b.parquet", HOUSING)
    part = write_table(tmp_path / folder / "part-0.parquet", HOUSING)
    found = collect([f"{tmp_path}/{glob}"])
    assert labels(found) == ["b.parquet"]
    reported = finding(make_report(list(found.findings)), "unfinished-file")
    assert reported.message == f"{folder.partition('/')[0]}/ holds rows that their writer has not committed"
    assert reported.samples == (f"{folder}/part-0.parquet",)
    part.write_bytes(part.read_bytes()[:100])
    assert [one.rule for one in collect([f"{tmp_path}/{glob}"]).findings] == ["ignored-file"]


def test_files_named_one_by_one_may_be_ignored_ones_too(tmp_path: Path) -> None:
    """A shell expands its globs itself."""
    write_table(tmp_path / "a.parquet", HOUSING)
    (tmp_path / "_SUCCESS").write_bytes(b"")
    found = collect([str(tmp_path / "_SUCCESS"), str(tmp_path / "a.parquet")])
    assert labels(found) == ["a.parquet"]
    assert [one.severity for one in found.findings] == ["info"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("no/such/drop", "no/such/drop: no such file or folder"),
        ("*.parquet", r"\*\.parquet: no such file or folder"),
        ("a\0b", r"a\\u0000b: no such file or folder"),  # no file can have it
    ],
)
def test_a_path_or_glob_that_leads_to_nothing_is_named(tmp_path: Path, given: str, says: str) -> None:
    with pytest.raises(DropError, match=says):
        collect([str(tmp_path / given)])


def test_a_folder_without_parquet_says_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").write_bytes(b"")
    with pytest.raises(DropError, match=r"no Parquet file in .*ignored: _SUCCESS"):
        collect([str(tmp_path)])


def test_text_beside_the_data_is_passed_over_with_a_warning(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", HOUSING)
    (tmp_path / "README.md").write_text("figures of October")
    found = collect([str(tmp_path)])
    assert labels(found) == ["a.parquet"]
    warning = finding(make_report(list(found.findings)), "foreign-file")
    assert (warning.severity, warning.file) == ("warning", "README.md")


def test_a_file_that_is_named_after_a_table_beside_it_is_ignored_with_a_warning(tmp_path: Path) -> None:
    """Checksums, metadata and marks of completion."""
    endings = ("sha256", "md5", "done", "ok", "metadata.json", "sig", "stats.csv")
    tables = ("a.parquet", "a.parquet/part-0.parquet", "a/part-0")
    contents = (b"", b"ab" * 32, b'{"rows": 1}', b'[{"rows": 1}]', b"a,b\n1,2\n", b"\x01\x02")
    for number, (ending, table, content) in enumerate(product(endings, tables, contents)):
        folder = tmp_path / str(number)
        write_table(folder / table, HOUSING)
        (folder / f"a.parquet.{ending}").write_bytes(content)
        found = collect([str(folder)])
        assert labels(found) == [table]
        assert [one.rule for one in found.findings] == ["foreign-file"]


def test_a_file_that_is_named_after_a_missing_table_is_an_error(tmp_path: Path) -> None:
    """Only the checksum arrived."""
    write_table(tmp_path / "b.parquet", HOUSING)
    (tmp_path / "a.parquet.sha256").write_text("ab" * 32)
    (reported,) = collect([str(tmp_path)]).findings
    assert (reported.rule, reported.file) == ("not-parquet", "a.parquet.sha256")


def test_a_packed_file_beside_its_table_is_an_error(tmp_path: Path) -> None:
    """Either of the two may be the newer one."""
    write_table(tmp_path / "a.parquet", HOUSING)
    (tmp_path / "a.parquet.gz").write_bytes(gzip.compress(b"PAR1"))
    (reported,) = collect([str(tmp_path)]).findings
    assert (reported.rule, reported.file) == ("not-parquet", "a.parquet.gz")


@pytest.mark.parametrize("name", ["row_counts.csv", "desktop.ini", "schema.json", "a.done"])
def test_files_that_describe_others_are_ignored_although_a_pattern_names_them(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / "a.parquet", HOUSING)
    (tmp_path / name).write_text("table,rows\nhousing,2\n")
    found = collect([f"{tmp_path}/*"])
    assert labels(found) == ["a.parquet"]
    assert [one.rule for one in found.findings] == ["foreign-file"]


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "is empty"), (b"zip_code,year\n36436,2023\n", "is a CSV file, not Parquet"), (b"PA", "not Parquet")],
)
def test_what_is_called_parquet_and_is_not_is_an_error(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    found = finding(make_report(list(collect([str(tmp_path)]).findings)), "not-parquet")
    assert (found.severity, found.file) == ("error", "a.parquet")
    assert says in found.message


def test_a_link_out_of_the_drop_is_an_error(tmp_path: Path) -> None:
    """Both a file and a folder could bring what nobody meant to publish."""
    write_table(tmp_path / "elsewhere" / "a.parquet", HOUSING)
    folder = tmp_path / "drop"
    write_table(folder / "b.parquet", HOUSING)
    (folder / "file.parquet").symlink_to(tmp_path / "elsewhere" / "a.parquet")
    (folder / "folder").symlink_to(tmp_path / "elsewhere")
    found = collect([str(folder)])
    assert labels(found) == ["b.parquet"]
    assert {(one.rule, one.severity, one.file) for one in found.findings} == {
        ("link-out-of-drop", "error", "file.parquet"),
        ("link-out-of-drop", "error", "folder"),
    }


def test_a_link_inside_the_drop_is_the_file_it_leads_to(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", HOUSING)
    (tmp_path / "b.parquet").symlink_to("a.parquet")
    found = collect([str(tmp_path)])
    assert labels(found) == ["a.parquet"]
    assert not found.findings


@pytest.mark.parametrize("target", ["/nowhere/a.parquet", "gone.parquet"])
@pytest.mark.parametrize("given", ["", "link.parquet"])
def test_a_broken_link_is_reported_wherever_it_leads(tmp_path: Path, target: str, given: str) -> None:
    """There is nothing to copy into the drop, and nothing to permit."""
    (tmp_path / "link.parquet").symlink_to(target)
    (reported,) = collect([str(tmp_path / given)]).findings
    assert reported.message == "link.parquet is a link whose target does not exist"
    assert reported.remedy == "put the file itself into the drop, or remove the link"


def test_links_that_lead_nowhere_are_errors_of_their_files(tmp_path: Path) -> None:
    (tmp_path / "gone.parquet").symlink_to(tmp_path / "missing")
    (tmp_path / "loop.parquet").symlink_to("loop.parquet")
    found = collect([str(tmp_path)])
    assert {(one.rule, one.file) for one in found.findings} == {
        ("unreadable-file", "gone.parquet"),
        ("unreadable-file", "loop.parquet"),
    }


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user who may not read everything, where tests run as root."""
    user = os.geteuid()
    os.seteuid(user or 65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user reaches; pytest's own are for one user alone."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("closed", ["drop", "drop/parts"])
def test_a_folder_that_may_not_be_read_is_named(open_folder: Path, closed: str) -> None:
    write_table(open_folder / "drop" / "parts" / "a.parquet", HOUSING)
    folder = open_folder / closed
    folder.chmod(0)
    with unprivileged():
        found = collect([str(open_folder / "drop")])
    folder.chmod(0o755)
    (reported,) = found.findings
    assert (reported.rule, reported.file) == ("unreadable-file", folder.name)
    assert reported.message == f"{folder.name} cannot be read: Permission denied"
    assert reported.remedy == "check its permissions"


def test_files_in_a_folder_that_may_be_listed_only_cannot_be_read(open_folder: Path) -> None:
    write_table(open_folder / "a.parquet", HOUSING)
    (open_folder / "_SUCCESS").touch()
    open_folder.chmod(0o444)
    with unprivileged():
        found = collect([str(open_folder)])
    open_folder.chmod(0o755)
    assert found.findings[0].message == "a.parquet cannot be read: Permission denied"
    assert [one.rule for one in found.findings] == ["unreadable-file", "ignored-file"]


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.parquet")
    assert finding(make_report(list(collect([str(tmp_path)]).findings)), "unreadable-file").file == "a.parquet"


@pytest.mark.parametrize("null", ["__HIVE_DEFAULT_PARTITION__", "__NULL__"])
def test_key_value_folders_are_columns(tmp_path: Path, null: str) -> None:
    """Their values are unescaped, and the folder of NULL is no value."""
    write_table(tmp_path / "Year=2023" / "state=N%20Y" / f"city={null}" / "a.parquet", HOUSING)
    (file,) = collect([str(tmp_path)]).files
    assert file.partitions == {"year": "2023", "state": "N Y", "city": ""}


@pytest.mark.parametrize("given", ["year=2023", "year=2023/a.parquet", "*/*.parquet"])
def test_key_value_folders_count_however_the_file_was_given(tmp_path: Path, given: str) -> None:
    write_table(tmp_path / "year=2023" / "a.parquet", HOUSING)
    (file,) = collect([str(tmp_path / given)]).files
    assert file.partitions == {"year": "2023"}


def test_key_value_folders_further_above_the_drop_do_not_count(tmp_path: Path) -> None:
    write_table(tmp_path / "year=2023" / "drop" / "a.parquet", HOUSING)
    (file,) = collect([str(tmp_path / "year=2023" / "drop")]).files
    assert file.partitions == {}


def test_files_of_the_same_name_are_distinguished(tmp_path: Path) -> None:
    """Findings name files, so no two may have one name."""
    write_table(tmp_path / "one" / "part-0.parquet", HOUSING)
    write_table(tmp_path / "two" / "part-0.parquet", HOUSING)
    found = labels(collect([str(tmp_path / "one"), str(tmp_path / "two")]))
    assert found == [str(tmp_path / "one" / "part-0.parquet"), str(tmp_path / "two" / "part-0.parquet")]


@pytest.mark.parametrize(
    ("marker", "file"),
    [
        ("_delta_log/00000000000000000000.json", "part-0.parquet"),
        ("_delta_log/00000000000000000000.json", "Zq/part-0.parquet"),
        (".hoodie/hoodie.properties", "2026/10/part-0.parquet"),
        ("metadata/v1.metadata.json", "data/part-0.parquet"),
        ("metadata/v1.metadata.json", "data/state=AL/part-0.parquet"),
        ("metadata/v1.metadata.json", "data/0101/1100/part-0.parquet"),
    ],
)
def test_files_of_a_managed_table_are_refused_however_they_are_given(tmp_path: Path, marker: str, file: str) -> None:
    """By table, by any folder of it, by pattern or by file: they also hold rows that were deleted."""
    table = tmp_path / "drop" / "zip_housing"
    (table / marker).parent.mkdir(parents=True)
    (table / marker).write_text("{}")
    write_table(table / file, HOUSING)
    folders = {str(folder) for folder in (table / file).parents if folder.is_relative_to(tmp_path)}
    for given in (
        *folders,
        str(table / file),
        str(table / Path(file).parent / "*.parquet"),
        str(tmp_path / "**/*.parquet"),
    ):
        found = collect([given])
        assert (given, labels(found), [one.rule for one in found.findings]) == (given, [], ["table-format"])


def test_files_beside_the_metadata_of_something_else_are_read(tmp_path: Path) -> None:
    """Only what is in `data`, or in folders of a partition, is an Iceberg table's."""
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_text("{}")
    write_table(tmp_path / "exports" / "2026-10" / "housing.parquet", HOUSING)
    assert labels(collect([str(tmp_path / "exports" / "2026-10")])) == ["housing.parquet"]
