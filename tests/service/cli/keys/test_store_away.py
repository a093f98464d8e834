"""forecast keys where the store is unreachable, hangs, or belongs to another data folder."""

import os
import signal
from pathlib import Path

import pytest

from service.embedded.owner import EmbeddedServers
from service.keys import store as key_store
from tests.service.conftest import Cli, issue


@pytest.mark.parametrize("more", [{}, {"keys_pepper": "a pepper that is long enough"}], ids=["its own", "configured"])
def test_a_command_that_only_reads_writes_nothing_to_a_data_folder(cli: Cli, short: Path, more: dict[str, str]) -> None:
    """The folder may be the wrong one, whether or not the store answers."""
    elsewhere = Cli(short / "elsewhere", more)
    server = EmbeddedServers(elsewhere.data, ("keys",))
    server.ensure()
    key_id = issue(elsewhere)["key_id"]
    commands = (("list",), ("log",), ("show", key_id), ("revoke", key_id))
    here = {"keys_url": server.url("keys"), **more}
    for command in commands:
        assert key_id in cli("keys", *command, **here).out
    server.stop()
    for command in commands:
        assert cli("keys", *command, **here).code == 1
    assert not cli.data.exists()


def test_a_store_that_hangs_leaves_open_whether_a_key_was_revoked(
    cli: Cli, running: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    key_id = issue(cli)["key_id"]
    (server,) = running
    monkeypatch.setattr(key_store, "_TIMEOUT_SECONDS", 0.1)
    os.kill(server, signal.SIGSTOP)
    try:
        done = cli("keys", "revoke", key_id, keys_url=EmbeddedServers(cli.data, ("keys",)).url("keys"))
    finally:
        os.kill(server, signal.SIGCONT)
    assert done.code == 1
    assert done.error().endswith("the change may be done: run this again, which is harmless")
