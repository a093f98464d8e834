"""forecast keys, on embedded servers that are started for one command and stopped after it."""

import re
from datetime import datetime

import pytest

from service.cli.keys import commands
from service.embedded.runtime import runtime_folder
from tests.service.conftest import Cli, ids, issue, servers_of
from tests.support.key_store import any_key, parsed

VIEW = {"key_id", "partner", "label", "status", "created_at", "expires_at", "revoked_at", "terms"}
VIEW |= {"test", "rotated_from", "rotated_to", "not_before", "suspended", "plan", "last_used"}


def test_a_key_is_printed_alone(cli: Cli, running: list[int]) -> None:
    done = cli("keys", "issue", "--partner", "acme")
    assert done.code == 0
    parts = parsed(done.out.strip())
    assert done.out == f"{done.out.strip()}\n"
    assert f"Key {parts.key_id} for acme. It is not shown again:" in done.err


def test_a_key_as_json_has_the_key_and_what_is_known_of_it(cli: Cli, running: list[int]) -> None:
    issued = issue(cli, "acme", "--label", "batch", "--expires", "90d")
    assert set(issued) == VIEW | {"key"}
    parts = parsed(issued["key"])
    assert parts.key_id == issued["key_id"]
    assert (issued["partner"], issued["label"], issued["status"]) == ("acme", "batch", "active")
    lifetime = datetime.fromisoformat(issued["expires_at"]) - datetime.fromisoformat(issued["created_at"])
    assert abs(lifetime.total_seconds() - 90 * 86_400) < 60


def test_keys_survive_the_server_that_was_started_for_them(cli: Cli) -> None:
    first = issue(cli)["key_id"]
    assert servers_of(cli.data) == []
    assert not runtime_folder(cli.data).exists()
    assert ids(cli) == [first]
    assert servers_of(cli.data) == []


def test_a_running_server_is_used_and_left_running(cli: Cli, running: list[int]) -> None:
    key_id = issue(cli)["key_id"]
    assert ids(cli) == [key_id]
    assert servers_of(cli.data) == running
    assert len(running) == 1


def test_list_shows_every_key_and_no_secret(cli: Cli, running: list[int]) -> None:
    issued = issue(cli, "acme", "--label", "batch")
    listed = cli("keys", "list", "--json")
    assert [set(view) for view in listed.json] == [VIEW]
    shown = cli("keys", "list")
    for word in (issued["key_id"], "acme", "batch", "active", "never"):
        assert word in shown.out
    assert not re.search(r"[0-9a-f]{64}|phf_live", listed.out + shown.out)


def test_list_can_be_narrowed(cli: Cli, running: list[int]) -> None:
    ours = issue(cli, "acme", "--label", "Nightly batch")["key_id"]
    theirs = issue(cli, "other", "--areas", "forecast", "--expires", "12h")["key_id"]
    revoked = issue(cli, "acme", "--areas", "forecast")["key_id"]
    assert cli("keys", "revoke", revoked).code == 0
    for options, found in (
        (("--partner", "other"), {theirs}),
        (("--status", "active"), {ours, theirs}),
        (("--partner", "acme", "--status", "revoked"), {revoked}),
        (("--status", "expired"), set()),
        (("--area", "forecast"), {ours, theirs, revoked}),
        (("--area", "projects"), {ours}),
        (("--label", "BATCH"), {ours}),
        (("--expires-within", "1d"), {theirs}),
        (("--expires-within", "1h"), set()),
    ):
        assert set(ids(cli, *options)) == found, options
    assert cli("keys", "list", "--partner", "unknown").out == "No keys.\n"


def test_a_name_is_shown_as_it_was_given(cli: Cli, running: list[int]) -> None:
    for name in ("[bold]A[/bold]", "[/]", ":heart:"):
        assert name in cli("keys", "issue", "--partner", name).err
        assert name in cli("keys", "list").out
    key_id = issue(cli, "[/red]")["key_id"]
    assert cli("keys", "revoke", key_id).out == f"Revoked {key_id} of [/red].\n"


def test_at_a_terminal_revoking_names_the_key_and_its_partner_and_asks(
    cli: Cli, running: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    key_id = issue(cli, "acme", "--label", "batch")["key_id"]
    monkeypatch.setattr(commands, "_is_at_terminal", lambda: True)
    declined = cli("keys", "revoke", key_id, typed="n\n")
    assert declined.code == 1
    assert f"Revoke key {key_id} (batch) of acme for good? Its requests will get a 401. [y/N]" in declined.err
    assert cli("keys", "show", key_id, "--json").json["status"] == "active"
    assert cli("keys", "revoke", key_id, typed="y\n").code == 0
    again = cli("keys", "revoke", key_id)  # nothing to ask
    assert again.code == 0
    other = issue(cli)["key_id"]
    assert cli("keys", "revoke", other, "--yes").out == f"Revoked {other} of acme.\n"


def test_a_revoked_key_stays_revoked(cli: Cli, running: list[int]) -> None:
    key_id = issue(cli)["key_id"]
    first = cli("keys", "revoke", key_id, "--json").json
    assert set(first) == VIEW
    assert first["status"] == "revoked"
    assert cli("keys", "revoke", key_id, "--json").json == first


@pytest.mark.parametrize("key_id", ["acme", "0B1zQmX4ktL", "0B1zQmX4ktL*", "k:control"])
def test_a_wrong_id_is_reported_before_the_store_is_called(cli: Cli, key_id: str) -> None:
    for more in ((), ("--json",)):
        done = cli("keys", "revoke", key_id, *more)
        assert done.code == 1
        assert done.error() == f"{key_id!r} is not a key id; `forecast keys list` shows them"
        assert bool(done.out) is bool(more)
    assert not cli.data.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("KEY",),
        ("--KEY",),
        ("keys", "KEY"),
        ("keys", "revoke", " KEY"),
        ("keys", "revoke", "0B1zQmX4ktLw", "KEY"),
        ("keys", "revoke", "--KEY"),
        ("keys", "extend", "0B1zQmX4ktLw", "--expires", "KEY"),
        ("keys", "rotate", "0B1zQmX4ktLw", "--overlap", "KEY"),
        ("keys", "list", "--status", "KEY"),
        ("keys", "list", "--area", "KEY"),
        ("keys", "import", "KEY"),
        ("keys", "issue", "--partner", "KEY"),
        ("keys", "issue", "--partner", "acme", "--label", "my KEY"),
        ("usage", "KEY"),
        ("usage", "--partner", "KEY"),
        ("extracts", "show", "KEY"),
    ],
    ids=" ".join,
)
def test_a_key_is_not_repeated_wherever_it_was_put(cli: Cli, running: list[int], arguments: tuple[str, ...]) -> None:
    key, parts = any_key()
    for more in ((), ("--json",)):
        done = cli(*(word.replace("KEY", key) for word in arguments), *more)
        assert done.code in (1, 2)
        assert done.err
        assert parts.secret not in done.out + done.err.replace("\n", "")


def test_adopting_is_asked_about(cli: Cli, running: list[int]) -> None:
    issue(cli)
    cli.settings["keys_pepper"] = "another pepper altogether"
    for typed in ("n\n", ""):
        done = cli("keys", "adopt-store", typed=typed)
        assert done.code == 1
        assert "Aborted!" in done.err
    assert cli("keys", "issue", "--partner", "acme").code == 1
    assert cli("keys", "adopt-store", typed="y\n").code == 0
    assert cli("keys", "issue", "--partner", "acme").code == 0


def test_a_lost_pepper_is_missed_and_not_replaced(cli: Cli, running: list[int]) -> None:
    key_id = issue(cli)["key_id"]
    kept = (cli.data / "pepper").rename(cli.data / "kept")
    for words in (("issue", "--partner", "acme"), ("list",)):
        done = cli("keys", *words)
        assert done.code == 1
        assert "made with another pepper: set FORECAST_KEYS_PEPPER (or restore the file `pepper`" in done.err
        assert not (cli.data / "pepper").exists()
    kept.rename(cli.data / "pepper")
    assert issue(cli)["status"] == "active"
    (cli.data / "pepper").unlink()
    # a new file would hide the loss, where the store could not be told
    assert cli("keys", "adopt-store", "--yes", keys_url="redis://127.0.0.1:1").code == 1
    assert not (cli.data / "pepper").exists()
    assert cli("keys", "adopt-store", "--yes").code == 0
    assert issue(cli)["status"] == "active"
    assert ids(cli, "--status", "void").count(key_id) == 1
