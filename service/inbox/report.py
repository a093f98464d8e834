"""Writes the reports beside a drop that went through the inbox, and sends the events of the inbox."""

import contextlib
import io
import logging
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from config.metadata import is_secret, names, variable_of
from service.reports import terminal
from service.reports.text_table import WIDTH, HarmlessConsole
from warehouse.files.reading import read_struct
from warehouse.publishing.outcome import PublishOutcome
from warehouse.schema.comparison import Comparison
from warehouse.schema.findings import Finding, make_report


class DropDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A person's decision on a held drop."""

    what: Literal["approved", "discarded"]
    reason: str
    by: str
    at: datetime


class DropReport(msgspec.Struct, frozen=True, kw_only=True):
    """The content of report.json."""

    drop: str
    result: str
    at: datetime
    release: str | None  # current when the report was written
    findings: tuple[Finding, ...]
    comparison: Comparison | None
    delivered: Annotated[datetime, msgspec.Meta(tz=True)] | None = None  # when the inbox claimed the drop
    data_folder: str | None = None  # that the drop is for
    tables: dict[str, str] = {}  # checksums of the contents of its tables, by name
    hold: tuple[str, ...] = ()  # rules that held a drop at the time
    decision: DropDecision | None = None  # None unless the drop was held

    def for_approval(self) -> list[Finding]:
        """Returns the errors that an approval accepts: those of the rules that hold a drop, and their consequences."""
        return [one for one in self._errors() if one.rule in self.hold or one.follows in self.hold]

    def beyond_approval(self) -> list[str]:
        """Returns the rules of the other errors, without `overtaken`, which has an option of its own."""
        covered = self.for_approval()
        others = (one.rule for one in self._errors() if one not in covered and one.rule != "overtaken")
        return list(dict.fromkeys(others))

    def rules(self) -> list[str]:
        """Returns the rules of all errors."""
        return list(dict.fromkeys(one.rule for one in self._errors()))

    def _errors(self) -> list[Finding]:
        return [one for one in self.findings if one.severity == "error"]


def make_drop_report(
    drop: str,
    outcome: PublishOutcome,
    data: Path,
    delivered: datetime | None,
    hold: Sequence[str],
    decision: DropDecision | None = None,
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


def read_report(folder: Path) -> DropReport | None:
    """Reads the report beside a drop; returns None if it is lost or damaged."""
    try:
        return read_struct(folder / "report.json", DropReport)
    except (OSError, ValueError):
        return None


def mark_already_current(outcome: PublishOutcome) -> PublishOutcome:
    """Returns the outcome for a drop whose contents are live: its errors need no decision, so they become warnings."""
    findings = (
        msgspec.structs.replace(one, severity="warning") if one.severity == "error" else one
        for one in outcome.report.findings
    )
    report = make_report(findings, outcome.report.comparison)
    return msgspec.structs.replace(outcome, result="already_current", report=report)


def report_text(outcome: PublishOutcome) -> str:
    """Returns the output of `forecast extracts publish` for a drop, without colours."""
    written = io.StringIO()
    terminal.print_drop_outcome(HarmlessConsole(file=written, width=WIDTH, color_system=None), outcome)
    return written.getvalue()


def report_files(report: DropReport, text: str, to_do: str | None = None) -> dict[str, bytes]:
    """Returns the content of the report files by name. `text` is for people; `to_do` is the remedy."""
    lines = [f"{report.drop}, {_time(report.at)}"]
    decision = report.decision
    if to_do is not None:
        lines.append(f"to decide: {to_do}")
    elif decision is None and report.result == "held":
        lines.append("to decide: `forecast extracts approve`, or `discard`, with this name and --reason TEXT")
    elif decision is not None:
        lines.append(f"{decision.what} by {decision.by}, {_time(decision.at)}: {decision.reason}")
    head = "\n".join(lines)
    return {
        "report.json": msgspec.json.format(msgspec.json.encode(report)),
        "report.txt": f"{head}\n\n{text}".encode(errors="backslashreplace"),
    }


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


log = logging.getLogger("forecast.inbox")

EventKind = Literal[
    "watching",
    "standby",
    "arriving",
    "foreign",
    "publishing",
    "published",
    "already_current",
    "refused",
    "held",
    "approved",
    "discarded",
    "command_failed",
    "busy",
    "failed",
    "gone",
    "stopped",
]
_LEVELS: dict[EventKind, int] = {
    "foreign": logging.WARNING,
    "refused": logging.WARNING,
    "held": logging.WARNING,
    "command_failed": logging.ERROR,
    "failed": logging.ERROR,
    "gone": logging.WARNING,
}


class InboxEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event in the inbox. `message` is complete, for people; the other fields are for programs."""

    event: EventKind
    message: str
    drop: str | None = None
    release: str | None = None
    place: str | None = None  # path of the drop now
    report: str | None = None  # path of its report.txt
    time: datetime = msgspec.field(default_factory=lambda: datetime.now(UTC))


class EventSender:
    """Sends the events of one watcher, for its lifetime."""

    def __init__(self, on_event: Callable[[InboxEvent], None]) -> None:
        self.send_event = on_event
        self._last: tuple[EventKind, str] | None = None

    def send(self, kind: EventKind, message: str, drop: str | None = None) -> None:
        self.send_event(InboxEvent(event=kind, message=message, drop=drop))

    def send_once(self, kind: EventKind, message: str) -> None:
        """Sends the event of a state that may last, unless it was the last one since `forget`."""
        if self._last != (kind, message):
            self._last = (kind, message)
            self.send(kind, message)

    def forget(self) -> None:
        """Lets the next state be sent even if it was sent before."""
        self._last = None


def log_event(event: InboxEvent) -> None:
    members = {"event": event.event, "drop": event.drop, "release": event.release, "report": event.report}
    extra = {name: value for name, value in members.items() if value is not None}
    log.log(_LEVELS.get(event.event, logging.INFO), "%s", event.message, extra=extra)


def make_outcome_event(name: str, folder: Path, outcome: PublishOutcome) -> InboxEvent:
    """Returns the event of the drop `name`, which is now in `folder` with its reports."""
    summary, release = outcome.report.summary(), outcome.manifest.id if outcome.manifest else None
    path = str(folder / "report.txt")
    kind: EventKind = "published"
    message = f"{name} was published: {release} is current; {summary}"
    if outcome.result == "refused":
        kind, message = "refused", f"{name} was refused: {summary}; see {path}"
    elif outcome.result == "held":
        kind, message = "held", f"{name} is held for approval: {summary}; see {path} and `forecast extracts held`"
    elif outcome.result == "already_current":
        kind, message = "already_current", f"{name} has no changes: {release} is current; {summary}"
    return InboxEvent(event=kind, message=message, drop=name, release=release, place=str(folder / name), report=path)


MAX_HOOK_SECONDS = 30.0


def run_command(command: str, name: str, folder: str) -> str | None:
    """Runs `command`, without a shell, for the drop `name` in `folder`; returns the failure, None on success.

    `folder` is in quarantine/ or held/. The message repeats neither the command, which may contain a token, nor its
    output.
    """
    drop = {
        "DROP_NAME": name,
        "DROP_RESULT": "held" if Path(folder).parent.name == "held" else "refused",
        "DROP_PATH": str(Path(folder) / name),
        "DROP_REPORT": str(Path(folder) / "report.json"),
    }
    try:
        with subprocess.Popen(  # noqa: S603 - the operator's own command, split like in a shell, run without one
            shlex.split(command),
            env=_environment() | drop,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that its own children can be killed with it
        ) as process:
            try:
                code = process.wait(MAX_HOOK_SECONDS)
            except BaseException:  # it takes too long, or the watcher stops
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
    except subprocess.TimeoutExpired:
        return f"it did not end within {MAX_HOOK_SECONDS:g} s"
    except (OSError, ValueError, IndexError) as error:
        return f"it cannot be run: {getattr(error, 'strerror', None) or type(error).__name__}"
    return None if code == 0 else f"it ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"


def _environment() -> dict[str, str]:
    """Returns this process's environment without our secrets, which the command must not see."""
    secrets = {f"{variable_of(name)}{suffix}" for name in names() if is_secret(name) for suffix in ("", "_FILE")}
    return {name: value for name, value in os.environ.items() if name not in secrets}
