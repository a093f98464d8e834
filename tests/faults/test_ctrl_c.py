"""Ctrl-C at any moment of any command: one line, exit code 130, nothing half-done, no process left."""

import json
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.conftest import servers_of
from tests.support.drops import people, write_drop
from tests.support.instance import children_of, environment, forecast_here, is_alive
from tests.support.waiting import PATIENCE, until
from tests.warehouse.helpers import publish
from warehouse.releases.catalog import Catalog

# What a command compares, or reads, can take a minute; here it takes hours, and all threads that DuckDB has.
_SLOW = """
import sys
import warehouse.{module} as module
from warehouse.sql.connections import connect
def slow(*_, **__):
    with connect() as connection:
        connection.execute("CREATE TABLE numbers AS SELECT i FROM range(1000000) r(i)")
        print("slow", flush=True)
        connection.execute("SELECT count(*) FROM numbers a, numbers b WHERE (a.i + b.i) % 7 = 3").fetchall()
module.{name} = slow
from service.__main__ import run
run()
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two releases, a key, its backup, and a drop."""
    folder = tmp_path_factory.mktemp("made")
    catalog = Catalog(folder / "data")
    for figure in (1, 2):
        drop = write_drop(folder / f"drop-{figure}", population=[people("36436", 2023, figure)])
        assert publish(catalog, drop).result == "published"
    env = environment(folder / "data")
    assert forecast_here(env, "keys", "issue", "--partner", "acme").returncode == 0
    assert forecast_here(env, "keys", "export", str(folder / "keys.jsonl")).returncode == 0
    return folder


@pytest.fixture
def folder(made: Path, short: Path) -> Path:
    shutil.copytree(made, short, dirs_exist_ok=True)
    return short


_started: "list[subprocess.Popen[str]]" = []


@pytest.fixture(autouse=True)
def nothing_outlives_its_test() -> Iterator[None]:
    """A command that did not end would keep a processor busy for good."""
    yield
    while _started:
        with _started.pop() as process:
            process.kill()


def start(folder: Path, *command: str) -> "subprocess.Popen[str]":
    # the drop that is published is that of the first release
    env = environment(folder / "data", severities="delivered-before=info")
    _started.append(subprocess.Popen(command, env=env, stdout=-1, stderr=-1, text=True, cwd=folder))
    return _started[-1]


def interrupted(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Presses Ctrl-C when it is slow; its exit code and standard error."""
    assert process.stdout is not None
    assert process.stdout.readline() == "slow\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err


def maps_our_libraries(pid: int) -> bool:
    """Whether the command imports what it needs: before that, the interpreter itself is still starting."""
    try:
        return b"msgspec" in Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return True


def state(folder: Path) -> tuple[str, ...]:
    """Whole releases, nothing staged, no process; what is current, and the files beside it."""
    catalog = Catalog(folder / "data")
    for release in catalog.names():
        catalog.verify(catalog.manifest(release))
    assert list(catalog.staging.iterdir()) == []
    until(lambda: servers_of(folder / "data") == [])
    assert not [path for path in folder.glob(".*") if ".new" in path.name]
    return (catalog.current().id,)


# What a report begins with. It may have been printed already.
_REPORTS = ("Good: ", "Published")

COMMANDS = {
    "publish": (("extracts", "publish", "drop-1"), 4),
    "check": (("extracts", "check", "drop-1"), 1),
    "rollback": (("extracts", "rollback"), 1),
    "diff": (("extracts", "diff", "{old}", "--to", "changes.csv"), 1),
    "list": (("extracts", "list"), 1),
    "retire": (("extracts", "retire", "--keep", "1"), 1),
    "usage": (("usage", "--format", "csv", "--out", "usage.csv"), 1),
    "export": (("keys", "export", "new.jsonl"), 1),
    "import": (("keys", "import", "keys.jsonl"), 2),
    "issue": (("keys", "issue", "--partner", "other"), 1),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_is_one_line_whenever_it_comes(folder: Path, name: str) -> None:
    """At random moments from the first import of ours to the end. What ended before is done; all else was not begun."""
    words, times = COMMANDS[name]
    old = sorted(Catalog(folder / "data").names())[0]
    command = [sys.executable, "-m", "service", *(word.format(old=old) for word in words)]
    rng = random.Random(name + "2")
    seconds = 1.0
    for number in range(times):
        process = start(folder, *command)
        until(lambda pid=process.pid: maps_our_libraries(pid))  # type: ignore[misc]
        began = time.monotonic()
        try:
            process.wait(seconds * (number + rng.random()) / times)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)  # people press it twice
        children = children_of(process.pid)
        out, err = process.communicate(timeout=PATIENCE)
        if process.returncode == 0:
            seconds = time.monotonic() - began
        else:
            *before, said = [line for line in err.splitlines() if not line.startswith("{")]  # what was done is logged
            assert (process.returncode, said.startswith("forecast: interrupted")) == (130, True), err
            assert not before or before[0].startswith(_REPORTS), err
        assert "Traceback" not in out + err
        until(lambda children=children: not any(map(is_alive, children)))  # type: ignore[misc]
        state(folder)


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("publishing.publish", "compare", ("check", "drop-1", "--json")),
        ("compare.release_comparison", "compare", ("diff", "{old}")),
        ("publishing.build", "build_release", ("publish", "drop-1")),
    ],
)
def test_ctrl_c_within_a_query_is_no_error_of_it(folder: Path, module: str, name: str, words: tuple[str, ...]) -> None:
    """DuckDB says `Query interrupted` in its own way; a person hears that the command was, and what is current."""
    before = state(folder)
    old = sorted(Catalog(folder / "data").names())[0]
    program = _SLOW.format(module=module, name=name)
    process = start(folder, sys.executable, "-c", program, "extracts", *(word.format(old=old) for word in words))
    changed = "; nothing was changed" if words[0] == "publish" else ""
    assert interrupted(process) == (130, f"forecast: interrupted{changed}\n")
    assert state(folder) == before


def test_ctrl_c_that_a_library_loses_comes_again(folder: Path) -> None:
    """As within a finalizer, or where native code clears an error that is none of its own."""
    lost = """
    try:
        import time
        print("slow", flush=True)
        while True: time.sleep(0.01)
    except KeyboardInterrupt: pass
    with connect"""
    program = _SLOW.format(module="publishing.publish", name="compare").replace("    with connect", lost, 1)
    process = start(folder, sys.executable, "-c", program, "extracts", "check", "drop-1")
    assert interrupted(process) == (130, "forecast: interrupted\n")


def test_ctrl_c_within_an_import_waits_for_its_end(folder: Path) -> None:
    """Native modules end the process with a message of their own if they are interrupted while they are imported."""
    program = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "duckdb":
            os.kill(os.getpid(), signal.SIGINT)
            print("goes on", flush=True)
sys.meta_path.insert(0, Interrupting())
from service.__main__ import run
run()
"""
    process = start(folder, sys.executable, "-c", program, "extracts", "list")
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (130, "goes on\n", "forecast: interrupted\n")


def test_ctrl_c_after_the_switch_says_what_is_current(folder: Path) -> None:
    """The release is live, whatever else was still to be done."""
    program = _SLOW.format(module="releases.instances", name="live_instances")  # it waits for the instances
    process = start(folder, sys.executable, "-c", program, "extracts", "rollback")
    assert interrupted(process) == (130, f"forecast: interrupted; {state(folder)[0]} is current now\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_watcher_that_is_stopped_within_a_query_stops(folder: Path, number: int) -> None:
    """Neither signal may be taken for a query that failed, and the drop is published next time."""
    (folder / "inbox").mkdir()
    (folder / "drop-1").rename(folder / "inbox" / "drop-1")
    (folder / "inbox" / "drop-1" / "_SUCCESS").touch()
    before = state(folder)
    program = _SLOW.format(module="publishing.publish", name="compare")
    process = start(folder, sys.executable, "-c", program, "extracts", "watch", "inbox", "--json")
    assert process.stdout is not None
    for line in process.stdout:
        if line == "slow\n":
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, json.loads(out.splitlines()[-1])["event"]) == (0, "stopped"), err
    assert "Traceback" not in err
    assert list((folder / "inbox" / "published").iterdir()) == []
    assert state(folder) == before
    assert list((folder / "inbox").glob(".claimed/*/drop-1"))


_AT_THE_VERY_END = """
import os, signal, sys
from service.__main__ import run
from service.base import interruption

disarm = interruption.disarm

def pressed():
    interruption.disarm = disarm
    os.kill(os.getpid(), signal.SIGINT)
    disarm()

interruption.disarm = pressed
sys.argv = ["forecast", "--version"]
run()
"""


def test_ctrl_c_at_the_very_end_of_a_command_changes_nothing() -> None:
    """While the handler is taken away: what was to be done is done."""
    done = subprocess.run([sys.executable, "-c", _AT_THE_VERY_END], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("forecast")


_WITH_A_THREAD = """
import sys, threading
from service.__main__ import run

def work():
    threading.main_thread().join()
    print("done", flush=True)

threading.Thread(target=work).start()
sys.argv = ["forecast", "--version"]
run()
"""


def test_a_command_that_ends_waits_for_its_threads() -> None:
    """Only a process that has nothing left to do ends at once."""
    done = subprocess.run([sys.executable, "-c", _WITH_A_THREAD], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[1:], done.stderr) == (0, ["done"], "")


_WITH_A_PATIENT_STORE = """
import sys
from service.__main__ import run
from warehouse.upstream import objects

objects._DOCUMENT_SECONDS = 600
sys.argv = ["forecast", "extracts", "list"]
run()
"""


def test_ctrl_c_ends_the_wait_for_a_store_of_releases_that_stalls(tmp_path: Path) -> None:
    """It does not wait until the store has had its time."""
    # Not 127.0.0.1: there, clients of other tests look for servers that were killed, and may find this port.
    with socket.create_server(("127.0.0.2", 0)) as stalls:
        options = (
            f"endpoint=http://127.0.0.2:{stalls.getsockname()[1]}, region=here, allow_http=true, skip_signature=true"
        )
        env = environment(tmp_path, releases_url="s3://bucket/prefix", releases_options=options)
        command = [sys.executable, "-c", _WITH_A_PATIENT_STORE]
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        stalls.settimeout(PATIENCE)
        with stalls.accept()[0] as asked:
            assert asked.recv(3) == b"GET"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, "forecast: interrupted\n")
