"""forecast keys export and import."""

import json
import os
import re
import stat
import threading
from pathlib import Path

import pytest

from service.keys.record import IDENTITY, record_name
from service.keys.store_identity import SEEN
from service.quota.names import GENERATION
from tests.service.cli.conftest import redis_of
from tests.service.conftest import Cli, ids, issue


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.jsonl"


def empty(cli: Cli) -> None:
    with redis_of(cli) as redis:
        redis.flushall()


def test_a_backup_is_private_and_whole(cli: Cli, running: list[int], file: Path) -> None:
    file.touch(0o644)
    issued = issue(cli)
    counts = {"file": str(file), "keys": 1, "plans": 0, "partners": 0, "lines": 1, "usage": 0, "damaged": []}
    assert cli("keys", "export", str(file), "--json").json == {**counts, "replaced": False}
    said = "1 keys, 0 plans, 0 partners, 1 lines of the audit trail, 0 records of usage."
    assert cli("keys", "export", str(file)).err == f"{said} The earlier backup in this file was replaced.\n"
    assert cli("keys", "export", str(file), "--json").json == {**counts, "replaced": True}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["type"] for line in lines] == ["head", "key", "line", "end"]
    assert issued["key"] not in file.read_text()


def test_a_backup_can_go_to_standard_output(cli: Cli, running: list[int], file: Path) -> None:
    issue(cli)
    file.write_text(cli("keys", "export", "-").out)
    assert cli("keys", "import", str(file)).code == 0
    done = cli("keys", "export", "-", "--json")
    assert done.code == 2
    assert "both need standard output" in done.err


def test_a_file_that_is_no_backup_is_not_replaced(cli: Cli, file: Path) -> None:
    for content in (b"PAR1 an extract", b'{"type":"head"}'):
        file.write_bytes(content)
        done = cli("keys", "export", str(file), "--partial")
        assert done.code == 2
        assert "exists and is not a backup of keys: name another file" in " ".join(done.err.split())
        assert file.read_bytes() == content
    file.unlink()
    os.mkfifo(file)
    done = cli("keys", "export", str(file))
    assert done.code == 2
    assert "is not a regular file" in done.err
    assert file.is_fifo()


def test_a_backup_that_cannot_be_written_leaves_the_old_one(cli: Cli, running: list[int], file: Path) -> None:
    issue(cli)
    cli("keys", "export", str(file))
    before = file.read_bytes()
    empty(cli)
    done = cli("keys", "export", str(file))
    assert done.code == 1
    assert "the key store has lost its identity" in done.error()
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_a_damaged_record_is_left_out_and_a_good_backup_is_kept(cli: Cli, running: list[int], file: Path) -> None:
    """The good backup repairs the record. --partial replaces it all the same."""
    issue(cli)
    key_id = issue(cli)["key_id"]
    cli("keys", "export", str(file))
    good = file.read_bytes()
    with redis_of(cli) as redis:
        redis.set(record_name(key_id), "{")
    done = cli("keys", "export", str(file))
    assert done.code == 1
    assert f"left out: {key_id}" in done.err
    assert "is kept, because it may still have the damaged records" in done.err
    assert file.read_bytes() == good
    assert list(file.parent.iterdir()) == [file]
    new = cli("keys", "export", str(file.with_name("new")), "--json")
    assert (new.code, new.json["keys"]) == (1, 1)
    assert [one["key_id"] for one in new.json["damaged"]] == [key_id]
    assert cli("keys", "export", str(file), "--partial").code == 1
    assert file.read_bytes() != good
    for written in file.parent.iterdir():
        types = [json.loads(line)["type"] for line in written.read_text().splitlines()]
        assert types == ["head", "key", "line", "line", "end"]
    assert cli("keys", "import", str(file)).code == 0


@pytest.mark.parametrize("how", ["-", "a pipe"])
def test_a_backup_can_come_through_a_pipe(cli: Cli, running: list[int], file: Path, how: str) -> None:
    key_id = issue(cli)["key_id"]
    backup = cli("keys", "export", "-").out
    empty(cli)
    if how == "-":
        done = cli("keys", "import", "-", typed=backup)
    else:
        os.mkfifo(file)
        writing = threading.Thread(target=file.write_text, args=(backup,))
        writing.start()
        done = cli("keys", "import", str(file))
        writing.join()
    assert done.code == 0, done.err
    assert ids(cli) == [key_id]


def test_an_import_names_the_keys_that_stay_lost(cli: Cli, running: list[int], file: Path) -> None:
    issue(cli)
    cli("keys", "export", str(file))
    lost, revoked = issue(cli, "[b]late")["key_id"], issue(cli)["key_id"]
    cli("keys", "revoke", revoked)
    with redis_of(cli) as redis:
        redis.delete(*redis.keys("k:*"))
    for more in (("--dry-run",), ()):
        assert cli("keys", "import", str(file), "--json", *more).json["lost"] == {lost: "[b]late"}
    shown = cli("keys", "import", str(file)).out
    assert "Still lost: 1 keys that only the audit trail has." in shown
    assert f"{lost} [b]late" in shown
    assert revoked not in shown


def test_an_emptied_store_is_restored(cli: Cli, running: list[int], file: Path) -> None:
    kept, revoked = issue(cli)["key_id"], issue(cli)["key_id"]
    cli("keys", "revoke", revoked)
    cli("keys", "export", str(file))
    empty(cli)
    assert "forecast keys import" in cli("keys", "issue", "--partner", "acme").error()
    rehearsed = cli("keys", "import", str(file), "--dry-run", "--json").json
    assert (rehearsed["dry_run"], rehearsed["added"], rehearsed["made_ours"]) == (True, 2, True)
    assert cli("keys", "list", "--json").json == []
    done = cli("keys", "import", str(file), "--json").json
    assert done == {**rehearsed, "dry_run": False}
    assert ids(cli, "--status", "active") == [kept]
    assert ids(cli, "--status", "revoked") == [revoked]
    assert cli("keys", "issue", "--partner", "acme").code == 0


@pytest.mark.parametrize("noted", [True, False])
def test_a_damaged_identity_is_mended_and_no_usage_counts_twice(
    cli: Cli, running: list[int], file: Path, noted: bool
) -> None:
    """Also where the store does not say any more which generation its counts are of, as an older copy would not."""
    key_id = cli("keys", "issue", "--partner", "acme", "--json").json["key_id"]
    with redis_of(cli) as client:
        client.hset(
            f"u:{{{key_id}}}:2026-10", mapping={"05:forecast:answered": 7, "05:*:billable": 7, "*:*:billable": 7}
        )
        assert cli("keys", "export", str(file)).code == 0
        if not noted:
            client.delete(GENERATION)
        client.set(IDENTITY, b"\xff")
        assert IDENTITY in cli("keys", "issue", "--partner", "acme").error()
        for _ in range(2):
            done = cli("keys", "import", str(file), "--json")
            assert (done.code, done.json["usage"]) == (0, 0), done.err
            (row,) = cli("usage", "--month", "2026-10", "--json").json
            assert row["billable"] == 7
        assert client.hget(f"u:{{{key_id}}}:2026-10", "*:*:billable") == b"7"


def test_an_older_backup_does_not_bring_a_revoked_key_back(cli: Cli, running: list[int], file: Path) -> None:
    key_id = issue(cli)["key_id"]
    cli("keys", "export", str(file))
    cli("keys", "revoke", key_id)
    with redis_of(cli) as redis:
        redis.delete(record_name(key_id))
    done = cli("keys", "import", str(file))
    assert "1 keys added" in done.out
    assert "1 of them revoked, according to an audit trail" in done.out
    assert ids(cli, "--status", "revoked") == [key_id]


def test_every_command_that_finds_no_keys_reports_the_loss(cli: Cli, running: list[int]) -> None:
    key_id = issue(cli)["key_id"]
    empty(cli)
    for command in (("keys", "list"), ("log",), ("keys", "show", key_id), ("keys", "revoke", key_id)):
        for more in ((), ("--json",)):
            done = cli(*command, *more)
            assert done.code == 1
            assert "forecast: the key store has lost its identity: it was emptied, or its files are damaged" in done.err
            assert not re.search(r"No keys|Nothing was done|no key ", done.out + done.err)


def test_keys_of_a_foreign_store_are_shown_and_the_loss_is_reported(cli: Cli, running: list[int]) -> None:
    issue(cli)
    empty(cli)
    known = (cli.data / SEEN).read_bytes()
    (cli.data / SEEN).unlink()
    issue(cli, "newbie")
    (cli.data / SEEN).write_bytes(known)
    for command, word in ((("keys", "list"), "newbie"), (("log",), "issued")):
        done = cli(*command)
        assert done.code == 1
        assert word in done.out
        assert "emptied and recreated" in done.err


def test_a_wrong_file_is_refused_and_changes_nothing(cli: Cli, running: list[int], file: Path) -> None:
    missing = cli("keys", "import", str(file))
    assert missing.code == 2
    assert str(file) in missing.err.replace("\n", "")
    issue(cli)
    cli("keys", "export", str(file))
    file.write_bytes(file.read_bytes().replace(b"acme", b"acne"))
    empty(cli)
    done = cli("keys", "import", str(file), "--json")
    assert done.code == 1
    assert "the file is" in done.error()
    assert ids(cli) == []
