"""Files of other formats than Parquet, where the drop lacks a table that they may hold."""

from collections.abc import Collection
from pathlib import Path

from warehouse.drops.collection import Drop
from warehouse.drops.file_kinds import UnreadFile
from warehouse.drops.recognition import nearest_table
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding
from warehouse.schema.tables import TABLES, Table

_LEAST_SCORE = 0.5  # of the columns of a table, so that a file with them is taken for one


def unread_as_errors(drop: Drop, findings: list[Finding], lacking: Collection[str]) -> list[Finding]:
    """The findings; if the drop lacks tables, a foreign file that may hold one is an error.

    A copy in another format, beside the Parquet file of the same name, stays a warning.
    """
    read = {_stem(file.label) for file in drop.files}
    return [
        _unread(finding.file, drop.unread[finding.file], lacking)
        if lacking
        and finding.rule == "foreign-file"
        and finding.file in drop.unread
        and _stem(finding.file) not in read
        else finding
        for finding in findings
    ]


def _unread(label: str, file: UnreadFile, lacking: Collection[str]) -> Finding:
    meant = _table_by_columns(file) or _table_by_name(label)
    # a table that is needed is more likely meant than one that many drops never bring
    lacks = ", ".join(one.name for one in sorted(TABLES, key=lambda one: not one.needed) if one.name in lacking)
    if meant is None:
        what = f"which is not read; the drop lacks {lacks}"
    elif meant.name in lacking:
        what = f"which is not read; the drop lacks {meant.name}, which it probably holds"
    else:
        what = f"which is not read; it probably holds {meant.name}"
    message = f"{label} is {file.kind.name}, {what}"
    return make_finding("unread-table", message, file=label, remedy=f"{file.kind.remedy}, or leave the file out")


def _table_by_columns(file: UnreadFile) -> Table | None:
    table, score = nearest_table(file.columns)
    return table if score >= _LEAST_SCORE else None


def _table_by_name(label: str) -> Table | None:
    """The table that a file is named after, in the singular or plural: `project` for `development_projects`."""
    words = ((table, table.name.rpartition("_")[2].removesuffix("es").removesuffix("s")) for table in TABLES)
    return next((table for table, word in words if word in _stem(label)), None)


def _stem(label: str) -> str:
    return Path(label).name.partition(".")[0].lower()
