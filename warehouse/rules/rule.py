"""What a rule is. Rules of each stage are declared beside this module; all_rules.py brings them together."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from warehouse.schema.findings import Severity
from warehouse.schema.tables import Column, Table

Unit = Literal["share", "rows"]

EXPORT_AGAIN = "export it again"
CORRECT = "correct them in the source and export again"


def _nowhere(_: Table) -> Sequence[Column | None]:
    return []


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """`about` documents it. `limit` can be set; `override` says that ``--accept`` lets a finding through.

    `statement` names the SQL that finds offending rows, `message` words what it found, and `concerns` lists the
    columns of a table that it is run for. `offends` names the SQL that says of one row whether it offends, for rules
    that can say so: the statements of those run only where one does.
    """

    name: str
    severity: Severity
    about: str
    remedy: str | None = None
    limit: float | None = None
    unit: Unit = "share"
    override: bool = False
    statement: str | None = None
    offends: str | None = None
    message: str = ""
    concerns: Callable[[Table], Sequence[Column | None]] = _nowhere
