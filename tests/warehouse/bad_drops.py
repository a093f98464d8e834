"""Every kind of bad drop that we know, each a good drop with one fault, and what must be said of it."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from datetime import date

import msgspec
import pyarrow as pa

from tests.support.drops import ALIASES, HOUSING, LOCATIONS, POPULATION, alias, homes, location, people, project
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
from warehouse.drops.pipeline import read_drop
from warehouse.drops.reader import DropReader


class Bad(msgspec.Struct, frozen=True):
    """`spoil` is called with the folder of a good drop; `cause` is part of what the finding of `rule` says."""

    kind: str
    rule: str
    cause: str
    spoil: Spoil
    limit: float | None = None
    reader: DropReader = read_drop


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
    Bad("delta-table", "table-format", "zip_housing is a Delta table", in_folder("zip_housing", "_delta_log/0.json")),
    Bad(
        "iceberg-table",
        "table-format",
        "zip_housing is an Iceberg table",
        in_folder("zip_housing", "metadata/00001-a.metadata.json"),
    ),
    Bad("hudi-table", "table-format", "zip_housing is a Hudi table", in_folder("zip_housing", ".hoodie/commits")),
    Bad(
        "csv-for-a-table",
        "unread-table",
        "zip_housing.csv is a CSV file, which is not read; the drop lacks housing",
        instead("zip_housing.csv", b"zip_code,a\n36436,1\n"),
    ),
    Bad(
        "packed-csv-for-a-table",
        "unread-table",
        "is a gzip file",
        instead("housing.csv.gz", gzip.compress(b"zip_code\n")),
    ),
    Bad(
        "json-lines-for-a-table",
        "unread-table",
        "is a JSON file",
        instead("housing", b'{"zip_code": "36436"}\n{"zip_code": "90028"}\n'),
    ),
)

MONTHS = (
    Bad(
        "another-month",
        "mixed-months",
        "zip_housing.parquet: month 9",
        each(dated("zip_housing", "MONTH_CODE", 9), dated("zip_population", "month_code", 10)),
    ),
    Bad(
        "another-day",
        "mixed-months",
        "zip_housing.parquet: updated 2026-09-04",
        each(
            dated("zip_housing", "UPDATED_AT", date(2026, 9, 4), kind=pa.date32()),
            dated("zip_population", "updated_at", "2026-10-05 08:00:00"),
        ),
    ),
    Bad("rows-of-two-months", "mixed-months", "the rows of housing", dated("zip_housing", "month_code", 9, 10)),
    Bad(
        "rows-of-two-days",
        "mixed-months",
        "updated 2026-09-04 to 2026-10-05",
        dated("zip_housing", "updated_at", "2026-09-04", "2026-10-05"),
    ),
    Bad(
        "folders-of-two-months",
        "mixed-months",
        "zip_housing.parquet: in year=2026/month=9",
        each(moved("zip_housing", "year=2026/month=09"), moved("zip_locations", "year=2026/month=10")),
    ),
    Bad(
        "folder-of-another-month",
        "wrong-folder",
        "month 10, in year=2026/month=9",
        each(dated("zip_housing", "month_code", 10), moved("zip_housing", "year=2026/month=09")),
    ),
    Bad(
        "folder-of-another-year",
        "wrong-folder",
        "updated 2025-10-05, in year=2026",
        each(dated("zip_housing", "updated_at", "2025-10-05"), moved("zip_housing", "year=2026")),
    ),
    Bad(
        "folder-of-other-data",
        "wrong-folder",
        "in year=2022",
        each(only("zip_population", [people(AT, 2023, 783)]), moved("zip_population", "year=2022")),
    ),
)

FILES = (
    Bad("text-named-parquet", "not-parquet", "is a CSV file, not Parquet", file("extra.parquet", b"zip_code,city\n")),
    Bad("empty-file", "not-parquet", "extra.parquet is empty", file("extra.parquet", b"")),
    Bad("truncated-file", "truncated-file", "without a closing marker", spoiling.truncated),
    Bad("footer-gone", "unreadable-file", "zip_housing.parquet cannot be read as Parquet", spoiling.footer_gone),
    Bad("footer-too-large", "oversized-file", "zip_housing.parquet has a footer of", spoiling.footer_of_zeros),
    Bad("pages-damaged", "unreadable-file", "zip_population.parquet is damaged", spoiling.pages_damaged),
    Bad("link-out-of-drop", "link-out-of-drop", "linked.parquet is a link", spoiling.link_out),
    Bad("link-to-nothing", "unreadable-file", "is a link whose target does not exist", spoiling.link_nowhere),
    Bad("pipe-as-file", "unreadable-file", "is not a regular file", spoiling.pipe),
    Bad("name-not-text", "unreadable-file", "Do\\xf1a.parquet has a name that is not UTF-8", spoiling.name_not_text),
    Bad("too-many-rows", "too-many-rows", "the limit is 5", spoiling.nothing, limit=5),
    Bad(
        "still-being-written",
        "changed-file",
        "zip_housing.parquet changed",
        spoiling.nothing,
        reader=spoiling.still_written,
    ),
    Bad("takes-too-long", "reader-failed", "did not end within", spoiling.nothing, reader=spoiling.hardly_any_time),
)

COLUMNS = (
    Bad("no-headers", "unrecognised-file", "has no column names", only("extra", [{"_COL_0": "1", "_COL_1": "2"}])),
    Bad("another-table", "unrecognised-file", "matches no table", only("extra", [{"county": "1", "rainfall": "2"}])),
    Bad("column-missing", "missing-column", "county_fips_code", without("zip_locations", "county_fips_code")),
    Bad("column-renamed", "missing-column", "zip_code: is it zipcode?", renamed("zip_housing", zip_code="zipcode")),
    Bad(
        "byte-order-mark-in-a-name",
        "missing-column",
        "column zip_code cannot be found; likely cause: byte-order mark",
        renamed("zip_housing", zip_code="\ufeffzip_code"),
    ),
    Bad(
        "quotation-marks-in-a-name",
        "missing-column",
        "likely cause: quotation marks",
        renamed("zip_housing", zip_code='"zip_code"'),
    ),
    Bad(
        "figure-missing",
        "missing-figure",
        "lacks column tot_home_available_2021",
        without("zip_housing", "tot_home_available_2021"),
    ),
    Bad("column-twice", "ambiguous-column", "tot_population more than once", spoiling.column_twice),
    Bad("nested-figures", "unreadable-value", "[1, 2]", figures_as(pa.list_(pa.int64()), [1, 2])),
    Bad(
        "nested-zip-codes",
        "unreadable-value",
        "housing.zip_code",
        zip_codes_as(pa.struct({"zip": pa.string()}), {"zip": AT}),
    ),
    Bad("flags-as-figures", "unreadable-value", "likely cause: true or false", figures_as(pa.bool_(), True)),
    Bad("folder-that-is-no-year", "unreadable-value", "population.year", spoiling.in_folders),
)

VALUES = (
    Bad(
        "id-beyond-measure",
        "odd-name",
        "development_projects.project_id are longer than 95 characters",
        add("development_projects", project("A" * 96)),
    ),
    Bad("id-of-two-lines", "odd-name", "development_projects.project_id", add("development_projects", project("A\n2"))),
    Bad("no-rows", "empty-table", "housing has no row", spoiling.no_rows),
    Bad("short-zip-code", "unreadable-value", "likely cause: leading zero lost", add("zip_housing", homes("3643"))),
    Bad(
        "zip-code-as-float", "unreadable-value", "cast to integer, then cast to text", add("zip_housing", homes("1.0"))
    ),
    Bad(
        "zip-code-with-byte-order-mark", "unreadable-value", "byte-order mark", add("zip_housing", homes("\ufeff63101"))
    ),
    Bad("two-zip-codes", "unreadable-value", "several values in one", add("zip_housing", homes("63101, 63102"))),
    Bad("dollars-for-homes", "unreadable-value", "currency", figures_as(pa.string(), "$783")),
    Bad("scientific-notation", "unreadable-value", "scientific notation", figures_as(pa.string(), "7.83e2")),
    Bad("zip-plus-four", "unreadable-value", "likely cause: ZIP+4", add("zip_housing", homes("36436-0001"))),
    Bad("six-digit-zip-code", "unreadable-value", "likely cause: too many digits", zip_codes_as(pa.int32(), 364360)),
    Bad("fraction-of-a-zip-code", "unreadable-value", "likely cause: a fraction", zip_codes_as(pa.float64(), 501.5)),
    Bad("fraction-of-a-person", "unreadable-value", "likely cause: a fraction", figures_as(pa.float64(), 783.5)),
    Bad(
        "not-a-number",
        "unreadable-value",
        "likely cause: a placeholder for missing",
        figures_as(pa.float64(), float("nan")),
    ),
    Bad("infinity", "unreadable-value", "likely cause: infinity", figures_as(pa.float64(), float("inf"))),
    Bad("text-for-a-figure", "unreadable-value", "row 1 36436 2001 has n/a", figures_as(pa.string(), "n/a")),
    Bad("grouped-digits", "unreadable-value", "likely cause: thousands separator", figures_as(pa.string(), "30,000")),
    Bad(
        "short-fips-code",
        "unreadable-value",
        "row 10 36437 has 1025",
        add("zip_locations", location("36437", "Jackson", "AL", county_fips_code="1025")),
    ),
    Bad(
        "state-in-full",
        "unreadable-value",
        "likely cause: a state's full name",
        add("zip_locations", location("36437", "Jackson", "Alabama")),
    ),
    Bad("no-date", "unreadable-value", "row 2 A-2 has soon", spoiling.dates_as_text),
    Bad("bytes-for-a-city", "unreadable-file", "UTF", spoiling.bytes_as_text),
    Bad("zip-code-missing", "missing-value", "have no zip_code", add("zip_housing", {**homes(""), "zip_code": None})),
    Bad("city-blank", "missing-value", "have no city_name", add("zip_locations", location("36437", " \t", "AL"))),
    Bad(
        "city-over-two-lines",
        "odd-name",
        "are longer than 95 characters",
        add("zip_locations", location("36437", "A\nB", "AL")),
    ),
    Bad(
        "city-without-end",
        "odd-name",
        "are longer than 95 characters",
        add("zip_locations", location("36437", "x" * 5000, "AL")),
    ),
    Bad(
        "null-island",
        "zero-coordinate",
        "locations.latitude are 0",
        add("zip_locations", location("36437", "Jackson", "AL", latitude=0.0)),
    ),
    Bad("mojibake", "garbled-name", "wrong encoding", add("zip_locations", location("36437", "DoÃ±a Ana", "AL"))),
    Bad(
        "no-name-as-a-word",
        "placeholder-name",
        "placeholders or numbers",
        add("zip_locations", location("36437", "None", "AL")),
    ),
    Bad(
        "state-that-is-none",
        "unknown-state",
        "not codes of states",
        add("zip_locations", location("36437", "Jackson", "AX")),
    ),
    Bad("year-missing", "missing-value", "have no year", add("zip_population", {**people(AT, 1, 1), "year": None})),
    Bad(
        "project-without-id",
        "missing-value",
        "have no project_id",
        add("development_projects", {**project(""), "project_id": None}),
    ),
    Bad("fewer-than-none", "out-of-range", "has -1", add("zip_population", people(AT, 2020, -1))),
    Bad("more-than-can-be", "out-of-range", "has 1000001", add("zip_population", people(AT, 2020, 1_000_001))),
    Bad("homes-below-zero", "out-of-range", "has -5", add("zip_housing", homes("63101", tot_home_available_2021=-5))),
    Bad("year-mistyped", "out-of-range", "has 20223", add("zip_population", people(AT, 20223, 1))),
    Bad(
        "latitude-beyond-the-pole",
        "out-of-range",
        "has 93.0",
        add("zip_locations", location("36437", "Jackson", "AL", latitude=93.0)),
    ),
    Bad(
        "longitude-round-the-globe",
        "out-of-range",
        "has 272.0",
        add("zip_locations", location("36437", "Jackson", "AL", longitude=272.0)),
    ),
    Bad("zip-code-twice", "duplicate-key", "36436 in", add("zip_locations", location(AT, "Jackson", "AL"))),
    Bad("year-twice", "duplicate-key", "36436 2023 in", add("zip_population", people(AT, 2023, 784))),
    Bad("file-twice", "duplicate-key", "copy.parquet row 1, zip_housing.parquet row 1", only("copy", HOUSING[:1])),
    Bad(
        "unknown-status",
        "unknown-status",
        "has tolerated",
        add("zip_city_aliases", alias(AT, "Bedford", "AL", "tolerated")),
    ),
)

DRIFT = (
    Bad("places-lost", "zip-codes-lost", "3 of 9 ZIP codes are gone", only("zip_locations", LOCATIONS[:-3])),
    Bad(
        "places-made-up",
        "zip-codes-gained",
        "1 ZIP codes are new; the current release has 9",
        add("zip_locations", location("36437", "Jackson", "AL")),
    ),
    Bad(
        "figures-lost",
        "coverage-lost",
        "1 of 3 ZIP codes lost their population 2023",
        only("zip_population", POPULATION[:-1]),
    ),
    Bad(
        "figures-in-thousands",
        "total-drift",
        "changes from 33,403 to 33 (-99.9%",
        only("zip_population", [people(AT, 2023, 33), people(AT, 2010, 531)]),
    ),
    Bad(
        "other-ids",
        "records-lost",
        "1 of 1 records of development_projects would be lost",
        only("development_projects", [project("B-1")]),
    ),
    Bad(
        "year-gone",
        "vanished-figure",
        "population 2010",
        only("zip_population", [row for row in POPULATION if row["year"] != 2010]),
    ),
    Bad("half-an-export", "rows-lost", "aliases changes from 3 to 1 rows", only("zip_city_aliases", ALIASES[:1])),
)

BAD_DROPS = (*FILES, *CONTAINERS, *MONTHS, *COLUMNS, *VALUES, *DRIFT)

# Faults that one drop can have without one hiding another: a check of a drop takes longer than all else here.
TOGETHER = (
    ("text-named-parquet", "truncated-file", "pages-damaged", "link-out-of-drop"),
    ("empty-file", "footer-gone", "unfinished.tmp", "folder-of-other-data"),
    ("link-to-nothing", "too-many-rows", "gzip", "unfinished.part"),
    ("pipe-as-file", "gzip-under-another-name", "unfinished.crdownload", "no-headers"),
    ("name-not-text", "another-month", "another-table", "column-missing"),
    ("encrypted", "column-twice", "id-beyond-measure", "short-fips-code"),
    ("bzip2", "another-day", "id-of-two-lines", "state-in-full"),
    ("xz", "rows-of-two-months", "nested-figures", "bytes-for-a-city"),
    ("zstandard", "rows-of-two-days", "flags-as-figures", "city-blank"),
    ("zip-archive", "folder-of-another-month", "column-renamed", "folder-that-is-no-year"),
    ("tar-archive", "folder-of-another-year", "byte-order-mark-in-a-name", "dollars-for-homes"),
    ("excel", "scientific-notation", "city-over-two-lines", "project-without-id"),
    ("json", "fraction-of-a-person", "city-without-end", "unknown-status"),
    ("orc", "not-a-number", "null-island", "other-ids"),
    ("avro", "infinity", "mojibake", "half-an-export"),
    ("arrow", "text-for-a-figure", "no-name-as-a-word"),
    ("web-page", "grouped-digits", "state-that-is-none"),
    ("git-lfs-pointer", "no-date", "year-missing", "latitude-beyond-the-pole"),
    ("zero-bytes", "fewer-than-none", "zip-code-twice"),
    ("delta-table", "quotation-marks-in-a-name", "more-than-can-be", "places-lost"),
    ("iceberg-table", "figure-missing", "year-mistyped", "file-twice"),
    ("hudi-table", "nested-zip-codes", "longitude-round-the-globe", "year-twice"),
    ("csv-for-a-table", "places-made-up", "figures-lost"),
    ("packed-csv-for-a-table", "figures-in-thousands"),
    ("json-lines-for-a-table", "year-gone"),
    ("folders-of-two-months", "six-digit-zip-code"),
    ("footer-too-large",),
)
