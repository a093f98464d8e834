"""Nothing that a client wrote commands a terminal or forges a line, by whichever way it reaches a command.

The shipped program runs in processes of its own, on a world in which all that others can write is hostile.
"""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import pyarrow as pa
import pytest

from config.metadata import names
from service.embedded.owner import EmbeddedServers
from service.keys import pepper
from service.keys.store import KeyStore
from service.operators.actions import Purged
from service.redis.primary import Primary, open_store
from tests.service.cli.test_main import COMMANDS, LEAVES
from tests.support import launcher
from tests.support.drops import people, write_drop, write_table
from tests.support.foreign_server import answering
from tests.support.instance import environment, forecast
from tests.support.listener import Listener, listening
from tests.support.overviews import overview
from tests.support.upstream import point, upload
from warehouse.releases.catalog import Catalog
from warehouse.releases.instances import InstanceFile, InstanceRecord
from warehouse.upstream.documents import Beat, beat_name, sealed
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import ReleasesStore

HOSTILE = "x\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u200b\x7f\U000e0041[/][bold][link=http://h]\nforged"
NOT_TEXT = HOSTILE + "\udcff"  # in arguments, the environment and names of files
KEY_ID = "0B1zQmX4ktLw"
# Colours of ours, and the line that shows progress: no links, no hidden text, no other movement.
_COLOURS = re.compile(r"\x1b\[(?:(?:[0-79;]|3[0-9])*m|\?25[hl]|2K|1A)|\r")


def harmless(text: str, *, colours: bool = False) -> None:
    text = _COLOURS.sub("", text) if colours else text
    assert [line for line in text.split("\n") if not line.isprintable()] == []
    assert not re.search(r"^forged", text, re.MULTILINE)
    assert "Traceback" not in text, text[-1500:]


def run(env: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    done = forecast(env, *arguments)
    harmless(done.stdout)
    harmless(done.stderr)
    if "--json" in arguments and done.stdout:
        for document in _documents(done.stdout):
            json.dumps(document)
    return done


def _documents(text: str) -> Iterator[Any]:
    """The documents of JSON, one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = decoder.raw_decode(text, at)
        yield document


def made_hostile(struct: Any) -> Any:
    """`struct` with every text hostile that its type lets be any text."""
    tree = msgspec.to_builtins(struct)

    def leaves(node: Any) -> Iterator[tuple[Any, Any]]:
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            if isinstance(node[key], str):
                yield node, key
            elif isinstance(node[key], dict | list):
                yield from leaves(node[key])

    for node, key in leaves(tree):
        before, node[key] = node[key], HOSTILE
        try:
            msgspec.convert(tree, type(struct))
        except msgspec.ValidationError:
            node[key] = before
    return tree


class World:
    """A data folder, a store of releases, a key store, an inbox, a drop and an instance, all of them hostile."""

    def __init__(self, folder: Path, release: Path, listener: Listener) -> None:
        self.data, self.folder = folder / "data", folder
        shutil.copytree(release, self.data)
        self.env = environment(self.data, attribution=HOSTILE, operator_write_token="t" * 40)
        self.env["SUDO_USER"] = NOT_TEXT
        self.listener = listener
        self.drop = folder / HOSTILE.replace("/", "_")
        self._write_drop()
        self.inbox = folder / "inbox"
        self._hold()
        self.releases = f"file://{folder / 'bucket'}"
        self.in_store = self._write_store()
        self.key_id = KEY_ID

    def record(self) -> InstanceRecord:
        here = socket.gethostname()
        return InstanceRecord(f"a{HOSTILE}", 1, here, self.listener.url, (HOSTILE,), f"redis://{HOSTILE}:1")

    def _write_drop(self) -> None:
        write_drop(self.drop, population=None)
        name = HOSTILE.replace("/", "_")
        row = {**people("36436", 2023, 1), HOSTILE: 1, "tot_population": HOSTILE}
        write_table(self.drop / f"{name}.parquet", [row], {HOSTILE: pa.int8(), "tot_population": pa.string()})
        (self.drop / f"{name}.txt").write_text(HOSTILE)

    def _hold(self) -> None:
        name = self.drop.name
        write_drop(self.inbox / name, population=[people("36436", 2023, 900)])
        (self.inbox / name / "_SUCCESS").touch()
        env = self.env | {"FORECAST_INBOX": str(self.inbox), "FORECAST_LIMITS": "total-drift=0.01"}
        run({**env, "FORECAST_LOG_FORMAT": "text"}, "extracts", "watch", "--once", "--json")

    def _write_store(self) -> str:
        store = ReleasesStore(open_objects(self.releases))
        catalog = Catalog(self.data)
        manifest = catalog.current()
        upload(store, self.data)
        point(store, manifest.id)
        beat = Beat(instance=self.record(), serial=0, ready=(), problem=HOSTILE, folder=HOSTILE)
        folder = Path(self.releases.removeprefix("file://"))
        forged = folder / beat_name("0a0a0a0a")
        forged.parent.mkdir(parents=True, exist_ok=True)
        forged.write_bytes(sealed(beat))
        (folder / "instances" / f"{HOSTILE.replace('/', '_')}.json").write_text(HOSTILE)
        return manifest.id

    def issue(self, url: str) -> None:
        """A key whose partner and label only a forged record can have."""
        secret = pepper.obtain(None, self.data)

        async def issue() -> str:
            redis = open_store("key store", Primary(url), timeout=3.0)
            try:
                _, key = await KeyStore(redis, secret, self.data).issue(HOSTILE, HOSTILE, None)
                return key.key_id
            finally:
                await redis.stop()

        self.key_id = asyncio.run(issue())


@pytest.fixture(scope="module")
def world(made: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with listening() as listener:
        world = World(tmp_path_factory.mktemp("h"), made[0], listener)
        listener.answer("/overview", made_hostile(overview()))
        listener.answer("/caches/purge", Purged(1, 1, (HOSTILE,), (HOSTILE,)))
        listener.answer("/log/sampling", {"rate": 0.5})
        line = {"time": HOSTILE, "request_id": HOSTILE, "status": 200, "method": HOSTILE, "path": HOSTILE}
        line |= {"outcome": HOSTILE, "milliseconds": 1.0, "pid": 1, "partner": HOSTILE, "query": HOSTILE}
        listener.answer("/requests/a1", [line])
        servers = EmbeddedServers(world.data, ("keys", "cache"))
        servers.ensure()
        file = InstanceFile(world.data, "0a0a0a0a")
        file.write(world.record())
        try:
            world.issue(servers.url("keys"))
            yield world
        finally:
            file.close()
            servers.stop()


def words(world: World) -> dict[tuple[str, ...], Sequence[str]]:
    """Arguments for every command, so that it shows what there is."""
    held, backup = HOSTILE.replace("/", "_"), str(world.folder / "backup")
    return dict.fromkeys(LEAVES, ()) | {
        ("serve",): ["--host", HOSTILE],
        ("top",): ["--count", "1"],
        ("requests", "find"): ["a1"],
        ("requests", "sample"): ["1%"],
        ("cache", "explain"): [f"zip_code={HOSTILE}"],
        ("cache", "purge"): ["--yes"],
        ("extracts", "rollback"): [HOSTILE],
        ("extracts", "diff"): [world.in_store],
        ("extracts", "retire"): [HOSTILE],
        ("extracts", "watch"): [str(world.inbox), "--once"],
        ("extracts", "held"): ["--inbox", str(world.inbox)],
        ("extracts", "approve"): [held, "--inbox", str(world.inbox), "--reason", HOSTILE],
        ("extracts", "discard"): [held, "--inbox", str(world.inbox), "--reason", HOSTILE],
        ("extracts", "publish"): [str(world.drop)],
        ("extracts", "check"): [str(world.drop)],
        ("keys", "show"): [world.key_id],
        ("keys", "export"): [backup],
        ("keys", "import"): [backup],
        ("keys", "issue"): ["--partner", HOSTILE],
        ("keys", "rotate"): [world.key_id, "--overlap", "7d"],
        ("keys", "extend"): [world.key_id, "--expires", "never"],
        ("keys", "change"): [world.key_id, "--rate", "5/s"],
        ("keys", "suspend"): [world.key_id, "--reason", "overdue"],
        ("keys", "resume"): [world.key_id],
        ("keys", "revoke"): [world.key_id],
        ("plans", "set"): ["basic"],
        ("partners", "set"): [HOSTILE],
        ("keys", "adopt-store"): ["--yes"],
        ("usage",): ["--partner", HOSTILE],
    }


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_no_command_prints_what_a_terminal_obeys(world: World, path: tuple[str, ...]) -> None:
    env = dict(world.env)
    if path == ("demo",):
        env["FORECAST_OPERATOR_HOST"] = HOSTILE
    run(env, *path, *words(world)[path])
    run({**env, "FORECAST_LOG_FORMAT": "text"}, *path, *words(world)[path], "--json")


@pytest.mark.parametrize("name", ["list", "publish", "retire", "rollback"])
def test_a_forged_beat_reaches_no_terminal(world: World, name: str, tmp_path: Path) -> None:
    path = ("extracts", name)
    env = world.env | {"FORECAST_RELEASES_URL": world.releases, "FORECAST_DATA_DIR": str(tmp_path / "data")}
    run(env, *path, *words(world)[path])


@pytest.mark.parametrize("path", list(COMMANDS)[::5], ids=lambda path: " ".join(path) or "forecast")
def test_no_argument_comes_back_as_it_was(world: World, path: tuple[str, ...]) -> None:
    """Of some commands: all errors go the same way out."""
    run(world.env, *path, NOT_TEXT, f"--{NOT_TEXT}")


@pytest.mark.parametrize("path", list(LEAVES)[::3], ids=" ".join)
def test_no_value_of_an_option_comes_back_as_it_was(world: World, path: tuple[str, ...]) -> None:
    """Of some commands: all errors go the same way out."""
    options = [one for one in COMMANDS[path].params if isinstance(one, click.Option) and not one.is_flag]
    for parameter in options[:1]:
        run(world.env, *path, *words(world)[path], parameter.opts[0], NOT_TEXT)


def test_no_setting_comes_back_as_it_was(world: World) -> None:
    """Some of them: all errors go the same way out."""
    for name in sorted(names())[::8]:
        run(world.env | {f"FORECAST_{name.upper()}": HOSTILE}, "config", "--json")
    run(world.env | {"FORECAST_DATA_DIR": NOT_TEXT}, "config", "--json")
    run(world.env | {"FORECAST_DATA_DIR": HOSTILE}, "config")
    run({**world.env, f"FORECAST_{NOT_TEXT.replace(chr(61), chr(45))}": "1"}, "config")
    run({**world.env, "FORECAST_CONFIG": NOT_TEXT}, "config")


@pytest.mark.parametrize("path", [("status",), ("top",), ("requests", "sample"), ("cache", "purge")], ids=" ".join)
def test_no_refusal_of_an_instance_is_shown_as_it_was(world: World, path: tuple[str, ...]) -> None:
    world.listener.refuse(500, HOSTILE, HOSTILE)
    try:
        run(world.env, *path, *words(world)[path])
    finally:
        world.listener.recover()


@pytest.fixture
def lying_redis() -> Iterator[int]:
    """The port of a Redis whose every answer is a hostile error."""
    with answering(("-ERR " + HOSTILE.replace("\n", "") + "\r\n").encode()) as port:
        yield port


@pytest.mark.parametrize(
    "path", [("keys", "list"), ("keys", "issue"), ("keys", "import"), ("usage",), ("cache", "stats")], ids=" ".join
)
def test_no_reply_of_redis_is_shown_as_it_was(world: World, path: tuple[str, ...], lying_redis: int) -> None:
    url = f"redis://127.0.0.1:{lying_redis}"
    done = run(world.env | {"FORECAST_KEYS_URL": url, "FORECAST_CACHE_URL": url}, *path, *words(world)[path])
    assert done.returncode != 0 or path[0] == "cache"


def test_a_terminal_gets_no_more_than_colours(world: World) -> None:
    env = world.env | {"TERM": "xterm-256color"}
    tried: list[tuple[dict[str, str], tuple[str, ...]]] = [
        ({}, ("status",)),
        ({}, ("extracts", "check", str(world.drop))),
        ({"LC_ALL": "C"}, ("keys", "list")),
        ({"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, ("status",)),
        ({"COLUMNS": "0"}, ("config",)),
        ({"COLUMNS": "1"}, ("keys", "list")),
    ]
    for more, command in tried:
        said = in_terminal(env | more, *command)
        harmless(said, colours=True)
        assert said


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_unicode_gets_escapes(world: World, encoding: str) -> None:
    def printed(option: str) -> "subprocess.CompletedProcess[bytes]":
        command = [sys.executable, "-m", "service", "keys", "list", option]
        env = world.env | {"PYTHONIOENCODING": encoding}
        return subprocess.run(command, env=env, capture_output=True, check=False)

    # keys are in no order, and another test may have issued one
    assert HOSTILE in [key["label"] for key in json.loads(printed("--json").stdout.decode(encoding))]
    assert "--no-such-\\u2192" in printed("--no-such-→").stderr.decode(encoding)


def in_terminal(env: dict[str, str], *arguments: str) -> str:
    """What a command writes to a terminal."""
    ours, theirs = os.openpty()
    process: launcher.Launched | subprocess.Popen[bytes]
    if launcher.can_launch(env):
        process = launcher.launch_in_terminal(env, *arguments, terminal=theirs)
    else:
        command = [sys.executable, "-m", "service", *arguments]
        process = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:  # its end, as Linux tells it
        pass
    os.close(ours)
    process.wait()
    return said.decode().replace("\r\n", "\n")


def test_a_traceback_is_harmless_too() -> None:
    source = (
        "from config.streams import open_streams; import threading; open_streams()\n"
        f"def fail(): raise ValueError({HOSTILE!r} + chr(0xdcff))\n"
        "one = threading.Thread(target=fail); one.start(); one.join(); fail()"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.stderr.count("ValueError: x\\u001b]0;owned") == 2
    harmless(done.stderr.replace("Traceback", "").replace("forged", ""))
