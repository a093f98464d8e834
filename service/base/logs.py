"""Logging: JSON lines for machines, short lines for a person at a terminal.

Our own secrets are never logged. Text that looks like a partner's key, in a path for example, is masked.
"""

import asyncio
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

from config.streams import AsIs
from config.text import json_text, printable, printable_lines
from service.base.masking import masked

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_LAST_CHARACTERS = 200
_COLOURS = {"DEBUG": "\x1b[2m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31m"}


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the members of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
            **_extra(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return masked(json_text(line))


class TextFormatter(logging.Formatter):
    """One short line per record, for a terminal; `extra` follows the message."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        message = record.getMessage()
        extra = " ".join(f"{name}={value}" for name, value in _extra(record).items() if str(value) not in message)
        line = printable(f"{time} {record.levelname.lower():7} {message}" + (f"  {extra}" if extra else ""), None)
        if record.exc_info:
            line += "\n" + printable_lines(self.formatException(record.exc_info))
        colour = _COLOURS.get(record.levelname, "") if self._colour else ""
        line = masked(line)
        return f"{colour}{line}\x1b[0m" if colour else line


def configure(form: Literal["auto", "json", "text"], level: str) -> bool:
    """Logs to standard error; `auto` is text in a terminal and JSON elsewhere. Returns whether it is JSON."""
    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    root = logging.getLogger()
    root.handlers = [handler(as_json=as_json)]
    root.setLevel(level.upper())
    # the end of a drain cancels requests whose clients do not read; uvicorn would log that as a failure
    logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
    # these log each connection or process, which we log or count ourselves
    for name in ("uvicorn.error", "uvicorn.access", "litestar"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return as_json


class LastLine(logging.Handler):
    """Remembers the last record of this process, for reports about its end. Its owner adds it to the root logger."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._record: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self._record = record

    @property
    def text(self) -> str | None:
        return masked(printable(self._record.getMessage(), _LAST_CHARACTERS)) if self._record is not None else None


def handler(*, as_json: bool) -> logging.Handler:
    """Writes to standard error, in colours if that is a terminal."""
    made = logging.StreamHandler(AsIs(sys.stderr))
    made.setFormatter(JsonFormatter() if as_json else TextFormatter(colour=sys.stderr.isatty()))
    return made


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}
