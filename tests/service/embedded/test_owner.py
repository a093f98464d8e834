"""The embedded servers: started if nobody runs them, used if somebody does, never of another owner."""

import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from config.settings import Settings, SettingsError
from service.embedded import owner, runtime
from service.embedded.owner import ROLES, EmbeddedServers, borrowed, embedded_roles, resolve_urls
from service.embedded.runtime import EmbeddedError, replies, runtime_folder, server_program
from tests.contract.conftest import DEBIAN
from tests.support.waiting import until


@pytest.fixture
def data(short_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A data folder whose sockets are in a folder of the tests'."""
    runtime = short_folder / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    yield tmp_path / "data"
    shutil.rmtree(runtime)


@pytest.fixture
def servers(data: Path) -> Iterator[EmbeddedServers]:
    made = EmbeddedServers(data, ROLES)
    made.ensure()
    yield made
    made.stop()


def ask(servers: EmbeddedServers, role: owner.Role, *words: str) -> object:
    with Redis.from_url(servers.url(role)) as client:
        return client.execute_command(*words)


def test_both_servers_answer_on_private_sockets_alone_as_configured(servers: EmbeddedServers, data: Path) -> None:
    info = {role: _configuration(servers, role) for role in ROLES}
    assert {found["port"] for found in info.values()} == {"0"}
    assert (info["keys"]["maxmemory-policy"], info["keys"]["appendfsync"]) == ("noeviction", "always")
    assert info["cache"]["maxmemory-policy"] == "allkeys-lfu"
    assert int(info["cache"]["maxmemory"]) > 0
    for folder in (runtime_folder(data), data / "embedded" / "keys"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert servers.owned


def test_stopping_leaves_only_the_keys_behind(servers: EmbeddedServers, data: Path) -> None:
    for role in ROLES:
        ask(servers, role, "SET", "x", "1")
    folder = runtime_folder(data)
    processes = [server.process for server in servers._servers.values() if server.process]
    servers.stop()
    assert all(process.poll() is not None for process in processes)
    assert not folder.exists()
    assert not servers.owned
    again = EmbeddedServers(data, ROLES)
    again.ensure()
    try:
        assert ask(again, "keys", "GET", "x") == b"1"
        assert ask(again, "cache", "GET", "x") is None
    finally:
        again.stop()


def _configuration(servers: EmbeddedServers, role: owner.Role) -> dict[str, str]:
    with Redis.from_url(servers.url(role), decode_responses=True) as client:
        return dict(client.config_get("*"))


def test_a_second_process_uses_the_servers_of_the_first(servers: EmbeddedServers, data: Path) -> None:
    second = EmbeddedServers(data, ROLES)
    second.ensure()
    assert not second.owned
    second.stop()
    assert ask(servers, "keys", "PING") is True


def test_a_killed_server_is_started_again_by_its_owner(servers: EmbeddedServers) -> None:
    ask(servers, "keys", "SET", "x", "1")
    assert servers.tend() == []
    process = servers._servers["keys"].process
    assert process is not None
    process.kill()
    process.wait()
    assert servers.tend() == ["keys"]
    until(lambda: replies(servers._socket("keys"), "PING", b"+PONG"))
    assert ask(servers, "keys", "GET", "x") == b"1"


def test_a_server_that_does_not_start_is_an_error_that_names_its_log(data: Path) -> None:
    broken = data / "embedded" / "keys" / "appendonlydir"
    broken.parent.mkdir(parents=True)
    broken.write_text("not a folder")
    servers = EmbeddedServers(data, ("keys",))
    with pytest.raises(EmbeddedError, match=r"server\.log"):
        servers.ensure()
    servers.stop()


def test_a_data_folder_is_written_only_if_a_server_is_needed(data: Path) -> None:
    none = EmbeddedServers(data, ())
    none.ensure()
    assert none.tend() == []
    none.stop()
    assert not data.exists()
    data.write_text("a file")
    with pytest.raises(EmbeddedError, match="cannot write the data folder"):
        EmbeddedServers(data, ROLES).ensure()


def test_a_command_borrows_servers_and_stops_what_it_started(data: Path) -> None:
    settings = Settings(data_dir=str(data), cache_url="redis://cache.test/0")
    with borrowed(settings) as urls:
        assert urls["cache"] == "redis://cache.test/0"
        with Redis.from_url(urls["keys"]) as client:
            assert client.ping()
    assert not runtime_folder(data).exists()
    assert resolve_urls(settings, EmbeddedServers(data, ("keys",)))["keys"].startswith("unix:///")


def test_embedded_is_refused_where_the_installation_says_so(data: Path) -> None:
    """A forgotten URL in a container is an error, not an empty key store."""
    settings = Settings(data_dir=str(data), embedded_allowed=False, cache_url="redis://cache.test/0")
    with pytest.raises(SettingsError, match="FORECAST_KEYS_URL must be set"):
        embedded_roles(settings)
    assert embedded_roles(Settings(data_dir=str(data))) == ROLES


def test_a_socket_path_that_is_too_long_is_an_error_that_says_what_to_do(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with pytest.raises(EmbeddedError, match="XDG_RUNTIME_DIR"):
        EmbeddedServers(data, ROLES).url("keys")


_NOBODY = 65534


def plant(planted: str, folder: Path) -> None:
    """What another user could leave at `folder`."""
    match planted:
        case "open folder":
            folder.mkdir()
            folder.chmod(0o755)
        case "file":
            folder.write_text("")
        case "link":
            folder.symlink_to(folder.parent)
        case "dangling link":
            folder.symlink_to(folder.parent / "none")
        case "another user's":
            if os.getuid():
                pytest.skip("only root can give a folder away")
            folder.mkdir(mode=0o700)
            os.chown(folder, _NOBODY, _NOBODY)


def unplant(folder: Path) -> None:
    folder.rmdir() if folder.is_dir() and not folder.is_symlink() else folder.unlink()


PLANTED = ["open folder", "file", "link", "dangling link", "another user's"]


@pytest.mark.parametrize("runtime", ["XDG_RUNTIME_DIR", "temporary folder"])
@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_folder_is_refused(
    planted: str, runtime: str, data: Path, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any user may write to the temporary folder. A folder there could hold another user's server, for root too."""
    if runtime == "temporary folder":
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        monkeypatch.setattr("tempfile.gettempdir", lambda: str(short_folder))
    folder = runtime_folder(data)
    plant(planted, folder)
    try:
        with pytest.raises(EmbeddedError, match=f"{folder} .*remove it"):
            EmbeddedServers(data, ROLES)
    finally:
        unplant(folder)


@pytest.mark.parametrize("planted", PLANTED)
def test_a_folder_that_is_planted_at_the_last_moment_is_refused(planted: str, data: Path) -> None:
    servers = EmbeddedServers(data, ROLES)
    plant(planted, runtime_folder(data))
    try:
        with pytest.raises(EmbeddedError, match="remove it"):
            servers.ensure()
        assert not any(server.process for server in servers._servers.values())
    finally:
        unplant(servers._own_runtime)
        servers.stop()


def test_a_folder_in_which_others_can_rename_is_not_used(
    data: Path, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_to_all = short_folder / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(open_to_all))
    assert runtime_folder(data).parent == Path(tempfile.gettempdir())
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(open_to_all))
    with pytest.raises(EmbeddedError, match=f"{open_to_all}.*XDG_RUNTIME_DIR"):
        runtime_folder(data)
    open_to_all.rmdir()


def test_what_the_lock_names_is_believed_only_where_its_writer_owns_it(
    servers: EmbeddedServers, data: Path, short_folder: Path
) -> None:
    """Root uses servers that the service's user runs, and not those of anybody else."""
    if os.getuid():
        pytest.skip("only root can give a folder away")
    others = short_folder / "others"
    others.mkdir(mode=0o700)
    lock = data / "embedded.lock"
    lock.write_text(str(others))
    os.chown(others, _NOBODY, _NOBODY)
    second = EmbeddedServers(data, ROLES)
    assert second._runtime == second._own_runtime
    os.chown(lock, _NOBODY, _NOBODY)
    assert second._runtime == others
    others.rmdir()


def test_a_server_on_the_path_is_used_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "find_spec", lambda _: None)
    found = shutil.which("valkey-server") or shutil.which(DEBIAN)
    if found is None:
        pytest.skip(f"neither valkey-server nor {DEBIAN} is on the PATH")
    assert server_program() == found
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EmbeddedError, match="pip install"):
        server_program()


def test_what_is_no_server_does_not_answer(short_folder: Path) -> None:
    path = short_folder / "silent"
    assert not replies(str(path), "PING", b"+PONG")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        assert not replies(str(path), "PING", b"+PONG")
