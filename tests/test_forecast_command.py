"""The installed command runs our code, whatever is in the current folder and on PYTHONPATH."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.instance import SHORT_DRAIN, children_of, environment
from tests.support.waiting import until

SHADOWS = ("config", "service", "warehouse", "click", "msgspec", "redis", "rich", "logging", "forecast")
INSTALLED = str(Path(sys.executable).with_name("forecast"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of modules with our names, and with those of what we import."""
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module was imported')")
    return tmp_path


@pytest.mark.parametrize("on_path", [True, False], ids=["PYTHONPATH", "current folder"])
def test_the_command_imports_its_own_modules(folder: Path, on_path: bool) -> None:
    env = environment(folder / "data") | ({"PYTHONPATH": f"{folder}/../{folder.name}:"} if on_path else {})
    done = subprocess.run([INSTALLED, "config"], env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_as_a_module_it_is_shadowed_by_none_but_its_own_name(folder: Path) -> None:
    """And by Python's: what `python -m` names, Python looks for in the current folder first."""
    for name in ("service", "logging"):
        (folder / f"{name}.py").unlink()
    command = [sys.executable, "-m", "service", "config"]
    done = subprocess.run(command, env=environment(folder), cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_current_folder_that_was_removed_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    command = ["sh", "-c", f'cd "{tmp_path}/gone" && rmdir "{tmp_path}/gone" && exec "$@"', "sh", INSTALLED, "config"]
    env = environment(tmp_path / "data")
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_so_do_all_processes_of_an_instance(folder: Path, short: Path) -> None:
    """Also those that it starts without the process that forks them."""
    env = environment(short / "data", drain=SHORT_DRAIN) | {"PYTHONPATH": str(folder)}
    command = [INSTALLED, "serve", "--port", "0", "--operator-port", "0", "--workers", "1"]
    record = short / "data" / "instances"
    with subprocess.Popen(command, env=env, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: any("null]" in one.read_text() for one in record.glob("*.json")))
            named = {_name(pid): pid for pid in children_of(process.pid)}
            for name in ("forecast-forks", "forecast-worker"):
                os.kill(named[name], signal.SIGKILL)
            until(lambda: _started_anew(process.pid))
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


def _started_anew(pid: int) -> bool:
    """Whether a worker runs that is an interpreter of its own."""
    for child in children_of(pid):
        with suppress(OSError):  # it ended meanwhile
            if "service.worker.main" in Path(f"/proc/{child}/cmdline").read_text().split("\0"):
                return True
    return False


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()
