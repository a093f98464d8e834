"""forecast keys where the store is unreachable, hangs, or belongs to another data folder."""

import os
import signal
from pathlib import Path

import pytest

from service.cli import stores
from service.cli.keys.opened import repeatable
from service.embedded.owner import EmbeddedServers
from service.keys import store as key_store
from service.keys.record import ApiKey
from service.keys.store import KeyStore
from service.redis.errors import StoreUnavailable
from tests.service.conftest import Cli, issue


@pytest.mark.parametrize("more", [{}, {"keys_pepper": "a pepper that is long enough"}], ids=["its own", "configured"])
def test_a_command_that_only_reads_writes_nothing_to_a_data_folder(cli: Cli, short: Path, more: dict[str, str]) -> None:
    """The folder may be the wrong one, whether or not the store answers."""
    elsewhere = Cli(short / "elsewhere", more)
    server = EmbeddedServers(elsewhere.data, ("keys",))
    server.ensure()
    key_id = issue(elsewhere)["key_id"]
    commands = (("keys", "list"), ("log",), ("keys", "show", key_id), ("keys", "revoke", key_id))
    here = {"keys_url": server.url("keys"), **more}
    for command in commands:
        assert key_id in cli(*command, **here).out
    server.stop()
    for command in commands:
        assert cli(*command, **here).code == 1
    assert not cli.data.exists()


@pytest.mark.parametrize("by_url", [True, False], ids=["its own", "embedded"])
def test_a_store_that_hangs_is_named_after_a_moment_and_given_up_after_five(
    cli: Cli, running: list[int], monkeypatch: pytest.MonkeyPatch, by_url: bool
) -> None:
    monkeypatch.setattr(stores, "_NOTICE_SECONDS", 0.1)
    assert stores._PATIENCE_SECONDS == 5
    monkeypatch.setattr(stores, "_PATIENCE_SECONDS", 1.2)
    (server,) = running
    more = {"keys_url": EmbeddedServers(cli.data, ("keys",)).url("keys")} if by_url else {}
    os.kill(server, signal.SIGSTOP)
    try:
        done = cli("keys", "issue", "--partner", "acme", **more)
    finally:
        os.kill(server, signal.SIGCONT)
    assert done.code == 1
    notice, error = done.err.splitlines()
    assert notice == "waiting for the key store"
    assert error.startswith("forecast: the key store does not answer (waited 1.2 s). Nothing was changed.")


def test_a_store_that_hangs_meanwhile_leaves_open_whether_a_key_was_revoked(
    cli: Cli, running: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    key_id = issue(cli)["key_id"]
    (server,) = running
    monkeypatch.setattr(key_store, "_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setenv("FORECAST_DATA_DIR", str(cli.data))

    async def revoke(store: KeyStore) -> ApiKey:
        os.kill(server, signal.SIGSTOP)
        return await store.revoke(key_id)

    try:
        with pytest.raises(StoreUnavailable, match="the change may be done: run this again, which is harmless"):
            repeatable(revoke)
    finally:
        os.kill(server, signal.SIGCONT)
