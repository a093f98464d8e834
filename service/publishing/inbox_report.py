"""The reports that are kept beside a drop once it went through the inbox."""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from warehouse.publishing.publish import PublishOutcome
from warehouse.schema.comparison import Comparison
from warehouse.schema.findings import Finding

TextOf = Callable[[PublishOutcome], str]


class DropReport(msgspec.Struct, frozen=True, kw_only=True):
    """What report.json holds."""

    drop: str
    result: str
    at: datetime
    release: str | None  # current when the report was written
    findings: tuple[Finding, ...]
    comparison: Comparison | None


def reports(drop: str, outcome: PublishOutcome, text_of: TextOf) -> dict[str, bytes]:
    """The files by name, for programs and for people; `text_of` makes the text for people."""
    content = DropReport(
        drop=drop,
        result=outcome.result,
        at=datetime.now(UTC).replace(microsecond=0),
        release=outcome.manifest.id if outcome.manifest else None,
        findings=outcome.report.findings,
        comparison=outcome.report.comparison,
    )
    text = f"{drop}, {content.at:%Y-%m-%d %H:%M:%S} UTC\n\n{text_of(outcome)}"
    return {"report.json": msgspec.json.format(msgspec.json.encode(content)), "report.txt": text.encode()}
