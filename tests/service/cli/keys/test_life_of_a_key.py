"""forecast keys rotate, extend, show and log, and the narrower lists."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from service.keys import form
from service.keys.record import record_name
from service.quota.names import LAST_USED
from tests.service.cli.conftest import redis_of
from tests.service.conftest import Cli, ids, issue
from tests.support.key_store import any_key, parsed

UNKNOWN = "0B1zQmX4ktLw"
CHANGES = [("rotate", "--overlap", "7d"), ("extend", "--expires", "never"), ("change", "--no-rate"), ("show",)]
CHANGES += [("suspend", "--reason", "overdue"), ("resume",)]


def when(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a_key_is_rotated(cli: Cli, running: list[int]) -> None:
    old = issue(cli, "acme", "--label", "batch")["key_id"]
    done = cli("keys", "rotate", old, "--overlap", "7d")
    assert done.code == 0, done.err
    parts = parsed(done.out.strip())
    assert done.out == f"{done.out.strip()}\n"
    assert f"Key {old} ends " in done.err
    new = cli("keys", "show", parts.key_id, "--json").json
    assert (new["partner"], new["label"], new["rotated_from"]) == ("acme", "batch", old)
    ended = cli("keys", "show", old, "--json").json
    assert ended["rotated_to"] == parts.key_id
    assert abs(when(ended["expires_at"]) - datetime.now(UTC) - timedelta(days=7)) < timedelta(minutes=1)
    next_one = cli("keys", "rotate", parts.key_id, "--overlap", "0s", "--expires", "90d", "--json").json
    assert form.parse(next_one["key"]) is not None
    assert (next_one["rotated_from"], next_one["status"]) == (parts.key_id, "active")
    assert (next_one["old"]["key_id"], next_one["old"]["status"]) == (parts.key_id, "expired")
    assert when(next_one["expires_at"]) > datetime.now(UTC) + timedelta(days=89)


def test_a_key_is_extended(cli: Cli, running: list[int]) -> None:
    key_id = issue(cli, "acme", "--expires", "90d")["key_id"]
    done = cli("keys", "extend", key_id, "--expires", "2999-01-31")
    assert done.out.startswith(f"Key {key_id} of acme ends: ")
    assert done.out.endswith("→ 2999-01-31 00:00 UTC\n")
    assert cli("keys", "extend", key_id, "--expires", "never", "--json").json["expires_at"] is None


def test_a_key_is_suspended_and_resumed(cli: Cli, running: list[int]) -> None:
    key_id = issue(cli, "acme", "--expires", "2999-01-31")["key_id"]
    for wrong in ((), ("--reason", " ")):
        assert cli("keys", "suspend", key_id, *wrong).code == 2
    assert cli("keys", "suspend", key_id, "--reason", "invoice 4711").out == f"Suspended {key_id} of acme.\n"
    shown = cli("keys", "show", key_id, "--json").json
    assert (shown["status"], shown["suspended"]["reason"]) == ("suspended", "invoice 4711")
    assert shown["expires_at"] == "2999-01-31T00:00:00Z"
    assert "invoice 4711" in cli("keys", "show", key_id).out
    assert ids(cli, "--status", "suspended") == [key_id]
    assert "resume it first" in cli("keys", "extend", key_id, "--expires", "never").error()
    assert cli("keys", "resume", key_id).out == f"Resumed {key_id} of acme: active.\n"
    assert cli("keys", "show", key_id, "--json").json["suspended"] is None
    lines = " ".join(cli("log", key_id).out.split())
    assert "reason: invoice 4711" in lines
    assert "→" not in lines  # its end does not change


def test_a_key_begins_later(cli: Cli, running: list[int]) -> None:
    wrong = cli("keys", "issue", "--partner", "acme", "--not-before", "2d", "--expires", "1d")
    assert (wrong.code, "later than --not-before" in wrong.err) == (2, True)
    issued = issue(cli, "acme", "--not-before", "2999-01-31")
    assert (issued["status"], issued["not_before"]) == ("pending", "2999-01-31T00:00:00Z")
    assert "begins 2999-01-31" in " ".join(cli("log").out.split())


def test_every_command_reports_an_unknown_key(cli: Cli, running: list[int]) -> None:
    issue(cli)
    for command, *options in (*CHANGES, ("revoke",)):
        done = cli("keys", command, UNKNOWN, *options)
        assert done.code == 1
        assert done.error() == f"no key {UNKNOWN}; `forecast keys list` shows those there are"


@pytest.mark.parametrize("command", [*CHANGES, ("revoke",), ("log",)], ids=lambda words: words[0])
def test_no_command_takes_a_whole_key(cli: Cli, command: tuple[str, ...]) -> None:
    """Nor repeats one: other users could read it in the list of processes."""
    key, parts = any_key()
    group = () if command == ("log",) else ("keys",)
    whole, cut = (cli(*group, command[0], word, *command[1:], "--json") for word in (key, key[:-1]))
    assert whole.code == 1
    assert whole.error() == f"this is a whole key; give its id, {parts.key_id}"
    assert cut.error().startswith("this is not a key id")
    assert parts.secret not in whole.out + whole.err + cut.out + cut.err
    assert not cli.data.exists()


def test_one_key_is_shown(cli: Cli, running: list[int]) -> None:
    issued = issue(cli, "[acme]", "--areas", "forecast", "--rate", "500/s", "--expires", "2999-01-31")
    shown = cli("keys", "show", issued["key_id"]).out
    for text in (issued["key_id"], "[acme]", "active", "2999-01-31 00:00 UTC", "forecast", "500/s (burst 500)"):
        assert text in shown
    assert issued["key"] not in shown


def test_a_long_list_shows_the_newest_and_says_how_many_more(cli: Cli, running: list[int]) -> None:
    for _ in range(3):
        issue(cli)
    with redis_of(cli) as redis:
        for number, name in enumerate(redis.keys("k:{*")):
            record = json.loads(redis.get(name) or b"")
            record["created_at"] = f"2026-11-0{number + 1}T00:00:00Z"
            redis.set(name, json.dumps(record))
    done = cli("keys", "list", "--limit", "2")
    assert [line.split()[3] for line in done.out.splitlines()[1:3]] == ["2026-11-03", "2026-11-02"]
    assert done.out.splitlines()[-1] == "1 more: filter the list, or give --limit 3"
    listed = cli("keys", "list", "--limit", "2", "--json").json
    assert [view["created_at"][:10] for view in listed] == ["2026-11-03", "2026-11-02"]
    assert len(ids(cli)) == 3
    assert "more" not in cli("keys", "list").out


def test_a_damaged_record_does_not_hide_the_others(cli: Cli, running: list[int]) -> None:
    key_id = issue(cli)["key_id"]
    with redis_of(cli) as redis:
        redis.set(record_name(UNKNOWN), "{")
    for more in ((), ("--limit", "5")):
        text, as_json = cli("keys", "list", *more), cli("keys", "list", "--json", *more)
        assert (text.code, as_json.code) == (1, 1)
        assert key_id in text.out
        assert f"damaged {UNKNOWN}: " in text.out
        assert "1 record is damaged; `forecast keys import` restores them from a backup" in text.err
        entries = {entry["key_id"]: entry for entry in as_json.json}
        assert (entries[key_id]["status"], entries[UNKNOWN]["status"]) == ("active", "damaged")
        assert entries[UNKNOWN]["reason"]


def test_keys_of_another_pepper_are_void(cli: Cli, running: list[int]) -> None:
    before, revoked = issue(cli)["key_id"], issue(cli)["key_id"]
    assert cli("keys", "revoke", revoked).code == 0
    cli.settings["keys_pepper"] = "another pepper altogether"
    assert "made with another pepper" in cli("keys", "issue", "--partner", "acme", "--json").error()
    assert cli("keys", "adopt-store", "--yes", "--json").json == {"adopted": True}
    after = issue(cli)["key_id"]
    statuses = {view["key_id"]: view["status"] for view in cli("keys", "list", "--json").json}
    assert statuses == {before: "void", revoked: "revoked", after: "active"}
    assert ids(cli, "--status", "void") == [before]
    assert "is void" in cli("keys", "extend", before, "--expires", "never").error()
    assert cli("keys", "revoke", before).code == 0


def test_the_log_says_who_did_what_newest_first(cli: Cli, running: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "grace")
    first, second = issue(cli, "[acme]")["key_id"], issue(cli, "other")["key_id"]
    cli("keys", "extend", first, "--expires", "2999-01-31")
    cli("keys", "revoke", first)
    reported = cli("log", "--json").json
    assert [(line["what"], line["key_id"]) for line in reported] == [
        ("revoked", first),
        ("extended", first),
        ("issued", second),
        ("issued", first),
    ]
    assert {line["by"].partition("@")[0] for line in reported} == {"grace"}
    times = [datetime.fromisoformat(line["at"]) for line in reported]
    assert times == sorted(times, reverse=True)
    assert [line["what"] for line in cli("log", second, "--json").json] == ["issued"]
    assert len(cli("log", "--since", "1h", "--json").json) == 4
    assert cli("log", "--since", "2999-01-01", "--json").json == []
    assert cli("log", "--since", "2999-01-01").out == "No changes.\n"
    assert [line["what"] for line in cli("log", "--limit", "2", "--json").json] == ["revoked", "extended"]
    for filters, number in (
        (("--partner", "other"), 1),
        (("--what", "issued", "--what", "extended"), 3),
        (("--via", "command"), 4),
        (("--via", "http"), 0),
    ):
        assert len(cli("log", *filters, "--json").json) == number
    text = cli("log", first).out
    for word in ("[acme]", "revoked", "extended", "expires never → 2999-01-31", "grace@"):
        assert word in text


def test_a_key_that_ends_within_a_day_is_shown_with_its_time(cli: Cli, running: list[int]) -> None:
    issue(cli, "soon", "--expires", "1h")
    issue(cli, "later", "--expires", "2999-01-31")
    at = datetime.now(UTC) + timedelta(hours=1)
    moments = [f"{at - timedelta(minutes=back):%Y-%m-%d %H:%M} UTC" for back in (0, 1)]
    for command in (("keys", "list"), ("log",)):
        lines = cli(*command).out.splitlines()
        (soon,), (later,) = ([line for line in lines if name in line] for name in ("soon", "later"))
        assert any(moment in soon for moment in moments)
        assert "2999-01-31" in later
        assert "00:00" not in later


def test_a_test_key_is_marked_wherever_it_is_shown_and_has_a_test_key_as_successor(
    cli: Cli, running: list[int]
) -> None:
    done = cli("keys", "issue", "--partner", "acme", "--test")
    parts = parsed(done.out.strip())
    assert parts.test
    test_key, other = parts.key_id, issue(cli)["key_id"]
    assert f"Test key {test_key} for acme" in done.err
    said = [cli("keys", "extend", key_id, "--expires", "9d", log_format="text").err for key_id in (test_key, other)]
    assert f"test key {test_key} was extended by " in said[0]
    assert f" key {other} was extended by " in said[1]
    assert "test key" not in said[1]
    line = json.loads(cli("keys", "revoke", test_key).err)
    assert (line["message"].partition(" was ")[0], line["test"]) == (f"test key {test_key}", True)
    reported = cli("log", "--json").json
    assert {(one["key_id"], one.get("test", False)) for one in reported} == {(test_key, True), (other, False)}
    rows = [row for row in cli("log").out.splitlines() if test_key in row or other in row]
    assert ["test key" in row for row in rows] == [test_key in row for row in rows]
    successor = issue(cli, "acme", "--test")["key_id"]
    rotated = cli("keys", "rotate", successor, "--overlap", "7d", "--json").json
    assert (rotated["test"], rotated["old"]["test"]) == (True, True)
    assert rotated["key"].startswith("phf_test_")
    assert "active, test" in cli("keys", "show", rotated["key_id"]).out


def test_the_log_stream_has_a_line_for_each_change_and_none_for_anything_else(cli: Cli, running: list[int]) -> None:
    done = cli("keys", "issue", "--partner", "acme", "--json")
    (line,) = [json.loads(text) for text in done.err.splitlines()]
    key_id = line["key_id"]
    assert (line["logger"], line["what"], key_id) == ("forecast.keys.audit", "issued", done.json["key_id"])
    assert done.json["key"] not in done.err
    text = cli("keys", "revoke", key_id, log_format="text")
    assert f"key {key_id} was revoked by " in text.err
    assert not text.err.startswith("{")
    for words in (("keys", "revoke", key_id), ("keys", "list"), ("keys", "show", key_id), ("log",)):
        assert cli(*words).err == ""


def test_keys_that_nobody_uses_can_be_listed(cli: Cli, running: list[int]) -> None:
    used, unused = (issue(cli)["key_id"] for _ in range(2))
    issue(cli, "acme", "--test")
    minute = int(datetime.now(UTC).timestamp() // 60)
    redis_of(cli).hset(LAST_USED, used, minute)
    assert set(ids(cli, "--unused", "0s")) == {used, unused}
    assert ids(cli, "--unused", "90d") == []
    redis = redis_of(cli)
    for key_id in (used, unused):  # issued a year ago
        name = record_name(key_id)
        record = json.loads(redis.get(name) or b"")
        redis.set(name, json.dumps(record | {"created_at": "2025-11-01T00:00:00Z"}))
    assert ids(cli, "--unused", "90d") == [unused]
    assert cli("keys", "show", unused, "--json").json["last_used"] is None
    shown = datetime.fromisoformat(cli("keys", "show", used, "--json").json["last_used"])
    assert shown.timestamp() == minute * 60
