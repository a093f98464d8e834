"""A file that cannot be read is named by what is wrong with it, with a remedy that helps: another export may not."""

import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from tests.support.drops import HOUSING, Rows, homes, project, write_drop, write_table
from tests.warehouse.footers import change_footer
from tests.warehouse.helpers import NO_LIMITS
from tests.warehouse.parquet_types import annotate, old
from warehouse.drops.messages import ReadRequest, ReadResult
from warehouse.drops.pipeline import read_drop
from warehouse.rules.rule import EXPORT_AGAIN
from warehouse.schema.findings import Finding
from warehouse.schema.tables import HOUSING_FIGURES

Spoil = Callable[[Path], None]
_PLAIN: dict[str, Any] = {"compression": "none", "use_dictionary": False}


@cache
def many() -> Rows:
    """Some thousand line feeds in a file without a dictionary."""
    figures = random.Random(7)
    return [
        homes(f"{zip_code:05}", **{figure: figures.randrange(500_000) for figure in HOUSING_FIGURES})
        for zip_code in range(40_000)
    ]


def written(folder: Path, rows: Rows = HOUSING, **options: Any) -> Path:
    return write_table(write_drop(folder) / "zip_housing.parquet", rows, **options)


def read(folder: Path) -> ReadResult:
    out = folder.parent / "out" / "tables"
    out.mkdir(parents=True)
    request = ReadRequest(paths=(str(folder),), out=str(out), before=None, limits=NO_LIMITS)
    return read_drop(request)


def fault(folder: Path) -> Finding:
    """The only error that follows from no other."""
    found = read(folder)
    assert (found.failure, found.no_drop) == (None, None)
    (only,) = [one for one in found.findings if one.severity == "error" and one.rule != "missing-table"]
    assert only.file == "zip_housing.parquet"
    return only


def text_mode(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def text_mode_back(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))


def as_utf_8(path: Path) -> None:
    path.write_bytes(path.read_bytes().decode(errors="replace").encode())


def as_latin_1(path: Path) -> None:
    path.write_bytes(path.read_bytes().decode("latin-1").encode())


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (text_mode, "each line feed has a carriage return before it"),
        (text_mode_back, "no line feed has a carriage return before it"),
        (as_utf_8, "its bytes were converted to UTF-8"),
        (as_latin_1, "its bytes were converted to UTF-8"),
    ],
)
def test_a_transfer_as_text_is_named(tmp_path: Path, spoil: Spoil, what: str) -> None:
    path = written(tmp_path / "drop", many(), compression="zstd", use_dictionary=False)
    spoil(path)
    found = fault(tmp_path / "drop")
    assert (found.rule, what in found.message) == ("unreadable-file", True)
    assert (found.remedy or "").startswith("transfer it in binary mode")


def test_line_ends_in_a_whole_file_are_no_fault(tmp_path: Path) -> None:
    """Addresses may have several lines, and all line feeds of a small file may be theirs."""
    folder = write_drop(tmp_path / "drop")
    rows = [project(f"A-{row}", address="1 MILL ST\r\nDICKINSON") for row in range(20)]
    path = write_table(folder / "projects.parquet", rows, **_PLAIN)
    assert path.read_bytes().count(b"\r\n") >= 20
    assert not [one for one in read(folder).findings if one.severity == "error"]


@pytest.mark.parametrize(("added", "size"), [(b"\n", "1 byte"), (bytes(1000), "1,000 byte"), (b"PAR1 PAR", "8 byte")])
def test_bytes_after_the_end_are_counted_and_can_be_cut_off(tmp_path: Path, added: bytes, size: str) -> None:
    path = written(tmp_path / "drop")
    whole = path.read_bytes()
    path.write_bytes(whole + added)
    found = fault(tmp_path / "drop")
    assert f"has {size}(s) after its end" in found.message
    assert f"truncate -s {len(whole)} zip_housing.parquet" in (found.remedy or "")


def test_a_truncated_file_is_still_truncated(tmp_path: Path) -> None:
    path = written(tmp_path / "drop")
    path.write_bytes(path.read_bytes()[:-100])
    assert fault(tmp_path / "drop").rule == "truncated-file"


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("same", [True, False])
def test_files_joined_into_one_are_refused(tmp_path: Path, parts: int, same: bool) -> None:
    """The footer of the last describes the rows of the first if both are alike: half of the rows would be lost."""
    path = written(tmp_path / "drop")
    first = path.read_bytes()
    write_table(path, HOUSING if same else many())
    path.write_bytes(first * (parts - 1) + path.read_bytes())
    found = fault(tmp_path / "drop")
    assert f"is {parts} Parquet files joined into one" in found.message
    assert found.remedy == "deliver them as separate files in one folder"


def compressed_with(number: int) -> Spoil:
    """The footer says another codec for each column."""
    chunk = re.compile(rb"(\x18.(?:zip|tot|est)_[a-z_0-9]+\x15)\x02", re.DOTALL)
    return lambda path: change_footer(path, lambda footer: chunk.sub(rb"\g<1>" + bytes([number * 2]), footer))


def encoded_in_another_way(path: Path) -> None:
    """Each page says an encoding that no version has."""
    page = re.compile(rb"(\x2c\x15..?\x15)\x00(\x15\x06\x15\x06)", re.DOTALL)
    path.write_bytes(page.sub(lambda found: found[1] + b"\x28" + found[2], path.read_bytes()))


@pytest.mark.parametrize(
    ("spoil", "what", "remedy"),
    [
        (compressed_with(3), "has a compression that cannot be read", "SNAPPY, GZIP or ZSTD"),
        (compressed_with(12), "has a compression, an encoding or a type that cannot be read", "SNAPPY, GZIP or ZSTD"),
        (encoded_in_another_way, "has an encoding that cannot be read", "plain or dictionary encoding"),
    ],
    ids=["LZO", "a codec of the future", "an encoding of the future"],
)
def test_codecs_and_encodings_that_cannot_be_read_are_named(
    tmp_path: Path, spoil: Spoil, what: str, remedy: str
) -> None:
    path = written(tmp_path / "drop", use_dictionary=False, compression="snappy")
    if spoil is encoded_in_another_way:
        write_table(path, HOUSING, **_PLAIN)
    spoil(path)
    found = fault(tmp_path / "drop")
    assert what in found.message
    assert remedy in (found.remedy or "")


def with_column(path: Path, name: str, values: pa.Array, annotation: bytes) -> None:
    table = pa.Table.from_pylist(list(HOUSING))
    kept = table.drop_columns([name]) if name in table.column_names else table
    pq.write_table(kept.append_column(name, values), path, store_schema=False, **_PLAIN)
    annotate(path, name, annotation)


def not_utf_8(path: Path) -> None:
    with_column(path, "zip_code", pa.array([b"3643\xb2"] * len(HOUSING)), old(0))


def bson(path: Path) -> None:
    with_column(path, "document", pa.array([b"\x05\x00\x00\x00\x00"] * len(HOUSING)), old(20))


def of_80_digits(path: Path) -> None:
    with_column(path, "wide", pa.array([bytes(34)] * len(HOUSING), pa.binary(34)), old(5, 2, 80))


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (not_utf_8, "has text that is not UTF-8"),
        (bson, "has a BSON column"),
        (of_80_digits, "has a DECIMAL of more than 76 digits"),
    ],
)
def test_columns_that_no_library_reads_are_named(tmp_path: Path, spoil: Spoil, what: str) -> None:
    spoil(written(tmp_path / "drop"))
    found = fault(tmp_path / "drop")
    assert what in found.message
    assert found.remedy != EXPORT_AGAIN


def test_other_damage_is_to_be_exported_again(tmp_path: Path) -> None:
    path = written(tmp_path / "drop", write_page_checksum=True, **_PLAIN)
    path.write_bytes(path.read_bytes().replace(b"\5\0\0\x0036436", b"\5\0\0\x0036437"))
    found = fault(tmp_path / "drop")
    assert ("is damaged" in found.message, found.remedy) == (True, EXPORT_AGAIN)


class _Keys(pe.KmsClient):  # type: ignore[misc]
    """Wraps keys in nothing."""

    def wrap_key(self, key: bytes, master: str) -> bytes:
        return key + master.encode()

    def unwrap_key(self, key: bytes, master: str) -> bytes:
        return key[: -len(master)]


def encrypted(path: Path, rows: Rows, *columns: str) -> None:
    """The footer stays plain."""
    settings = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": list(columns)}, plaintext_footer=True)
    factory = pe.CryptoFactory(lambda _: _Keys())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), settings)
    table = pa.Table.from_pylist(list(rows))
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)


def test_encrypted_columns_are_named(tmp_path: Path) -> None:
    """Reading one ends the process."""
    encrypted(written(tmp_path / "drop"), HOUSING, "tot_home_available_2020", "est_total_home_demand_2030")
    found = fault(tmp_path / "drop")
    assert (found.rule, found.table, found.count) == ("unreadable-file", "housing", 2)
    assert found.message.endswith("has encrypted columns: est_total_home_demand_2030, tot_home_available_2020")
    assert found.remedy == "export it without encryption"


def test_an_encrypted_column_that_is_not_needed_does_no_harm(tmp_path: Path) -> None:
    path = written(tmp_path / "drop")
    encrypted(path, [{**row, "note": "x"} for row in HOUSING], "note")
    found = read(tmp_path / "drop")
    assert not [one for one in found.findings if one.severity == "error"]
    assert found.tables["housing"].rows == len(HOUSING)
