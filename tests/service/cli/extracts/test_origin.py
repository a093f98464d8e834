"""What commands say of the data folder that they act on, and of who published a release, whence and how."""

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from service.base.whoami import whoami
from tests.service.conftest import Cli
from tests.support.drops import people, write_drop
from warehouse.releases.catalog import Catalog


def other_drop(folder: Path) -> Path:
    return write_drop(folder, population=[people("36436", 2023, 784)])


def test_every_command_says_which_data_folder_it_acts_on(cli: Cli, release: str, tmp_path: Path) -> None:
    data, other = str(cli.data), str(other_drop(tmp_path / "other"))
    second = cli("extracts", "publish", other)
    said = [cli("extracts", "check", other), second, cli("extracts", "rollback"), cli("extracts", "rollback")]
    assert [done.err.count(f"data folder {data}\n") for done in said] == [1, 1, 1, 1]
    assert second.out.count("\n") == 1
    for shown in ("list", "show"):
        assert data in cli("extracts", shown).out.replace("\n", "")
    for command in (("check", other), ("publish", other), ("rollback",), ("show",), ("retire", "--keep", "5")):
        assert cli("extracts", *command, "--json").json["data_folder"] == data
    assert {one["data_folder"] for one in cli("extracts", "list", "--json").json} == {data}
    assert f"data folder {data}\n" in cli("extracts", "retire", "--keep", "5").err


def test_an_empty_data_folder_is_named(cli: Cli) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cli.data.parent)
        assert str(cli.data) in cli("extracts", "list", data_dir="data").out.replace("\n", "")
        assert str(cli.data) in cli("extracts", "show", data_dir="data").error()
        assert str(cli.data) in cli("extracts", "rollback", data_dir="data").error()


def test_a_release_says_who_published_it_whence_and_how(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    by_hand = write_drop(tmp_path / "it's\x1b[2J")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert cli("extracts", "publish", by_hand.name).code == 0
    dropped = other_drop(tmp_path / "inbox" / "2026-10")
    (dropped / "_SUCCESS").touch()
    assert cli("extracts", "watch", str(dropped.parent), "--once").code == 0
    listed = cli("extracts", "list", "--json").json
    origins = {one["current"]: one["origin"] for one in listed}
    shown = f"{tmp_path}/it's\\u001b[2J"
    members = {"by": whoami(), "host": socket.gethostname()}
    assert origins[False] == {**members, "paths": [shown], "via": "command", "delivered": None}
    delivered = origins[True].pop("delivered")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(delivered)) < timedelta(minutes=10)
    assert origins[True] == {**members, "paths": [str(dropped)], "via": "inbox"}
    manifest = cli("extracts", "show", "--json").json["manifest"]
    assert manifest["origin"] == origins[True] | {"delivered": delivered}
    for text in (cli("extracts", "list").out, cli("extracts", "show").out):
        flat = "".join(text.split())
        assert "".join(f"{whoami()}, from {dropped}, through the inbox".split()) in flat


def test_many_paths_are_cut(cli: Cli, tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop")
    paths = [str(path) for path in sorted(drop.iterdir())] * 10
    assert cli("extracts", "publish", *paths).code == 0
    kept = cli("extracts", "show", "--json").json["manifest"]["origin"]["paths"]
    assert len(kept) == 21
    assert kept[-1] == "and 20 more"


def test_the_pointer_says_who_moved_it_last(cli: Cli, release: str, tmp_path: Path) -> None:
    assert cli("extracts", "publish", str(other_drop(tmp_path / "other"))).code == 0
    assert cli("extracts", "rollback").out.strip() == release
    shown = cli("extracts", "show", "--json").json
    assert shown["switched_by"] == whoami()
    assert "".join(f"by {whoami()}".split()) in "".join(cli("extracts", "show").out.split())
    # as an earlier version wrote them
    without(cli.data / "current.json", "by")
    without(Catalog(cli.data).folder(release) / "manifest.json", "origin")
    shown = cli("extracts", "show", "--json").json
    assert (shown["switched_by"], shown["manifest"]["origin"]) == (None, None)
    assert [one["origin"] for one in cli("extracts", "list", "--json").json if one["current"]] == [None]
    assert cli("extracts", "show").code == cli("extracts", "list").code == 0


def without(path: Path, member: str) -> None:
    kept = msgspec.json.decode(path.read_bytes())
    kept.pop(member)
    path.write_bytes(msgspec.json.encode(kept))
