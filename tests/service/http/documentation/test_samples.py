"""The samples in the partners' pages work."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import msgspec
import pytest

from service.http.documentation.site import Site
from service.http.openapi import About
from tests.support.curl import curl
from tests.support.markdown import partners_blocks
from tests.support.served import Served

# what is asked with a test key fails on purpose: tests/service/http/sandbox/ types it
_CONSOLE = [block for block in partners_blocks("console") if "export BASE" not in block and "TEST_KEY" not in block]
# curl ends with an error unless it is told not to: a sample that is answered by a 4xx is wrong
_STRICT = f'set -eu; curl() {{ command {shlex.join(curl())} --silent --show-error --fail "$@"; }}\n'


def run(command: list[str], to: Served) -> str:
    """What `command` prints, with the variables that the guide tells to set."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "BASE": f"http://127.0.0.1:{to.port}", "KEY": to.key}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("block", _CONSOLE)
def test_what_is_typed_into_a_shell_works(documented: Served, block: str) -> None:
    lines = block.splitlines()
    typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    printed = run(["bash", "-c", _STRICT + "\n".join(typed)], documented)
    assert printed
    for line in lines:
        assert line.startswith("$ ") or line in printed


@pytest.mark.parametrize("block", partners_blocks("python"))
def test_the_python_programs_work(documented: Served, block: str) -> None:
    assert run([sys.executable, "-c", block], documented)


@pytest.mark.skipif(
    shutil.which("node") is None, reason="there is no node on the PATH (Debian: apt-get install nodejs)"
)
@pytest.mark.parametrize("block", partners_blocks("javascript"))
def test_the_javascript_programs_work(documented: Served, block: str) -> None:
    assert run(["node", "--input-type=module", "--eval", block], documented)


def _samples_of_reference(language: str) -> list[str]:
    description = Site("partners", About()).file("openapi.json")
    assert description is not None
    operations = [item["get"] for item in msgspec.json.decode(description.body)["paths"].values()]
    return [one["source"] for operation in operations for one in operation["x-codeSamples"] if one["lang"] == language]


@pytest.mark.parametrize(
    ("language", "program"),
    [
        ("Shell", ["bash", "-c"]),
        ("Python", [sys.executable, "-c"]),
        ("JavaScript", ["node", "--input-type=module", "-e"]),
    ],
    ids=["Shell", "Python", "JavaScript"],
)
def test_the_samples_of_the_reference_work(
    documented: Served, language: str, program: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(program[0]) is None:
        pytest.skip(f"there is no {program[0]} on the PATH")
    samples = _samples_of_reference(language)
    assert len(samples) > 10
    monkeypatch.chdir(tmp_path)  # one downloads a file
    for sample in samples:
        source = sample.replace("http://127.0.0.1:8000", f"http://127.0.0.1:{documented.port}")
        run([*program, _STRICT + source if language == "Shell" else source], documented)


def test_the_sql_statement_fits_the_file(documented: Served, tmp_path: Path) -> None:
    """As DuckDB reads it from a copy: over HTTP it needs an extension, which it downloads itself."""
    (block,) = partners_blocks("sql")
    address = re.findall(r"'http://127.0.0.1:8000(/[^']+)'", block)
    (tmp_path / "copy.parquet").write_bytes(documented.ask(address[0]).body)
    with duckdb.connect() as connection:
        secret, query = connection.extract_statements(block)
        assert "x-api-key" in secret.query
        copied = query.query.replace(f"http://127.0.0.1:8000{address[0]}", str(tmp_path / "copy.parquet"))
        rows = connection.execute(copied).fetchall()
    assert {state for state, _ in rows} >= {"AL", "MO"}


def test_it_has_every_language_of_the_quick_start() -> None:
    assert _CONSOLE
    assert partners_blocks("python")
    assert partners_blocks("javascript")
