"""Names of columns that differ from ours only in spelling: a table in front, other separators, added characters."""

import os
import re
from collections.abc import Collection

from warehouse.schema.tables import MONTH_CODE, TABLES, UPDATED_AT

KNOWN_COLUMNS = {name for table in TABLES for name in table.column_names}
# Without the separators of words.
_BY_LETTERS = {name.replace("_", ""): name for name in (*KNOWN_COLUMNS, UPDATED_AT, MONTH_CODE)}
_YEAR_BY_LETTERS = re.compile(r"tot(census|fx)pop([0-9]{4})")
_IN_FRONT = re.compile(r".*[.:/$|](?=.)")  # such as schema.table.column
# A byte-order mark, also misread as Latin-1.
_BYTE_ORDER_MARKS = ("\ufeff", "ï»¿")
_ADDED = re.compile(r"""ï»¿|[\ufeff\u200b-\u200f\u2060"'`]""")


def respelled(names: Collection[str]) -> dict[str, str]:
    """Returns our name of each column that has another spelling of it, by the column's own lower-case name."""
    shared = os.path.commonprefix(list(names)) if len(names) > 1 else ""  # noqa: RUF071 - names, not paths
    ours = {name: _our_name(name.removeprefix(shared[: shared.rfind("_") + 1])) for name in names}
    return {name: our for name, our in ours.items() if our is not None and our not in names}


def _our_name(name: str) -> str | None:
    letters = re.sub(r"[^a-z0-9]", "", _IN_FRONT.sub("", name))
    year = _YEAR_BY_LETTERS.fullmatch(letters)
    return f"tot_{year[1]}_pop_{year[2]}" if year else _BY_LETTERS.get(letters)


def cause_of(names: Collection[str]) -> tuple[str, str]:
    """Returns the likely cause of these spellings, and its remedy without the names."""
    if any(name.startswith(_BYTE_ORDER_MARKS) for name in names):
        return "byte-order mark", "export as UTF-8 without a byte-order mark"
    if any(_ADDED.search(name) for name in names):
        return "quotation marks or invisible characters", "export names without them"
    if any(_IN_FRONT.match(name) for name in names):
        return "the name of a table in front", "export names without it"
    return "another spelling", "export the names of the contract"
