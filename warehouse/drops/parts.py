"""Checks that the files of a drop belong together: the parts of a table have equal columns, and there is one drop."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import duckdb

from warehouse import sql
from warehouse.drops.parquet_integrity import Claims
from warehouse.drops.recognition import Extract
from warehouse.drops.staging import staged_name
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding
from warehouse.schema.tables import POPULATION, TABLES

_MOST_SHARED = 0.5  # the share of its keys that a folder of one drop may have in common with other folders
_OWN = "files of its own"

_Years = frozenset[tuple[int, str]]  # the year columns of a wide file: year and name


def find_unlike_parts(extracts: Iterable[Extract], claims: Mapping[str, Claims]) -> Iterator[Finding]:
    """Yields a finding if parts of a wide table lack year columns that other parts have.

    Only parts with a year in common are compared: two files may split a table by years. Parts without rows lack no
    figure. In other tables, and for housing, recognition requires every column.
    """
    parts = [part for part in extracts if part.years and claims[part.file.label].rows]
    absent = _absent_columns({frozenset(part.years.items()) for part in parts})
    lacking = {part.file.label: names for part in parts if (names := absent[frozenset(part.years.items())])}
    if lacking:
        years = sorted({year for columns in lacking.values() for year in columns})
        yield make_finding(
            "unlike-parts",
            f"{len(lacking)} of {len(parts)} files of {POPULATION.name} lack columns that others have: "
            + _columns_listed(years),
            table=POPULATION.name,
            file=next(iter(lacking)),
            column=years[0][1],
            figures=tuple(f"{POPULATION.name} {year}" for year, _ in years),
            count=len(lacking),
            samples=tuple(f"{label} lacks {_columns_listed(names)}" for label, names in list(lacking.items())[:5]),
        )


def _absent_columns(shapes: Collection[_Years]) -> dict[_Years, list[tuple[int, str]]]:
    """Returns for each set of year columns those that it lacks, of the sets that have a year in common with it."""
    absent = {}
    for shape in shapes:
        years = {year for year, _ in shape}
        alike = [other for other in shapes if any(year in years for year, _ in other)]
        absent[shape] = sorted(frozenset().union(*alike) - shape)
    return absent


def find_several_drops(connection: duckdb.DuckDBPyConnection, extracts: Sequence[Extract]) -> Finding | None:
    """Returns a finding if folders of the drop are drops of their own: they bring the same rows of the same tables.

    Needs the staged tables.
    """
    folders = _folders(extracts)
    tables = [
        table
        for table in TABLES
        if len({folder for part, folder in zip(extracts, folders, strict=True) if part.table is table}) > 1
    ]
    bringing = {folder for part, folder in zip(extracts, folders, strict=True) if part.table in tables}
    if not tables or bringing != set(folders):
        return None
    of_files = {"files": [part.file.label for part in extracts], "folders": folders}
    for table in tables:
        text = sql.statement("shared_keys", staged=staged_name(table), key=", ".join(table.key))
        ((shared, most),) = connection.execute(text, of_files).fetchall()
        if not shared or shared <= _MOST_SHARED * most:
            return None
    return make_finding("several-drops", f"this holds {_listed(sorted(bringing))}: name one", count=len(bringing))


def _folders(extracts: Sequence[Extract]) -> list[str]:
    """Returns for each file the first folder that not all files have in common."""
    above = os.path.commonpath([part.file.path.parent for part in extracts]) if extracts else ""
    inside = (part.file.path.relative_to(above).parts for part in extracts)
    return [parts[0] if len(parts) > 1 else _OWN for parts in inside]


def _columns_listed(years: Iterable[tuple[int, str]]) -> str:
    return _listed([column for _, column in years])


def _listed(names: Sequence[str]) -> str:
    if len(names) > 3:
        names = [*names[:2], f"{len(names) - 2} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
