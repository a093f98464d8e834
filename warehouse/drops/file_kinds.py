"""Identifies files that are not readable Parquet, by their first bytes and their name, with a remedy for each kind.

It also identifies the folders of table formats, whose Parquet files must not be read one by one.
"""

import re
from itertools import pairwise
from pathlib import Path

import msgspec

HEAD_BYTES = 512  # enough for every mark below

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DELIMITERS = (",", ";", "\t", "|")
_UNPACK = "unpack it, and drop the Parquet files inside"
_AS_PARQUET = "export the table as Parquet"

# Names of unfinished files: browsers, copy tools and writers use them until a file is complete.
_UNFINISHED = re.compile(r"(?is).*\.(tmp|temp|part|partial|filepart|crdownload|download|inprogress|_copying_)")
_SAYS_PARQUET = re.compile(
    r"(?is).*(\.(parquet|parq|pq)(\.[a-z0-9_]+)*|parquet.*\.(gz|zip|zst|bz2|xz|tar|tgz|7z|rar|lz4))"
)
_TABLE_NAME = re.compile(
    r"(?is).*\.(csv|tsv|psv|jsonl|ndjson|orc|avro|xlsx?|xlsb|ods|arrow|feather|dta|sas7bdat|sav|dbf|mdb|accdb)"
)
# Names of files that describe tables or folders, or mark them as complete.
_COMPANION = re.compile(
    r"(?is)(.*[^a-z])?(manifest|schema|checksums?|metadata|readme|dictionary|logs?|"
    r"(rows?|records?|lines?|files?|tables?)[ _-]?counts?)([^a-z].*)?|counts?\..*|"
    r".*\.(sha[0-9]*|md5|sig|asc|done|ok|ready|ctl|trg)|(sha[0-9]*|md5)sums?(\..*)?|(eh)?thumbs\.db|desktop\.ini"
)
_SIDECAR = re.compile(r"(?is)(?P<file>(?P<folder>.+?)\.(parquet|parq|pq))\..+")
_JSON_LIST = re.compile(rb"""\[\s*[\[{"\d\]-]""")


class FileKind(msgspec.Struct, frozen=True):
    """A kind of file. The kinds are constant; each file that is not Parquet has one."""

    name: str  # follows "is" in a message
    remedy: str
    holds_table: bool = True  # it may hold a table, which is not read


class UnreadFile(msgspec.Struct, frozen=True):
    """A file that may hold a table, but is not Parquet. Lives while the drop is read."""

    kind: FileKind
    columns: tuple[str, ...] = ()  # names in its first line, if it has any
    companion: bool = False  # its name is that of a file that describes others


ENCRYPTED = FileKind("an encrypted Parquet file", "export it without encryption")
EMPTY = FileKind("empty", _AS_PARQUET, holds_table=False)
_ZEROS = FileKind("a file of zero bytes only", "this comes from an unfinished copy: copy it again", holds_table=False)
_EXCEL = FileKind("an Excel workbook", _AS_PARQUET)
_OLE = FileKind("a Microsoft Office or Windows file", _AS_PARQUET, holds_table=False)
_CSV = FileKind("a CSV file", _AS_PARQUET)
_TEXT = FileKind("a text file", _AS_PARQUET, holds_table=False)
_ZIP = FileKind("a zip archive", _UNPACK)
UNKNOWN = FileKind("not Parquet", _AS_PARQUET, holds_table=False)

# (offset, bytes) -> kind; the first match decides
_MARKS: tuple[tuple[int, bytes, FileKind], ...] = (
    (0, b"PARE", ENCRYPTED),
    (0, b"\x1f\x8b", FileKind("a gzip file", "unpack it: gunzip")),
    (0, b"\x28\xb5\x2f\xfd", FileKind("a Zstandard file", "unpack it: unzstd")),
    (0, b"BZh", FileKind("a bzip2 file", "unpack it: bunzip2")),
    (0, b"\xfd7zXZ\x00", FileKind("an xz file", "unpack it: unxz")),
    (0, b"\x04\x22\x4d\x18", FileKind("an lz4 file", "unpack it: unlz4")),
    (0, b"\xff\x06\x00\x00sNaPpY", FileKind("a Snappy file", "unpack it: Parquet compresses its own pages")),
    (0, b"7z\xbc\xaf\x27\x1c", FileKind("a 7-Zip archive", _UNPACK)),
    (0, b"Rar!", FileKind("a RAR archive", _UNPACK)),
    (257, b"ustar", FileKind("a tar archive", _UNPACK)),
    (0, b"ORC", FileKind("an ORC file", _AS_PARQUET)),
    (0, b"Obj\x01", FileKind("an Avro file", _AS_PARQUET)),
    (0, b"ARROW1", FileKind("an Arrow file", _AS_PARQUET)),
    (0, b"FEA1", FileKind("a Feather file", _AS_PARQUET)),
    (0, b"SQLite format 3", FileKind("an SQLite database", _AS_PARQUET)),
    (8, b"DUCK", FileKind("a DuckDB database", _AS_PARQUET)),
    (0, b"\x89HDF", FileKind("an HDF5 file", _AS_PARQUET)),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _EXCEL),
    (0, b"version https://git-lfs", FileKind("a Git LFS pointer, not the file itself", "fetch the file: git lfs pull")),
)
# Kinds that may be a second copy of the table, so a file of them is no description.
_BINARY = (_ZIP, *(kind for _, _, kind in _MARKS))


def kind_of(head: bytes, name: str) -> FileKind:
    """Returns the kind of a file by its first bytes (`HEAD_BYTES`); text and archives also by the name."""
    if not head:
        return EMPTY
    for offset, mark, kind in _MARKS:
        if head[offset : offset + len(mark)] == mark:
            return _OLE if kind is _EXCEL and has_companion_name(name) else kind  # Thumbs.db
    if head.startswith(b"PK\x03\x04"):
        office = b"[Content_Types].xml" in head or b"_rels/" in head or b"xl/" in head
        return _EXCEL if office else _ZIP
    if not head.strip(b"\0"):
        return _ZEROS
    return _kind_of_text(head.removeprefix(_BYTE_ORDER_MARK).lstrip(), name.lower())


def says_parquet(name: str) -> bool:
    """Returns whether a name is that of a Parquet file, also if it is packed or unfinished."""
    return _SAYS_PARQUET.fullmatch(name) is not None


def is_unfinished(name: str) -> bool:
    """Returns whether tools use such a name until a file is complete."""
    return _UNFINISHED.fullmatch(name) is not None


def may_hold_table(kind: FileKind, name: str) -> bool:
    return kind.holds_table or _TABLE_NAME.fullmatch(name) is not None


def has_companion_name(name: str) -> bool:
    """Returns whether a name is that of a file that describes others and holds no table, such as `schema.json`."""
    return _COMPANION.fullmatch(name) is not None


def accompanies(path: Path, kind: FileKind) -> bool:
    """Returns whether a file describes the Parquet file or folder beside it: `housing.parquet.sha256`."""
    named = _SIDECAR.fullmatch(path.name)
    if named is None or kind in _BINARY:
        return False
    return path.with_name(named["file"]).exists() or path.with_name(named["folder"]).is_dir()


def columns_of(kind: FileKind, head: bytes) -> tuple[str, ...]:
    """Returns the names in the first line of a CSV file, in lower case, as far as `head` has them; otherwise none."""
    if kind is not _CSV:
        return ()
    line = head.removeprefix(_BYTE_ORDER_MARK).partition(b"\n")[0].decode(errors="replace")
    delimiter = max(_DELIMITERS, key=line.count)
    return tuple(name.strip(" \r\"'").lower() for name in line.split(delimiter))


def _kind_of_text(text: bytes, name: str) -> FileKind:
    start = text[:15].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return FileKind("a web page", "this comes from a failed download: download it again", holds_table=False)
    if start.startswith(b"<"):
        return FileKind("an XML file", _AS_PARQUET, holds_table=False)
    first, _, rest = text.partition(b"\n")
    is_list = _JSON_LIST.match(text) is not None
    if is_list or start.startswith(b"{"):
        records = is_list or rest.lstrip().startswith(b"{")  # a single object is metadata, not a table
        return FileKind("a JSON file", _AS_PARQUET, holds_table=records)
    if any(byte < ord("\t") for byte in text):
        return UNKNOWN
    second = rest.partition(b"\n")[0] or first
    least = 1 if says_parquet(name) else 2
    delimited = any(least <= first.count(sign.encode()) == second.count(sign.encode()) for sign in _DELIMITERS)
    return _CSV if delimited or name.endswith((".csv", ".tsv", ".psv")) else _TEXT


# --- folders of tables ---------------------------------------------------------------------------------------------

_ICEBERG = "an Iceberg table"


def managed_at(folder: Path) -> tuple[Path, str] | None:
    """Returns the managed table that `folder` is or belongs to, and its format."""
    kind = managed_by(folder)
    if kind is not None:
        return folder, kind
    for below, above in pairwise((folder, *folder.parents)):
        kind = managed_by(above)
        # `metadata` is a common name: only the folders where Iceberg stores its files belong to it
        if kind is not None and (kind != _ICEBERG or below.name == "data" or "=" in below.name):
            return above, kind
    return None


def managed_by(folder: Path) -> str | None:
    """Returns the table format that decides which Parquet files of a folder are current, or None."""
    try:
        if (folder / "_delta_log").is_dir():
            return "a Delta table"
        if (folder / ".hoodie").is_dir():
            return "a Hudi table"
        return _ICEBERG if any((folder / "metadata").glob("*.metadata.json")) else None
    except PermissionError:  # reading the folder or its files makes the finding
        return None
