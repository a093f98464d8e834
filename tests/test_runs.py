"""How a run of the tests ends: with the result, and with what it did not test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.markdown import ROOT
from tests.support.skipped import MAY_SKIP_NOTHING

_TESTS = """
import duckdb
import pytest

@pytest.mark.parametrize("number", range(2))
def test_that_needs_a_browser(number: int) -> None:
    pytest.skip("there is no browser here")

@pytest.mark.skipif(True, reason="there is no clock here")
def test_that_needs_a_clock() -> None: ...

def test_that_keeps_a_connection() -> None:
    pytest.kept = duckdb.connect()
"""


def run(folder: Path, processes: int, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A run of its own: with its test processes, if any, and what the project's conftest.py does."""
    (folder / "test_some.py").write_text(_TESTS)
    command = [sys.executable, "-m", "pytest", "-n", str(processes), "-p", "tests.conftest", "-p", "no:cacheprovider"]
    reported = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", MAY_SKIP_NOTHING))}
    return subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), str(folder)],
        cwd=ROOT, env=reported | environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_a_run_ends_with_what_was_skipped_and_with_the_result(tmp_path: Path) -> None:
    """Each in one line, and nothing after them from a process that ends."""
    done = run(tmp_path, processes=1)
    assert done.returncode == 0, done.stdout + done.stderr
    skipped, result = done.stdout.splitlines()[-2:]
    assert skipped == "skipped: 2 (there is no browser here), 1 (there is no clock here)"
    assert result.startswith("1 passed, 3 skipped in ")
    assert done.stderr == ""


def test_where_nothing_may_be_skipped_a_run_that_skips_fails(tmp_path: Path) -> None:
    """CI has all that tests need: a lack there is a mistake of CI."""
    done = run(tmp_path, processes=0, **{MAY_SKIP_NOTHING: "yes"})
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "this run may skip nothing" in done.stdout
