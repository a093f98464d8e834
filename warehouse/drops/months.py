"""Finds the month of each table of a drop, by UPDATED_AT and MONTH_CODE and by ``year=`` and ``month=`` folders."""

import re
from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

import duckdb
import msgspec

from warehouse import sql
from warehouse.drops.recognition import Extract
from warehouse.drops.staging import converted, source_of, text_present
from warehouse.releases.catalog import TableInfo
from warehouse.rules.all_rules import make_finding
from warehouse.schema.column_types import PARTITION
from warehouse.schema.findings import Finding
from warehouse.schema.tables import MONTH_CODE, UPDATED_AT

# Tables of one month are exported within days of each other.
_APART = timedelta(days=10)
# How far a clock, or a date set in advance, may be ahead.
_AHEAD = timedelta(days=31)
# If a file has more dates than this, they are those of single rows, not of the export.
_MOST_DAYS = 5
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_MONTH = re.compile(r"((?:19|20)[0-9]{2})?-?(0?[1-9]|1[0-2])(?:-[0-9]{2})?")
_DATE_KEYS = ("month", "date", "dt", "ds", "day")  # folders such as month=10, month=2026-10 or dt=2026-10-05


class UnreadableDates(msgspec.Struct, frozen=True):
    """Values of one date column of one file that cannot be read. Created with its `FileDates`."""

    column: str
    count: int
    samples: tuple[str, ...]  # the first and the last, in alphabetical order


class FileDates(msgspec.Struct, frozen=True, kw_only=True):
    """The dates of one file. Read once for a drop; None where the file has none."""

    table: str
    file: str
    first: date | None = None  # the first UPDATED_AT
    last: date | None = None
    days: int = 0  # distinct days in UPDATED_AT
    months: frozenset[int] = frozenset()  # values of MONTH_CODE
    data_year: int | None = None  # the year of all its rows, if the folder names a year too
    folder_year: int | None = None
    folder_month: int | None = None
    unreadable: tuple[UnreadableDates, ...] = ()

    @property
    def is_batch(self) -> bool:
        """Whether UPDATED_AT is the day of the export, not of each row."""
        return 0 < self.days <= _MOST_DAYS

    def described(self) -> str:
        parts = [f"month {month}" for month in sorted(self.months)]
        if self.last is not None:
            parts.append(f"updated {self.last}" if self.first == self.last else f"updated {self.first} to {self.last}")
        if self.folder_year or self.folder_month:
            folder = (f"year={self.folder_year}", f"month={self.folder_month}")
            parts.append("in " + "/".join(name for name in folder if not name.endswith("None")))
        return f"{self.file}: {', '.join(parts)}"


def read_dates(connection: duckdb.DuckDBPyConnection, extracts: Iterable[Extract]) -> list[FileDates]:
    """Returns the dates of each file. Files that cannot be read are left out: staging makes the finding."""
    found = []
    for extract in extracts:
        try:
            found.append(_read(connection, extract))
        except duckdb.Error:
            continue
    return found


def month_findings(files: Sequence[FileDates]) -> list[Finding]:
    """Returns findings on mixed months of tables, files and rows, wrong folders, and future and unreadable dates."""
    by_table: dict[str, list[FileDates]] = defaultdict(list)
    for file in files:
        by_table[file.table].append(file)
    within = [_mixed(f"the rows of {name} are", parts, name) for name, parts in by_table.items() if _differ(parts)]
    findings = [*within, *_wrong_folders(files), *_ahead(files)]
    for name, parts in by_table.items():
        findings += [*_unreadable(name, UPDATED_AT, parts), *_unreadable(name, MONTH_CODE, parts)]
    if not within and _differ(files):
        findings.append(_mixed("the tables of the drop are", files))
    return findings


def with_dates(tables: Mapping[str, TableInfo], files: Sequence[FileDates]) -> dict[str, TableInfo]:
    """Returns the tables with the day and month of their files."""
    dated = {}
    for name, info in tables.items():
        parts = [file for file in files if file.table == name]
        last = max((file.last for file in parts if file.last), default=None)
        months = {month for file in parts for month in file.months}
        month = months.pop() if len(months) == 1 else None
        dated[name] = msgspec.structs.replace(info, as_of=last.isoformat() if last else None, month=month)
    return dated


def _read(connection: duckdb.DuckDBPyConnection, extract: Extract) -> FileDates:
    read = extract.table.column_names if extract.shape == "long" else ()
    partitions = extract.file.partitions
    own = {name for name, (_, held) in extract.columns.items() if held is not PARTITION}
    # if a long table takes a column such as year from its folder, the folder does not date the export
    year, month = _period({key: value for key, value in partitions.items() if key in own or key not in read})
    own_year = "year" in own and "year" in partitions
    dates = FileDates(table=extract.table.name, file=extract.file.label, folder_year=year, folder_month=month)
    if not extract.dated and not own_year:
        return dates
    day, month_code = source_of(extract, UPDATED_AT), source_of(extract, MONTH_CODE)
    text = sql.statement(
        "dates_of_file",
        day=converted("date", *day),
        daytext=text_present("date", *day),
        month=converted("integer", *month_code),
        monthtext=text_present("integer", *month_code),
        year=converted("integer", *source_of(extract, "year")) if own_year else "NULL",
    )
    (found,) = connection.execute(text, [sql.pattern(extract.file.path)]).fetchall()
    first, last, days, months, data_year, *unread = found
    return msgspec.structs.replace(
        dates,
        first=first,
        last=last,
        days=days,
        months=frozenset(months or ()),
        data_year=data_year,
        unreadable=tuple(
            UnreadableDates(column, count, tuple(dict.fromkeys(samples)))
            for column, (count, *samples) in ((UPDATED_AT, unread[:3]), (MONTH_CODE, unread[3:]))
            if count
        ),
    )


def _period(folders: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Returns the year and month in ``key=value`` folders."""
    year = int(folders["year"]) if _YEAR.fullmatch(folders.get("year", "")) else None
    for key in _DATE_KEYS:
        found = _MONTH.fullmatch(folders.get(key, ""))
        if found and (found[1] or key == "month"):
            return year or (int(found[1]) if found[1] else None), int(found[2])
    return year, None


def _differ(files: Sequence[FileDates]) -> bool:
    """Returns whether the files, or their rows, are of different months."""
    months = {month for file in files for month in file.months}
    years_of_folders = {file.folder_year for file in files if file.data_year is None} - {None}
    months_of_folders = {file.folder_month for file in files} - {None}
    batches = [file for file in files if file.is_batch and file.first and file.last]
    days = [day for file in batches for day in (file.first, file.last) if day]
    apart = bool(days) and max(days) - min(days) > _APART
    return apart or any(len(different) > 1 for different in (months, years_of_folders, months_of_folders))


def _mixed(what: str, files: Sequence[FileDates], table: str | None = None) -> Finding:
    dated = sorted((file for file in files if ":" in file.described()), key=_age)
    return make_finding(
        "mixed-months",
        f"{what} of different months",
        table=table,
        count=len(dated),
        samples=tuple(file.described() for file in (*dated[:3], *dated[3:][-2:])),
    )


def _unreadable(table: str, column: str, files: Sequence[FileDates]) -> Iterator[Finding]:
    """Yields one finding on all unreadable values of a date column, if there are any."""
    found = {file.file: one for file in files for one in file.unreadable if one.column == column}
    if not found:
        return
    count = sum(one.count for one in found.values())
    expected = "dates from 2000 to 2100" if column == UPDATED_AT else "months from 1 to 12"
    yield make_finding(
        "unreadable-date",
        f"{count:,} value(s) of {table}.{column} cannot be read as {expected}",
        table=table,
        file=next(iter(found)) if len(found) == 1 else None,
        column=column,
        count=count,
        samples=tuple(dict.fromkeys(sample for one in found.values() for sample in one.samples))[:5],
    )


def _age(file: FileDates) -> tuple[date, int]:
    return file.last or date.max, min(file.months, default=0)


def _wrong_folders(files: Sequence[FileDates]) -> Iterator[Finding]:
    for file in files:
        if _is_misplaced(file):
            yield make_finding(
                "wrong-folder",
                f"{file.described()}: its dates do not match its folder",
                table=file.table,
                file=file.file,
            )


def _ahead(files: Sequence[FileDates]) -> Iterator[Finding]:
    today = datetime.now(UTC).date()
    late = [file for file in files if file.last is not None and file.last > today + _AHEAD]
    if late:
        yield make_finding(
            "future-date",
            f"{UPDATED_AT} is in the future: today is {today}",
            column=UPDATED_AT,
            count=len(late),
            samples=tuple(file.described() for file in late[:5]),
        )


def _is_misplaced(file: FileDates) -> bool:
    """Returns whether a file's own dates disagree with its folder."""
    if file.data_year is not None and file.folder_month is None:
        return file.folder_year is not None and file.data_year != file.folder_year
    if file.folder_month is not None and file.months:
        return file.folder_month not in file.months
    if file.folder_year is None or file.last is None:
        return False
    first_month, last_month = (file.folder_month or 1, file.folder_month or 12)
    begin = date(file.folder_year, first_month, 1)
    end = date(file.folder_year, last_month, monthrange(file.folder_year, last_month)[1])
    return not begin - _APART <= file.last <= end + _APART
