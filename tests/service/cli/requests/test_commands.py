"""`forecast requests find` and `sample`."""

import pytest

from service.base.ipc import AccessLogEntry
from tests.service.cli.conftest import HERE, Start
from tests.service.conftest import Cli

TOKEN = "write-token-of-the-tests"
ID = "9f2c71aa03b54e6fd0181a2b3c4d5e6f"
LINE = AccessLogEntry(
    time="2026-11-22T22:03:44.600+00:00",
    request_id=ID,
    status=400,
    method="GET",
    path="/v1/population-housing-forecast",
    outcome="invalid_parameter",
    milliseconds=0.9,
    pid=4712,
    partner="acme",
)


def test_a_request_is_shown_as_it_was_logged(cli: Cli, start: Start) -> None:
    start().answer(f"/requests/{ID}", [LINE])
    done = cli("requests", "find", ID)
    assert (done.code, done.err) == (0, "")
    rows = dict(line.rstrip().rsplit("  ", 1) for line in done.out.splitlines())
    said = {name.strip(): value.strip() for name, value in rows.items()}
    assert said["instance"] == f"instance 4711 on {HERE}"
    assert (said["status"], said["outcome"], said["partner"]) == ("400", "invalid_parameter", "acme")
    assert "tier" not in said


def test_every_instance_is_asked(cli: Cli, start: Start) -> None:
    start(pid=4711).refuse(404, "no_such_request")
    other = start(pid=4811)
    other.answer(f"/requests/{ID}", [LINE, LINE])
    done = cli("requests", "find", ID, "--json")
    assert done.code == 0
    assert [(line["instance"], line["partner"]) for line in done.json] == [(other.url, "acme")] * 2


def test_an_unknown_request_is_one_line(cli: Cli, start: Start) -> None:
    start().refuse(404, "no_such_request")
    done = cli("requests", "find", ID)
    assert done.code == 1
    assert done.error().startswith(f"request {ID} is not in the log, which is sampled")


def test_an_instance_that_cannot_be_asked_may_have_known_it(cli: Cli, start: Start) -> None:
    start(pid=4711).answer(f"/requests/{ID}", [LINE])
    start(pid=4811).refuse(503, "unavailable")
    done = cli("requests", "find", ID)
    assert done.code == 1
    assert "acme" in done.out
    assert f"instance 4811 on {HERE}: " in done.err


def test_what_cannot_be_a_request_id_is_not_sent(cli: Cli, start: Start) -> None:
    listener = start()
    for typed in ("", "a b", "a/b", "x" * 65, "ü"):
        done = cli("requests", "find", typed)
        assert done.code == 1
        assert "is not a request id" in done.error()
    assert listener.asked == []


@pytest.mark.parametrize(("typed", "sent"), [("0.1", b"0.1"), ("10%", b"0.1"), ("0", b"0.0"), ("1", b"1.0")])
def test_the_share_is_set_in_every_instance(cli: Cli, start: Start, typed: str, sent: bytes) -> None:
    listeners = [start(pid=4711), start(pid=4811)]
    for listener in listeners:
        listener.answer("/log/sampling", {"rate": 0.1})
    done = cli("requests", "sample", typed, operator_write_token=TOKEN)
    assert done.code == 0
    assert f"instance 4811 on {HERE} now logs 10.00% of its requests." in done.out
    for listener in listeners:
        assert [(said.method, said.body) for said in listener.asked] == [("POST", b'{"rate":' + sent + b"}")]
    as_json = cli("requests", "sample", typed, "--json", operator_write_token=TOKEN).json
    assert [one["rate"] for one in as_json] == [0.1, 0.1]


def test_what_is_no_share_is_wrong_usage(cli: Cli) -> None:
    for typed in ("2", "-1", "150%", "much", "nan", "%"):
        done = cli("requests", "sample", "--", typed)
        assert done.code == 2
        assert "give 0.01 or 1%" in done.err
