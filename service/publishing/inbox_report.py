"""The reports that are kept beside a drop once it went through the inbox."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from warehouse.publishing.outcome import PublishOutcome
from warehouse.schema.comparison import Comparison
from warehouse.schema.findings import Finding, make_report

TextOf = Callable[[PublishOutcome], str]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a person decided on a held drop."""

    what: Literal["approved", "discarded"]
    reason: str
    by: str
    at: datetime


class DropReport(msgspec.Struct, frozen=True, kw_only=True):
    """What report.json holds."""

    drop: str
    result: str
    at: datetime
    release: str | None  # current when the report was written
    findings: tuple[Finding, ...]
    comparison: Comparison | None
    delivered: Annotated[datetime, msgspec.Meta(tz=True)] | None = None  # when the inbox took the drop
    data_folder: str | None = None  # that the drop is for
    tables: dict[str, str] = {}  # that the drop brings: checksums of their contents
    hold: tuple[str, ...] = ()  # rules that hold a drop, as it was judged
    decision: Decision | None = None  # None unless the drop was held

    def for_approval(self) -> list[Finding]:
        """The errors that an approval accepts: of the rules to hold, or following from one of them."""
        return [one for one in self._errors() if one.rule in self.hold or one.follows in self.hold]

    def beyond_approval(self) -> list[str]:
        """The rules of the other errors, but for `overtaken`, which has an option of its own."""
        covered = self.for_approval()
        others = (one.rule for one in self._errors() if one not in covered and one.rule != "overtaken")
        return list(dict.fromkeys(others))

    def rules(self) -> list[str]:
        """The rules of all errors."""
        return list(dict.fromkeys(one.rule for one in self._errors()))

    def _errors(self) -> list[Finding]:
        return [one for one in self.findings if one.severity == "error"]


def make_drop_report(
    drop: str,
    outcome: PublishOutcome,
    data: Path,
    delivered: datetime | None,
    hold: Sequence[str],
    decision: Decision | None = None,
) -> DropReport:
    return DropReport(
        drop=drop,
        result=outcome.result,
        at=datetime.now(UTC).replace(microsecond=0),
        release=outcome.manifest.id if outcome.manifest else None,
        findings=outcome.report.findings,
        comparison=outcome.report.comparison,
        delivered=delivered,
        data_folder=str(data.absolute()),
        tables=outcome.tables,
        hold=tuple(hold),
        decision=decision,
    )


def nothing_new(outcome: PublishOutcome) -> PublishOutcome:
    """The outcome for a drop whose contents are live: nothing is left to decide, so its errors are warnings."""
    findings = (
        msgspec.structs.replace(one, severity="warning") if one.severity == "error" else one
        for one in outcome.report.findings
    )
    report = make_report(findings, outcome.report.comparison)
    return msgspec.structs.replace(outcome, result="already_current", report=report)


def report_files(report: DropReport, text: str, to_do: str | None = None) -> dict[str, bytes]:
    """The files by name, for programs and for people, who read `text`; `to_do` says what they can do."""
    lines = [f"{report.drop}, {_time(report.at)}"]
    said = report.decision
    if to_do is not None:
        lines.append(f"to decide: {to_do}")
    elif said is None and report.result == "held":
        lines.append("to decide: `forecast extracts approve`, or `discard`, with this name and --reason TEXT")
    elif said is not None:
        lines.append(f"{said.what} by {said.by}, {_time(said.at)}: {said.reason}")
    head = "\n".join(lines)
    return {
        "report.json": msgspec.json.format(msgspec.json.encode(report)),
        "report.txt": f"{head}\n\n{text}".encode(errors="backslashreplace"),
    }


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
