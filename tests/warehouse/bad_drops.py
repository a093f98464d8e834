"""Every kind of bad drop that we know, each a good drop with one fault, and what must be said of it."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from datetime import date
from typing import Any

import msgspec
import pyarrow as pa

from tests.support.drops import ALIASES, HOUSING, alias, homes, location, people, project, wide_people
from tests.warehouse import spoiling
from tests.warehouse.spoiling import (
    AT,
    Spoil,
    add,
    dated,
    each,
    figures_as,
    file,
    in_folder,
    instead,
    moved,
    only,
    renamed,
    without,
    zip_codes_as,
)


class Bad(msgspec.Struct, frozen=True):
    """`spoil` is called with the folder of a good drop; `cause` is part of what the finding of `rule` says."""

    kind: str
    rule: str
    cause: str
    spoil: Spoil
    limit: float | None = None


def _by(rule: str, *faults: tuple[str, str, Spoil]) -> tuple[Bad, ...]:
    """Faults that the same rule finds."""
    return tuple(Bad(kind, rule, cause, spoil) for kind, cause, spoil in faults)


def jackson(city: str = "Jackson", state: str = "AL", **place: float) -> dict[str, Any]:
    return location("36437", city, state, **place)


def _zipped(name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, "36436")
    return stream.getvalue()


def _tarred() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("zip_housing.parquet"))
    return stream.getvalue()


NAMED_PARQUET = (
    ("encrypted", "zip_housing.parquet", b"PARE" + bytes(100) + b"PARE", "is an encrypted Parquet file"),
    ("gzip", "zip_housing.parquet.gz", gzip.compress(b"PAR1"), "is a gzip file, not Parquet"),
    ("gzip-under-another-name", "zip_housing.parquet", gzip.compress(b"PAR1"), "unpack it: gunzip"),
    ("bzip2", "zip_housing.parquet.bz2", bz2.compress(b"PAR1"), "is a bzip2 file"),
    ("xz", "zip_housing.parquet.xz", lzma.compress(b"PAR1"), "is an xz file"),
    ("zstandard", "zip_housing.parquet.zst", b"\x28\xb5\x2f\xfd" + bytes(20), "is a Zstandard file"),
    ("zip-archive", "zip_housing.parquet.zip", _zipped("zip_housing.parquet"), "is a zip archive"),
    ("tar-archive", "parquet-files.tar", _tarred(), "is a tar archive"),
    ("excel", "zip_housing.parquet", _zipped("[Content_Types].xml"), "is an Excel workbook"),
    ("json", "zip_housing.parquet", b'[{"zip_code": "36436"}]', "is a JSON file"),
    ("orc", "zip_housing.parquet", b"ORC" + bytes(20), "is an ORC file"),
    ("avro", "zip_housing.parquet", b"Obj\x01" + bytes(20), "is an Avro file"),
    ("arrow", "zip_housing.parquet", b"ARROW1\x00\x00", "is an Arrow file"),
    ("web-page", "zip_housing.parquet", b"<!DOCTYPE html><title>Sign in</title>", "is a web page"),
    ("git-lfs-pointer", "zip_housing.parquet", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ("zero-bytes", "zip_housing.parquet", bytes(4096), "zero bytes only"),
)

CONTAINERS = (
    *(
        Bad(kind, "unreadable-file" if kind == "encrypted" else "not-parquet", cause, instead(name, content))
        for kind, name, content, cause in NAMED_PARQUET
    ),
    *(
        Bad(f"unfinished{ending}", "unfinished-file", "still being written", file(f"a.parquet{ending}", b"PAR1"))
        for ending in (".tmp", ".part", ".crdownload")
    ),
    Bad(
        "two-drops",
        "several-drops",
        "this holds 2026-09 and 2026-10: name one",
        each(
            *(moved(table, "2026-10") for table in spoiling.GOOD),
            *(only(f"2026-09/{table}", rows) for table, rows in spoiling.GOOD.items()),
        ),
    ),
    Bad(
        "part-without-a-year",
        "unlike-parts",
        "lacks columns that other files of population have: tot_fx_pop_2030",
        each(
            only("zip_population", [wide_people(AT, TOT_FX_POP_2029=1, TOT_FX_POP_2030=2)]),
            only("part-1", [wide_people("00501", TOT_FX_POP_2029=1)]),
        ),
    ),
    Bad("hidden-table", "hidden-rows", "_old/ has Parquet rows", moved("zip_housing", "_old")),
    Bad("uncommitted-table", "unfinished-file", "_temporary/ holds rows", moved("zip_housing", "_temporary")),
    *_by(
        "table-format",
        ("delta-table", "zip_housing is a Delta table", in_folder("zip_housing", "_delta_log/0.json")),
        ("iceberg-table", "zip_housing is an Iceberg table", in_folder("zip_housing", "metadata/1-a.metadata.json")),
        ("hudi-table", "zip_housing is a Hudi table", in_folder("zip_housing", ".hoodie/commits")),
    ),
    *_by(
        "unread-table",
        (
            "csv-for-a-table",
            "zip_housing.csv is a CSV file, which is not read",
            instead("zip_housing.csv", b"zip_code,a\n1,1\n"),
        ),
        ("packed-csv-for-a-table", "is a gzip file", instead("housing.csv.gz", gzip.compress(b"zip_code\n"))),
        ("json-lines-for-a-table", "is a JSON file", instead("housing", b'{"zip_code": "1"}\n{"zip_code": "2"}\n')),
    ),
)

MONTHS = (
    *_by(
        "mixed-months",
        (
            "another-month",
            "zip_housing.parquet: month 9",
            each(dated("zip_housing", "MONTH_CODE", 9), dated("zip_population", "month_code", 10)),
        ),
        (
            "another-day",
            "zip_housing.parquet: updated 2026-09-04",
            each(
                dated("zip_housing", "UPDATED_AT", date(2026, 9, 4), kind=pa.date32()),
                dated("zip_population", "updated_at", "2026-10-05 08:00:00"),
            ),
        ),
        ("rows-of-two-months", "the rows of housing", dated("zip_housing", "month_code", 9, 10)),
        (
            "rows-of-two-days",
            "updated 2026-09-04 to 2026-10-05",
            dated("zip_housing", "updated_at", "2026-09-04", "2026-10-05"),
        ),
        (
            "folders-of-two-months",
            "zip_housing.parquet: in year=2026/month=9",
            each(moved("zip_housing", "year=2026/month=09"), moved("zip_locations", "year=2026/month=10")),
        ),
    ),
    *_by(
        "wrong-folder",
        (
            "folder-of-another-month",
            "month 10, in year=2026/month=9",
            each(dated("zip_housing", "month_code", 10), moved("zip_housing", "year=2026/month=09")),
        ),
        (
            "folder-of-another-year",
            "updated 2025-10-05, in year=2026",
            each(dated("zip_housing", "updated_at", "2025-10-05"), moved("zip_housing", "year=2026")),
        ),
        (
            "folder-of-other-data",
            "in year=2022",
            each(only("zip_population", [people(AT, 2023, 783)]), moved("zip_population", "year=2022")),
        ),
    ),
)

FILES = (
    Bad("text-named-parquet", "not-parquet", "is a CSV file, not Parquet", file("extra.parquet", b"zip_code,city\n")),
    Bad("empty-file", "not-parquet", "extra.parquet is empty", file("extra.parquet", b"")),
    Bad("truncated-file", "truncated-file", "without PAR1 at its end", spoiling.truncated),
    Bad("footer-too-large", "oversized-file", "zip_housing.parquet has a footer of", spoiling.footer_of_zeros),
    Bad("link-out-of-drop", "link-out-of-drop", "linked.parquet is a link", spoiling.link_out),
    Bad("too-many-rows", "too-many-rows", "the limit is 5", spoiling.nothing, limit=5),
    *_by(
        "unreadable-file",
        ("footer-gone", "zip_housing.parquet cannot be read as Parquet", spoiling.footer_gone),
        ("pages-damaged", "zip_population.parquet is damaged", spoiling.pages_damaged),
        ("link-to-nothing", "is a link whose target does not exist", spoiling.link_nowhere),
        ("pipe-as-file", "is not a regular file", spoiling.pipe),
        ("name-not-text", "Do\\xf1a.parquet has a name that is not UTF-8", spoiling.name_not_text),
    ),
)

COLUMNS = (
    Bad("no-headers", "unrecognised-file", "has no column names", only("extra", [{"_COL_0": "1", "_COL_1": "2"}])),
    Bad("another-table", "unrecognised-file", "matches no table", only("extra", [{"county": "1", "rainfall": "2"}])),
    *_by(
        "missing-column",
        ("column-missing", "county_fips_code", without("zip_locations", "county_fips_code")),
        ("column-renamed", "likely cause: another spelling", renamed("zip_housing", zip_code="zipcode")),
        (
            "byte-order-mark-in-a-name",
            "column zip_code cannot be found; likely cause: byte-order mark",
            renamed("zip_housing", zip_code="\ufeffzip_code"),
        ),
        ("quotes-in-a-name", "likely cause: quotation marks", renamed("zip_housing", zip_code='"zip_code"')),
    ),
    Bad("figure-missing", "missing-figure", "lacks column tot_home", without("zip_housing", "tot_home_available_2021")),
    Bad("column-twice", "ambiguous-column", "tot_population more than once", spoiling.column_twice),
    *_by(
        "unreadable-value",
        ("nested-figures", "[1, 2]", figures_as(pa.list_(pa.int64()), [1, 2])),
        ("nested-zip-codes", "housing.zip_code", zip_codes_as(pa.struct({"zip": pa.string()}), {"zip": AT})),
        ("flags-as-figures", "likely cause: true or false", figures_as(pa.bool_(), True)),
        ("folder-that-is-no-year", "population.year", spoiling.in_folders),
    ),
)

# One for each rule: rules/test_rules.py and rules/test_causes.py have all kinds of values.
VALUES = (
    Bad("short-zip-code", "unreadable-value", "likely cause: leading zero lost", add("zip_housing", homes("3643"))),
    Bad("no-rows", "empty-table", "housing has no row", spoiling.no_rows),
    Bad(
        "id-beyond-measure", "odd-name", "project_id are longer than 95", add("development_projects", project("A" * 96))
    ),
    Bad("id-of-two-lines", "odd-name", "development_projects.project_id", add("development_projects", project("A\n2"))),
    Bad("zip-code-missing", "missing-value", "have no zip_code", add("zip_housing", {**homes(""), "zip_code": None})),
    Bad("null-island", "zero-coordinate", "locations.latitude are 0", add("zip_locations", jackson(latitude=0.0))),
    Bad("mojibake", "garbled-name", "wrong encoding", add("zip_locations", jackson("DoÃ±a Ana"))),
    Bad("no-name-as-a-word", "placeholder-name", "are placeholders", add("zip_locations", jackson("None"))),
    Bad("state-that-is-none", "unknown-state", "not codes of states", add("zip_locations", jackson(state="AX"))),
    Bad("fewer-than-none", "out-of-range", "has -1", add("zip_population", people(AT, 2020, -1))),
    Bad("latitude-beyond-the-pole", "out-of-range", "has 93.0", add("zip_locations", jackson(latitude=93.0))),
    Bad("file-twice", "duplicate-key", "copy.parquet row 1, zip_housing.parquet row 1", only("copy", HOUSING[:1])),
    Bad(
        "unknown-status", "unknown-status", "has tolerated", add("zip_city_aliases", alias(AT, "B", "AL", "tolerated"))
    ),
)

# Those that implausible_drops.py does not have.
DRIFT = (
    Bad("other-ids", "records-lost", "1 of 1 records of dev", only("development_projects", [project("B-1")])),
    Bad("half-an-export", "aliases-lost", "2 of 3 aliases are gone", only("zip_city_aliases", ALIASES[:1])),
)

BAD_DROPS = (*FILES, *CONTAINERS, *MONTHS, *COLUMNS, *VALUES, *DRIFT)

# Faults that one drop can have without one hiding another: a check of a drop takes longer than all else here.
TOGETHER = (
    ("text-named-parquet", "truncated-file", "pages-damaged", "link-out-of-drop"),
    ("empty-file", "footer-gone", "unfinished.tmp", "folder-of-other-data"),
    ("link-to-nothing", "too-many-rows", "gzip", "unfinished.part"),
    ("pipe-as-file", "gzip-under-another-name", "unfinished.crdownload", "no-headers"),
    ("name-not-text", "another-month", "another-table", "column-missing"),
    ("encrypted", "column-twice", "id-beyond-measure"),
    ("bzip2", "another-day", "id-of-two-lines"),
    ("xz", "rows-of-two-months", "nested-figures"),
    ("zstandard", "rows-of-two-days", "flags-as-figures"),
    ("zip-archive", "folder-of-another-month", "column-renamed", "folder-that-is-no-year"),
    ("tar-archive", "folder-of-another-year", "byte-order-mark-in-a-name"),
    ("json", "unknown-status"),
    ("orc", "null-island", "other-ids"),
    ("avro", "mojibake"),
    ("arrow", "no-name-as-a-word"),
    ("web-page", "state-that-is-none"),
    ("git-lfs-pointer", "latitude-beyond-the-pole", "half-an-export"),
    ("zero-bytes", "fewer-than-none"),
    ("delta-table", "quotes-in-a-name"),
    ("iceberg-table", "figure-missing", "file-twice"),
    ("hudi-table", "nested-zip-codes"),
)
