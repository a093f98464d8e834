"""Which requests are logged, and as how many lines."""

import os
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from service.base.ipc import AccessLogEntry
from service.request.access_log import FOLD_SECONDS, NEVER, RequestLog, gap, share_logged
from service.request.log_lines import LineWriter, json_line, text_line
from tests.support.waiting import until

ANSWERED = AccessLogEntry(
    time="2026-11-22T03:00:00.000+00:00",
    request_id="r1",
    status=200,
    method="GET",
    path="/v1/x",
    outcome="answered",
    milliseconds=0.02,
    pid=7,
    area="forecast",
    query="zip_code=90210",
    tier="near",
    key_id="k",
)
FAILED = msgspec.structs.replace(ANSWERED, request_id="r2", status=503, outcome="unavailable", tier=None)


class Told:
    """A request log with a clock of its own."""

    def __init__(self) -> None:
        self.lines: list[AccessLogEntry] = []
        self.now = 0.0
        self.log = RequestLog(0.0, errors=True, write=self.lines.append, clock=lambda: self.now)


@pytest.mark.parametrize(("setting", "share"), [("off", 0.0), ("errors", 0.0), (0.01, 0.01), ("all", 1.0)])
def test_the_setting_says_how_many_are_logged(setting: str | float, share: float) -> None:
    assert share_logged(setting) == share


def test_the_gaps_of_a_sample_give_each_request_the_same_chance() -> None:
    steps = [(number + 0.5) / 10_000 for number in range(10_000)]
    gaps = [gap(0.25, iter([step]).__next__) for step in steps]
    assert 3.9 < sum(gaps) / len(gaps) < 4.1
    counted = Counter(gaps)
    assert 0.24 < counted[1] / len(gaps) < 0.26
    assert (gap(1.0), gap(0.0), gap(5e-324)) == (1, NEVER, NEVER)


def test_errors_alike_are_one_line_with_a_count() -> None:
    reported = Told()
    for number in range(1000):
        reported.log.add(msgspec.structs.replace(FAILED, request_id=f"r{number}"))
    assert [line.request_id for line in reported.lines] == ["r0"]
    reported.now = FOLD_SECONDS
    reported.log.log_folded()
    assert [(line.request_id, line.count) for line in reported.lines] == [("r0", 1), ("r999", 999)]
    reported.log.log_folded(at_once=True)
    assert len(reported.lines) == 2


def test_errors_that_differ_have_lines_of_their_own() -> None:
    reported = Told()
    others = [
        FAILED,
        msgspec.structs.replace(FAILED, status=500),
        msgspec.structs.replace(FAILED, outcome="internal"),
        msgspec.structs.replace(FAILED, area="projects"),
        msgspec.structs.replace(FAILED, key_id="k2"),
        msgspec.structs.replace(FAILED, key_id=None, address="192.0.2.1"),
    ]
    for one in others * 2:
        reported.log.add(one)
    assert reported.lines == others
    reported.log.log_folded(at_once=True)
    assert sum(line.count for line in reported.lines) == 12


def test_many_kinds_of_errors_are_bounded() -> None:
    """Addresses may be made up: what was folded is reported, and nothing is lost."""
    reported = Told()
    for number in range(5000):
        reported.log.add(msgspec.structs.replace(FAILED, key_id=None, address=str(number)))
        reported.log.add(msgspec.structs.replace(FAILED, key_id=None, address=str(number)))
    assert len(reported.log._folded) <= 1000
    reported.log.log_folded(at_once=True)
    assert sum(line.count for line in reported.lines) == 10_000


def test_a_request_is_found_by_its_id_although_its_line_was_folded() -> None:
    reported = Told()
    for number in range(20_000):
        reported.now = number / 10
        reported.log.add(msgspec.structs.replace(FAILED, request_id=f"r{number}"))
    assert reported.log.find("r0") == []
    assert [request.request_id for request in reported.log.find("r19999")] == ["r19999"]


def test_a_flood_of_errors_alike_pushes_out_no_other() -> None:
    reported = Told()
    reported.log.add(msgspec.structs.replace(FAILED, status=500, request_id="other"))
    for number in range(20_000):
        reported.log.add(msgspec.structs.replace(FAILED, request_id=f"r{number}"))
    found = {name: len(reported.log.find(name)) for name in ("other", "r0", "r999", "r1000", "r19998", "r19999")}
    assert found == {"other": 1, "r0": 1, "r999": 1, "r1000": 0, "r19998": 0, "r19999": 1}


def test_a_json_line_is_like_those_of_the_rest_of_the_log() -> None:
    line = msgspec.json.decode(json_line(ANSWERED))
    assert list(line)[:5] == ["time", "level", "logger", "message", "pid"]
    assert (line["level"], line["logger"], line["message"]) == ("info", "forecast.access", "GET /v1/x 200")
    assert (line["query"], line["tier"], line["milliseconds"]) == ("zip_code=90210", "near", 0.02)
    assert not {"count", "address", "partner"} & set(line)
    assert msgspec.json.decode(json_line(msgspec.structs.replace(FAILED, count=9)))["count"] == 9
    assert msgspec.json.decode(json_line(FAILED))["level"] == "warning"


@pytest.mark.parametrize("line_of", [json_line, text_line])
def test_no_line_can_be_forged_and_no_key_is_in_one(line_of: Callable[[AccessLogEntry], bytes]) -> None:
    foreign = "a\n\x1b[31mb phf_live_abc_def"
    line = line_of(msgspec.structs.replace(ANSWERED, query=foreign, path=f"/{foreign}"))
    assert line.count(b"\n") == 1
    assert b"\x1b" not in line
    assert b"abc_def" not in line


def test_lines_are_written_in_order_and_at_the_end_nothing_is_left() -> None:
    reading, writing = os.pipe()
    writer = LineWriter(lambda request: f"{request.request_id}\n".encode() * 3, writing)
    writer.start()
    for number in range(100):
        writer.write(msgspec.structs.replace(FAILED, request_id=str(number)))
    writer.stop(30)
    os.close(writing)
    with os.fdopen(reading) as lines:
        assert lines.read().split() == [str(number) for number in range(100) for _ in range(3)]
    assert writer.dropped == 0


def test_a_stalled_reader_delays_no_request_and_its_lost_lines_are_counted() -> None:
    reading, writing = os.pipe()
    writer = LineWriter(lambda _: b"x" * 4000 + b"\n", writing)
    writer.start()
    for _ in range(30_000):
        writer.write(FAILED)
    assert writer.dropped > 0
    os.close(reading)  # the end of the reader is the end of the writing
    until(lambda: not writer._waiting)
    writer.stop(30)
    os.close(writing)
