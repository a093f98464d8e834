"""Checks that the files of a drop belong together: the parts of a table have equal columns, and there is one drop."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import duckdb

from warehouse import sql
from warehouse.drops.parquet_integrity import Claims
from warehouse.drops.recognition import Extract
from warehouse.drops.staging import staged_name
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding
from warehouse.schema.tables import TABLES

_MOST_SHARED = 0.5  # the share of its keys that a folder of one drop may have in common with other folders
_OWN = "files of its own"


def find_unlike_parts(extracts: Iterable[Extract], claims: Mapping[str, Claims]) -> Iterator[Finding]:
    """Yields a finding for each part of a wide table that lacks year columns of other parts.

    Only parts with a year in common are compared: two files may split a table by years. Parts without rows lack no
    figure. In other tables, and for housing, recognition requires every column.
    """
    parts = [part for part in extracts if part.years and claims[part.file.label].rows]
    shapes = {frozenset(part.years.items()) for part in parts}
    for part in parts:
        years = frozenset(part.years.items())
        alike = (shape for shape in shapes if not part.years.keys().isdisjoint(dict(shape)))
        lacking = sorted(years.union(*alike) - years)
        if lacking:
            columns = [column for _, column in lacking]
            yield part.finding(
                "unlike-parts",
                f"lacks columns that other files of {part.table.name} have: {_listed(columns)}",
                column=columns[0],
                figures=tuple(f"{part.table.name} {year}" for year, _ in lacking),
                count=len(columns),
            )


def find_several_drops(connection: duckdb.DuckDBPyConnection, extracts: Sequence[Extract]) -> Finding | None:
    """Returns a finding if folders of the drop are drops of their own: they bring the same rows of the same tables.

    Needs the staged tables.
    """
    folders = _folders(extracts)
    bringing: dict[str, set[str]] = defaultdict(set)
    for part, folder in zip(extracts, folders, strict=True):
        bringing[part.table.name].add(folder)
    tables = [table for table in TABLES if len(bringing[table.name]) > 1]
    drops = {folder for table in tables for folder in bringing[table.name]}
    if not tables or drops != set(folders):
        return None
    of_files = {"files": [part.file.label for part in extracts], "folders": folders}
    for table in tables:
        text = sql.statement("shared_keys", staged=staged_name(table), key=", ".join(table.key))
        ((shared, most),) = connection.execute(text, of_files).fetchall()
        if not shared or shared <= _MOST_SHARED * most:
            return None
    return make_finding("several-drops", f"this holds {_listed(sorted(drops))}: name one", count=len(drops))


def _folders(extracts: Sequence[Extract]) -> list[str]:
    """Returns for each file the first folder that not all files have in common."""
    above = os.path.commonpath([part.file.path.parent for part in extracts]) if extracts else ""
    inside = (part.file.path.relative_to(above).parts for part in extracts)
    return [parts[0] if len(parts) > 1 else _OWN for parts in inside]


def _listed(names: Sequence[str]) -> str:
    if len(names) > 3:
        names = [*names[:2], f"{len(names) - 2} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
