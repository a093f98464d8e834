"""Files made to hurt, and files that broke: each is refused with a finding that names it, or published as it is."""

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.text import printable
from tests.support.drops import (
    HOUSING,
    LOCATIONS,
    POPULATION,
    Rows,
    homes,
    location,
    people,
    project,
    write_drop,
    write_table,
)
from tests.warehouse.footers import change_footer, varint
from tests.warehouse.helpers import NO_LIMITS, examine
from tests.warehouse.helpers import errors as refusals
from warehouse.drops import pipeline
from warehouse.drops.collection import collect
from warehouse.drops.messages import ReadRequest, ReadResult
from warehouse.drops.reader import read_in_subprocess
from warehouse.schema.findings import Finding

Make = Callable[[Path], Path]


def asked(drop: Path, limits: dict[str, float] = NO_LIMITS) -> ReadRequest:
    out = Path(f"{drop}.out") / "tables"
    out.mkdir(parents=True, exist_ok=True)
    return ReadRequest(paths=(str(drop),), out=str(out), before=None, limits=limits)


def read_here(drop: Path) -> ReadResult:
    return pipeline.read_drop(asked(drop))


def apart(drop: Path) -> ReadResult:
    return read_in_subprocess(asked(drop), lambda _: None, seconds=60)


def errors(read: ReadResult) -> list[Finding]:
    assert (read.failure, read.no_drop) == (None, None)
    return [found for found in read.findings if found.severity == "error"]


def only(read: ReadResult, rule: str) -> Finding:
    """The one finding of `rule` among the errors; others may follow from it."""
    (found,) = [error for error in errors(read) if error.rule == rule]
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, list[tuple[Any, ...]]]:
    """A file with a checksum on every page, its bytes, and what it holds."""
    path = tmp_path_factory.mktemp("small") / "zip_housing.parquet"
    write_table(path, HOUSING, write_page_checksum=True)
    return path, path.read_bytes(), examine(path).rows("housing", *HOUSING[0])


_FUZZ = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,  # what crashes the library would crash the tests: in real life it is a process of its own
)


@_FUZZ
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_truncated_anywhere_is_refused(small: tuple[Path, bytes, list[tuple[Any, ...]]], share: float) -> None:
    path, whole, _ = small
    path.write_bytes(whole[: int(len(whole) * share)])
    drop = collect([str(path)])
    assert [(one.rule in ("truncated-file", "not-parquet"), one.severity) for one in drop.findings] == [(True, "error")]
    assert drop.files == ()


@_FUZZ
@given(share=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_a_byte_changed_in_a_page_is_refused_or_changes_nothing(
    small: tuple[Path, bytes, list[tuple[Any, ...]]], share: float, flip: int
) -> None:
    """Every page has a checksum here, which covers all but its header."""
    path, whole, held = small
    footer = struct.unpack("<i", whole[-8:-4])[0]
    changed = bytearray(whole)
    changed[4 + int((len(whole) - 12 - footer) * share)] ^= flip
    path.write_bytes(changed)
    found = examine(path)
    assert refusals(found.report) or found.rows("housing", *HOUSING[0]) == held


@_FUZZ
@given(share=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_a_byte_changed_anywhere_is_never_more_than_a_finding(
    small: tuple[Path, bytes, list[tuple[Any, ...]]], share: float, flip: int
) -> None:
    """No traceback, and no row is lost without one. The footer has no checksum: a name may change there, or a place."""
    path, whole, _ = small
    changed = bytearray(whole)
    changed[int(len(whole) * share)] ^= flip
    path.write_bytes(changed)
    drop = collect([str(path)])
    if drop.files:
        found = examine(path)
        assert refusals(found.report) or len(found.rows("housing", "zip_code")) == len(HOUSING)
    else:
        assert [one.severity for one in drop.findings] == ["error"]


def test_a_file_of_noise_between_the_markers_is_refused(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop", housing=None)
    names = set()
    for number, noise in enumerate((bytes(1000), os.urandom(1000), b"\xff" * 1000)):
        for length in (0, 4, 900, 1 << 30, (1 << 31) - 1):
            name = f"zip_housing-{number}-{length}.parquet"
            (drop / name).write_bytes(b"PAR1" + noise + struct.pack("<i", length) + b"PAR1")
            names.add(name)
    assert {found.file for found in errors(read_here(drop)) if found.rule == "unreadable-file"} == names


def repeated(path: Path, one: dict[str, Any], rows: int, groups: int) -> Path:
    """`one` row many times over, which a dictionary and run lengths make tiny."""
    same = pa.repeat(pa.scalar(0, pa.int32()), rows)
    row = pa.Table.from_pylist([one])
    columns = [pa.DictionaryArray.from_arrays(same, column.chunk(0)) for column in row.columns]
    group = pa.table(columns, names=row.column_names)
    with pq.ParquetWriter(path, group.schema, compression="zstd", store_schema=False) as writer:
        for _ in range(groups):
            writer.write_table(group, row_group_size=rows)
    return path


def test_a_billion_equal_rows_in_a_small_file_are_refused_unread(tmp_path: Path) -> None:
    """In many parts: what all of them claim is added up before any is read."""
    drop = write_drop(tmp_path / "drop", population=None)
    part = repeated(drop / "part-000.parquet", people("36436", 2023, 783), 500_000, 100)
    assert part.stat().st_size < 2 << 20
    for number in range(1, 21):
        shutil.copy(part, drop / f"part-{number:03}.parquet")
    found = only(apart(drop), "too-many-rows")
    assert "1,050,000," in found.message
    assert found.samples[0] == "part-000.parquet: 50,000,000 rows"


def test_row_groups_that_hold_more_than_the_footer_says_count_as_well(tmp_path: Path) -> None:
    """A footer that says one row is no way past the limit."""
    drop = write_drop(tmp_path / "drop")
    path = repeated(drop / "zip_housing.parquet", homes("36436"), 1_000, 3)
    change_footer(path, lambda footer: footer.replace(varint(3_000), varint(1), 1))
    assert pq.read_metadata(path).num_rows == 1
    read = pipeline.read_drop(asked(drop, {**NO_LIMITS, "too-many-rows": 2_000}))
    assert only(read, "too-many-rows").samples[0] == "zip_housing.parquet: 3,000 rows"


def texts(path: Path, rows: int, length: int) -> Path:
    """Pages of almost nothing that are `rows` times `length` bytes when they are unpacked."""
    table = [location(f"{number:05}", "Dickinson", "AL", county_name="\0" * length) for number in range(rows)]
    return write_table(path, table, compression="zstd", use_dictionary=False)


@pytest.mark.parametrize("megabytes", [40, pytest.param(320, marks=pytest.mark.soak)])
def test_pages_that_unpack_to_many_megabytes_are_refused_in_bounded_memory(tmp_path: Path, megabytes: int) -> None:
    drop = write_drop(tmp_path / "drop", locations=None)
    path = texts(drop / "zip_locations.parquet", megabytes * 25, 40_000)
    assert path.stat().st_size < 1 << 20
    (found,) = [error for error in errors(apart(drop)) if error.rule in ("unreadable-value", "reader-failed")]
    assert found.table == "locations"


@pytest.mark.parametrize("megabytes", [10, pytest.param(100, marks=pytest.mark.soak)])
def test_a_value_of_many_megabytes_is_refused_with_its_row(tmp_path: Path, megabytes: int) -> None:
    """And is not repeated in the finding."""
    rows: Rows = [location("36436", "a" * (megabytes * 1_000_000), "AL"), *LOCATIONS[1:]]
    drop = write_drop(tmp_path / "drop", locations=rows)
    found = only(apart(drop), "unreadable-value")
    assert (found.table, found.column, len(found.samples)) == ("locations", "city_name", 1)
    assert found.samples[0].startswith("row 1 36436 has aaa")
    assert len(found.samples[0]) < 100


def test_text_of_ten_thousand_characters_is_the_longest(tmp_path: Path) -> None:
    for length, refused in ((10_000, False), (10_001, True)):
        drop = write_drop(tmp_path / str(length), projects=[project("p1", project_name="é" * length)])
        assert bool(errors(read_here(drop))) == refused


def test_a_column_chunk_that_claims_gigabytes_is_refused(tmp_path: Path) -> None:
    """Each number of the footer in turn becomes two billion: sizes, offsets, counts."""
    drop = write_drop(tmp_path / "drop")
    path = write_table(drop / "zip_housing.parquet", HOUSING, compression="none", use_dictionary=False)
    whole = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(1)
    for number in (chunk.total_compressed_size, chunk.data_page_offset):
        path.write_bytes(whole)
        change_footer(path, lambda footer: footer.replace(varint(number)[1:], b"\xfe\xff\xff\xff\x0f"))  # noqa: B023
        assert path.read_bytes() != whole
        read = apart(drop)
        assert errors(read) or read.tables["housing"].rows == len(HOUSING)


def many_columns(path: Path, rows: Rows) -> None:
    own = pa.Table.from_pylist(list(rows))
    numbers = pa.array([*range(len(rows) - 1), None], pa.int64())
    many = {f"column {index} of many": numbers for index in range(10_000)}
    written(path, pa.table({**dict(zip(own.column_names, own.columns, strict=True)), **many}))


def large_footer(path: Path, rows: Rows) -> None:
    written(path, pa.Table.from_pylist(list(rows)).replace_schema_metadata({"k": "v" * (16 << 20)}))


def nested(path: Path, rows: Rows, depth: int = 40) -> None:
    values = pa.array(range(len(rows)), pa.int8())
    for _ in range(depth):
        values = pa.StructArray.from_arrays([values], ["x"])
    written(path, pa.Table.from_pylist(list(rows)).append_column("deep", values))


def written(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path)


def test_unneeded_columns_and_metadata_do_no_harm_however_much_there_is(tmp_path: Path) -> None:
    """Ten thousand columns, a footer of many megabytes, a type in a type in a type."""
    drop = write_drop(tmp_path / "drop")
    many_columns(drop / "zip_housing.parquet", HOUSING)
    large_footer(drop / "zip_population.parquet", POPULATION)
    nested(drop / "zip_locations.parquet", LOCATIONS)
    read = apart(drop)
    assert not errors(read)
    for table, rows in (("housing", HOUSING), ("population", POPULATION), ("locations", LOCATIONS)):
        assert read.tables[table].rows == len(rows)
    assert all(len(found.message) <= 1000 for found in read.findings)


def padded(path: Path, rows: Rows) -> None:
    """A footer that is larger than that of any export."""
    written(path, pa.Table.from_pylist(list(rows)))
    change_footer(path, lambda footer: footer + b"\0" * (65 << 20))


def in_groups(path: Path, rows: Rows) -> None:
    """Each of one row, and far more of them than any export has."""
    table = pa.Table.from_pylist(list(rows[:1])).select(["zip_code"])
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        for _ in range(50_001):
            writer.write_table(table)


def of_columns(path: Path, rows: Rows) -> None:
    own = pa.Table.from_pylist(list(rows[:1]))
    written(
        path,
        pa.table({**dict(zip(own.column_names, own.columns, strict=True)), **{f"c{n}": [1] for n in range(20_000)}}),
    )


def claiming(path: Path, rows: Rows) -> None:
    """A row group whose pages unpack to terabytes, as its footer says it."""
    written(path, pa.Table.from_pylist(list(rows)))
    size = pq.read_metadata(path).row_group(0).total_byte_size
    change_footer(path, lambda footer: footer.replace(varint(size), varint(1 << 42)))


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (of_columns, "has 20,006 columns; the limit is 20,000"),
        (in_groups, "has 50,001 row groups; the limit is 50,000"),
        (padded, "bytes; the limit is 67,108,864"),
        (claiming, "unpacks to 4,398,046,511,104 bytes; the limit is 4,294,967,296"),
    ],
    ids=["columns", "row groups", "footer", "contents"],
)
def test_a_file_that_claims_more_than_any_export_has_is_refused_by_its_footer(
    tmp_path: Path, make: Callable[[Path, Rows], None], what: str
) -> None:
    """Nothing else of it is read; the other files are checked all the same."""
    drop = write_drop(tmp_path / "drop")
    make(drop / "zip_housing.parquet", HOUSING)
    (drop / "zip_population.parquet").write_bytes(b"PAR1")
    read = apart(drop)
    assert what in only(read, "oversized-file").message
    assert only(read, "oversized-file").file == "zip_housing.parquet"
    assert {one.follows for one in errors(read) if one.rule == "missing-table"} <= {"oversized-file", "truncated-file"}
    assert only(read, "truncated-file").file == "zip_population.parquet"


def test_pages_that_unpack_to_more_than_the_memory_of_a_drop_are_not_called_damaged(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop", locations=None)
    rows = [location("36436", "Dickinson", "AL", county_name="\0" * 300_000_000), *LOCATIONS[1:]]
    write_table(drop / "zip_locations.parquet", rows, compression="zstd", use_dictionary=False, write_statistics=False)
    assert (drop / "zip_locations.parquet").stat().st_size < 1 << 20
    read = read_in_subprocess(asked(drop), lambda _: None, memory=500 << 20)
    found = [error for error in errors(read) if error.table == "locations" and not error.follows]
    assert [one.rule for one in found] == ["oversized-file"]
    assert "unpack" in found[0].message


@pytest.mark.parametrize("depth", [200, 3000])
def test_types_nested_beyond_reason_are_refused(tmp_path: Path, depth: int) -> None:
    """Where a stack would end, the reader's ends, and no other."""
    drop = write_drop(tmp_path / "drop")
    nested(drop / "zip_housing.parquet", HOUSING, depth)
    assert {error.rule for error in errors(apart(drop))} & {"unreadable-file", "reader-failed"}


def test_ten_thousand_columns_of_years_are_one_finding(tmp_path: Path) -> None:
    """Those that can be are read; that a year cannot be is said once, not once for each."""
    years = {f"tot_fx_pop_{year:04}": pa.array([1]) for year in (*range(1000), 2030, *range(3000, 9999))}
    drop = write_drop(tmp_path / "drop")
    written(drop / "zip_population.parquet", pa.table({"zip_code": pa.array(["36436"]), **years}))
    found = only(apart(drop), "out-of-range")
    assert (found.count, found.samples[0]) == (7999, "tot_fx_pop_0000")


def figures(kind: pa.DataType, figure: Any) -> Make:
    return lambda folder: write_table(
        folder / "zip_population.parquet", [people("36436", 2023, figure)], {"tot_population": kind}
    )


def day(kind: pa.DataType, value: Any) -> Make:
    return lambda folder: write_table(
        folder / "projects.parquet", [project("p1", start_date=value)], {"start_date": kind}
    )


@pytest.mark.parametrize(
    ("make", "column"),
    [
        (figures(pa.uint64(), 2**64 - 1), "tot_population"),
        (figures(pa.decimal128(38, 0), 10**37), "tot_population"),
        (figures(pa.decimal128(38, 0), -(10**37)), "tot_population"),
        (figures(pa.float64(), 1e300), "tot_population"),
        (figures(pa.string(), "9" * 400), "tot_population"),
        (day(pa.date32(), 2**31 - 1), "start_date"),
        (day(pa.date32(), -(2**31) + 1), "start_date"),
        (day(pa.timestamp("us"), 2**63 - 1), "start_date"),
        (day(pa.timestamp("s"), 10**12), "start_date"),
        (day(pa.string(), "infinity"), "start_date"),
        (day(pa.string(), "12345-06-07"), "start_date"),
    ],
)
def test_numbers_and_days_beyond_all_bounds_are_refused_with_their_row(tmp_path: Path, make: Make, column: str) -> None:
    drop = write_drop(tmp_path / "drop")
    make(drop)
    (found,) = errors(read_here(drop))
    assert (found.rule, found.column, len(found.samples)) == ("unreadable-value", column, 1)
    assert found.samples[0].startswith("row 1 ")


_HOSTILE = "x\x1b]0;owned\x07\x1b[2J\n\u202e"


def test_no_name_or_value_commands_a_terminal(tmp_path: Path) -> None:
    """Names of files, folders, columns and cities, values that cannot be read, sources in a footer."""
    drop = write_drop(tmp_path / "drop", population=None)
    row = {**people("36436", 2023, 1), _HOSTILE: 1, "tot_population": _HOSTILE}
    write_table(
        drop / f"year={_HOSTILE}" / f"{_HOSTILE}.parquet", [row], {_HOSTILE: pa.int8(), "tot_population": pa.string()}
    )
    (drop / f"{_HOSTILE}.txt").write_text(_HOSTILE)
    (drop / f"_{_HOSTILE}").write_text("")
    (drop / f"{_HOSTILE}2.parquet").write_text(_HOSTILE)
    table = pa.Table.from_pylist(list(HOUSING)).replace_schema_metadata({"forecast.attribution": _HOSTILE})
    written(drop / "zip_housing.parquet", table)
    read = read_here(drop)
    assert {"unreadable-value", "not-parquet"} <= {error.rule for error in errors(read)}
    said = [text for found in read.findings for text in (found.message, found.file or "", *found.samples)]
    said += [*read.attribution, *(file for info in read.tables.values() for file in info.files)]
    assert sum("\\u001b" in text for text in said) >= 8
    assert [text for text in said if printable(text) != text] == []


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    """Here it is replaced by another good one, which no other check would notice."""
    drop = write_drop(tmp_path / "drop")
    path = drop / "zip_housing.parquet"

    def replace(step: str) -> None:
        if step == "reading zip_population.parquet":
            write_table(path, [homes("36436", tot_home_available_2023=1)])

    found = only(pipeline.read_drop(asked(drop), replace), "changed-file")
    assert found.file == path.name


@pytest.mark.parametrize("step", ["reading zip_city_aliases.parquet", "validating"])
def test_a_file_that_goes_away_while_it_is_read_is_never_more_than_a_finding(tmp_path: Path, step: str) -> None:
    drop = write_drop(tmp_path / "drop")

    def remove(now: str) -> None:
        if now == step:
            (drop / "zip_housing.parquet").unlink()

    found = errors(pipeline.read_drop(asked(drop), remove))
    assert bool(found) == (step != "validating"), "what has been read needs no file any more"


def test_a_pipe_that_takes_a_files_place_does_not_block(tmp_path: Path) -> None:
    """It was a file when it was looked at; opening what it is now would wait for ever."""
    for number in range(20):  # on a busy machine the reader may be quicker than we are, or not begin in time
        drop = write_drop(tmp_path / f"drop-{number}", housing=None)
        path = write_table(drop / "zip_housing.parquet", HOUSING)
        steps: list[str] = []

        def swap(step: str, path: Path = path, steps: list[str] = steps) -> None:
            if not steps:  # the first step comes before it reads housing
                path.unlink()
                os.mkfifo(path)
            steps.append(step)

        found = errors(read_in_subprocess(asked(drop), swap, seconds=2))
        if steps and found:
            return
    raise AssertionError("the pipe was never in time")


def test_a_device_given_by_its_name_is_no_file() -> None:
    found = [(one.rule, one.severity) for one in collect(["/dev/zero"]).findings]
    assert found == [("unreadable-file", "error")]


@pytest.mark.parametrize("link", ["../secret", "../" * 20 + "etc/passwd", "sub/../../secret/a.parquet"])
def test_no_link_leads_out_of_a_drop(tmp_path: Path, link: str) -> None:
    write_table(tmp_path / "secret" / "a.parquet", POPULATION)
    drop = write_drop(tmp_path / "drop")
    (drop / "sub").mkdir()
    (drop / "link.parquet").symlink_to(link)
    assert only(read_here(drop), "link-out-of-drop").file == "link.parquet"
