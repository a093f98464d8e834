"""`forecast keys repair` on files that a real server made, and that were damaged since."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from service.embedded import repair as files
from service.embedded.owner import EmbeddedServers
from service.embedded.runtime import EmbeddedError
from tests.support.instance import environment, forecast_here
from tests.support.waiting import until


@pytest.fixture
def env(short: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    return environment(short / "data")


def run(env: dict[str, str], *arguments: str) -> tuple[int, Any]:
    done = forecast_here(env, "keys", *arguments, "--json")
    return done.returncode, json.loads(done.stdout)


def issue(env: dict[str, str], partner: str) -> str:
    code, said = run(env, "issue", "--partner", partner)
    assert code == 0
    return str(said["key_id"])


def ids(env: dict[str, str]) -> set[str]:
    code, said = run(env, "list")
    assert code == 0, said
    return {key["key_id"] for key in said}


def folder_of(env: dict[str, str]) -> Path:
    return Path(env["FORECAST_DATA_DIR"]) / "embedded" / "keys" / "appendonlydir"


INCREMENT, BASE, MANIFEST = "appendonly.aof.1.incr.aof", "appendonly.aof.1.base.rdb", "appendonly.aof.manifest"


def zeros(folder: Path) -> None:
    with (folder / INCREMENT).open("ab") as stream:
        stream.write(bytes(4096))


def cut(folder: Path) -> None:
    """In the record of the last key."""
    whole = (folder / INCREMENT).read_bytes()
    (folder / INCREMENT).write_bytes(whole[: whole.rindex(b'"partner":"third"')])


def holed(folder: Path) -> None:
    """In the record of the second key."""
    whole = (folder / INCREMENT).read_bytes()
    at = whole.index(b'"partner":"second"', whole.index(b'"partner":"second"') + 1) - 60
    (folder / INCREMENT).write_bytes(whole[:at] + bytes(200) + whole[at + 200 :])


DAMAGES: tuple[tuple[Callable[[Path], object], str, frozenset[str]], ...] = (
    (zeros, "4,096 bytes", frozenset()),
    (cut, "appendonly.aof.1.incr.aof: ", frozenset({"third"})),
    (holed, "after 2", frozenset({"second"})),
    (lambda folder: (folder / MANIFEST).unlink(), "manifest", frozenset()),
    (lambda folder: (folder / MANIFEST).write_text("file x seq"), "manifest", frozenset()),
    (lambda folder: (folder / BASE).unlink(), "no data is lost", frozenset()),
    (lambda folder: (folder / BASE).write_bytes(b""), "no data is lost", frozenset()),
)


@pytest.mark.parametrize(("damage", "words", "lost"), DAMAGES)
def test_what_can_be_read_is_kept_and_what_is_lost_is_named(
    env: dict[str, str], damage: Callable[[Path], object], words: str, lost: frozenset[str]
) -> None:
    """Nothing is changed before --yes, nothing is there to repair afterwards, and a copy stays of what was there."""
    keys = {partner: issue(env, partner) for partner in ("first", "second", "third")}
    folder = folder_of(env)
    damage(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, said = run(env, "repair")
    assert (code, said["repaired"], said["copy"], said["restore"]) == (4, False, None, False)
    assert words in " ".join(said["damage"])
    assert set(said["lost_keys"]) == {keys[partner] for partner in lost}
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    code, said = run(env, "repair", "--yes")
    assert (code, said["repaired"]) == (0, True)
    assert {path.name: path.read_bytes() for path in Path(said["copy"]).iterdir()} == before
    assert ids(env) == {key for partner, key in keys.items() if partner not in lost}
    assert run(env, "repair")[0] == 0
    issue(env, "fourth")


def test_a_missing_increment_is_said_to_be_lost(env: dict[str, str]) -> None:
    issue(env, "first")
    (folder_of(env) / INCREMENT).unlink()
    code, said = run(env, "repair", "--yes")
    assert (code, "is missing, with the changes in it" in said["damage"][0]) == (0, True)
    assert forecast_here(env, "keys", "list").returncode == 1  # the store is empty, and says so


@pytest.fixture
def rewritten(env: dict[str, str]) -> dict[str, str]:
    """A key store whose file was rewritten since its first key was issued; and a backup of it."""
    issue(env, "first")
    assert forecast_here(env, "keys", "export", f"{env['FORECAST_DATA_DIR']}/backup").returncode == 0
    servers = EmbeddedServers(Path(env["FORECAST_DATA_DIR"]), ("keys",))
    servers.ensure()
    with Redis.from_url(servers.url("keys")) as client:
        client.bgrewriteaof()
        until(lambda: (folder_of(env) / "appendonly.aof.2.base.rdb").exists())
        until(lambda: client.info("persistence")["aof_rewrite_in_progress"] == 0)
    servers.stop()
    return env


def test_without_the_base_a_backup_is_needed_and_newer_changes_stay(rewritten: dict[str, str]) -> None:
    assert run(rewritten, "repair")[0] == 0  # the new increment is empty
    second = issue(rewritten, "second")
    (first,) = ids(rewritten) - {second}
    assert forecast_here(rewritten, "keys", "revoke", first).returncode == 0
    (folder_of(rewritten) / "appendonly.aof.2.base.rdb").unlink()
    assert "forecast keys repair" in forecast_here(rewritten, "keys", "list").stderr
    code, said = run(rewritten, "repair", "--yes")
    assert (code, said["restore"]) == (0, True)
    done = forecast_here(rewritten, "keys", "import", f"{rewritten['FORECAST_DATA_DIR']}/backup")
    assert done.returncode == 0, done.stderr
    assert ids(rewritten) == {first, second}
    (found,) = (key for key in run(rewritten, "list")[1] if key["key_id"] == first)
    assert found["status"] == "revoked"


def test_files_that_are_in_use_are_not_repaired(env: dict[str, str]) -> None:
    assert run(env, "repair")[0] == 1
    issue(env, "first")
    servers = EmbeddedServers(Path(env["FORECAST_DATA_DIR"]), ("keys",))
    servers.ensure()
    try:
        code, said = run(env, "repair", "--yes")
    finally:
        servers.stop()
    assert (code, "stop it first" in said["error"]["message"]) == (1, True)
    assert run({**env, "FORECAST_KEYS_URL": "redis://localhost"}, "repair")[0] == 1


def test_what_cannot_be_loaded_is_not_put_in_place(env: dict[str, str]) -> None:
    issue(env, "first")
    zeros(folder_of(env))
    before = {path.name: path.read_bytes() for path in folder_of(env).iterdir()}

    def refuse() -> None:
        raise EmbeddedError("it cannot be read")

    with pytest.raises(EmbeddedError, match="cannot be read"):
        files.repair(folder_of(env).parent, files.examine(folder_of(env).parent), refuse)
    assert {path.name: path.read_bytes() for path in folder_of(env).iterdir()} == before


class Interrupted(BaseException):
    """As if the process was killed: nothing is tidied up."""


@pytest.mark.parametrize(
    ("step", "damage"),
    [
        ("sync_tree", zeros),
        ("replacing", zeros),
        ("write_atomically", zeros),
        ("write_atomically", lambda folder: (folder / MANIFEST).unlink()),
    ],
)
def test_an_interrupted_repair_is_finished(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch, step: str, damage: Callable[[Path], object]
) -> None:
    first = issue(env, "first")
    folder = folder_of(env)
    damage(folder)

    with monkeypatch.context() as broken:

        def interrupt(*_: object) -> None:
            broken.setattr(shutil, "copytree", lambda *_, **__: None)
            raise Interrupted

        broken.setattr(files, step, interrupt)
        with pytest.raises(Interrupted):
            files.repair(folder.parent, files.examine(folder.parent), lambda: None)
    code, said = run(env, "list")
    assert code == 1 or {key["key_id"] for key in said} == {first}
    assert run(env, "repair", "--yes")[0] == 0
    assert ids(env) == {first}


@pytest.mark.parametrize(
    ("damage", "named"),
    [(zeros, "appendonly.aof.1.incr.aof"), (lambda folder: (folder / MANIFEST).unlink(), "manifest")],
)
def test_a_damaged_store_does_not_start_and_the_error_names_the_damage_and_the_command(
    env: dict[str, str], damage: Callable[[Path], object], named: str
) -> None:
    issue(env, "first")
    damage(folder_of(env))
    done = forecast_here(env, "keys", "list")
    reported = [words in done.stderr for words in (named, "forecast keys repair", "check-aof", "is dropped")]
    assert (done.returncode, reported) == (1, [True, True, False, False]), done.stderr


@pytest.mark.parametrize("dropped", [5, 300])
def test_a_cut_end_that_a_start_drops_is_reported(env: dict[str, str], dropped: int) -> None:
    """A server starts without the last change, as after a crash, and later examinations find no damage."""
    revoked = issue(env, "first")
    assert run(env, "revoke", revoked)[0] == 0
    assert forecast_here(env, "keys", "list").stderr == ""
    increment = folder_of(env) / INCREMENT
    increment.write_bytes(increment.read_bytes()[:-dropped])
    warning = forecast_here(env, "keys", "list").stderr
    assert f"the last change in {increment} is incomplete, and is dropped (" in warning
    assert "`forecast keys import`" in warning
    assert forecast_here(env, "keys", "list").stderr == ""
