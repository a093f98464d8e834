"""Logging: JSON lines for machines, text for a terminal, and nothing that a caller could forge."""

import asyncio
import io
import json
import logging
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from service.base import logs
from tests.support.key_store import any_key


@pytest.fixture
def restored() -> Iterator[None]:
    """The root logger as it was, behind a test that configures it."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _record(message: str, *arguments: object, level: int = logging.INFO, **extra: object) -> logging.LogRecord:
    record = logging.getLogger("forecast.test").makeRecord(
        "forecast.test", level, "file", 1, message, arguments, None, extra=extra
    )
    record.created = 1_800_000_000.25
    return record


def _failed() -> logging.LogRecord:
    record = _record("failed")
    try:
        int("x")
    except ValueError:
        record.exc_info = sys.exc_info()
    return record


def _json(record: logging.LogRecord) -> dict[str, object]:
    line = logs.JsonFormatter().format(record)
    assert "\n" not in line
    decoded: dict[str, object] = json.loads(line)
    return decoded


def test_a_json_line_has_time_level_logger_and_extras() -> None:
    line = _json(_record("hello %s", "there", request_id="r1", milliseconds=1.5))
    assert (line["level"], line["logger"], line["message"]) == ("info", "forecast.test", "hello there")
    assert (line["request_id"], line["milliseconds"]) == ("r1", 1.5)
    assert datetime.fromisoformat(str(line["time"])).timestamp() == 1_800_000_000.25
    assert str(line["time"]).endswith("+00:00")


def test_json_takes_whatever_is_passed() -> None:
    assert _json(_record("x", path=Path("/x"), error=ValueError("no")))["path"] == "/x"


def test_a_trace_is_one_line_of_json_and_keeps_its_lines_in_text() -> None:
    assert "ValueError" in str(_json(_failed())["exception"])
    assert "\nTraceback" in logs.TextFormatter(colour=True).format(_failed())


def test_text_shows_extras_that_the_message_does_not_say() -> None:
    line = logs.TextFormatter(colour=False).format(_record("worker %d ended", 7, worker=7, request_id="r1"))
    assert line.endswith("worker 7 ended  request_id=r1")


def test_text_takes_a_message_that_is_an_exception() -> None:
    record = _record("x", request_id="r1")
    record.msg = ValueError("no")
    assert "no  request_id=r1" in logs.TextFormatter(colour=False).format(record)


@pytest.mark.parametrize("path", ["/x\n12:00:00 error   forged", "/x\x1b[2J", "/x\u2028y", "/x\r", "/x\u202e"])
def test_a_path_cannot_forge_a_line_or_speak_to_the_terminal(path: str) -> None:
    """Paths come from callers: what is not printable is written as its escape."""
    line = logs.TextFormatter(colour=False).format(_record("GET %s %d", path, 404))
    assert line.isprintable()
    assert "/x" in line


@pytest.mark.parametrize(
    ("form", "terminal", "as_json"),
    [("auto", True, False), ("auto", False, True), ("json", True, True), ("text", False, False)],
)
def test_auto_is_text_in_a_terminal_and_json_elsewhere(
    form: str, terminal: bool, as_json: bool, monkeypatch: pytest.MonkeyPatch, restored: None
) -> None:
    stream = _Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    assert logs.configure(form, "warning") is as_json  # type: ignore[arg-type]
    logging.getLogger("forecast.test").info("unheard")
    logging.getLogger("forecast.test").warning("heard")
    written = stream.getvalue()
    assert "unheard" not in written
    assert "heard" in written
    assert written.startswith("{") is as_json
    assert ("\x1b[" in written) is (terminal and not as_json)


@pytest.mark.parametrize("formatter", [logs.JsonFormatter(), logs.TextFormatter(colour=False)], ids=["json", "text"])
def test_a_key_that_a_caller_put_into_a_path_is_masked(formatter: logging.Formatter) -> None:
    key, parts = any_key()
    try:
        raise ValueError(key)
    except ValueError:
        trace = sys.exc_info()
    record = _record("GET %s %d", f"/v1/{key}", 404, path=f"/v1/{any_key()[0][:-9]}")
    record.exc_info = trace
    line = formatter.format(record)
    assert parts.key_id not in line
    assert parts.secret[:20] not in line
    assert line.count("phf_live_********") == 3


def test_a_request_cancelled_by_a_drain_is_no_failure(restored: None, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json", "info")
    server = logging.getLogger("uvicorn.error")
    for error in (asyncio.CancelledError(), ValueError("broken")):
        try:
            raise error
        except BaseException:
            server.exception("Exception in ASGI application")
    (line,) = capsys.readouterr().err.splitlines()
    assert "broken" in line
