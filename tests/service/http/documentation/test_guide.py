"""The guide is docs/partners.md, and what it shows works."""

import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from service.http.documentation.guide import render_guide
from service.http.openapi import About
from service.request.errors import CODES
from tests.support.curl import curl
from tests.support.markdown import ROOT, anchors, blocks, links
from tests.support.served import Served

GUIDE = ROOT / "docs" / "partners.md"

# what is asked with a test key fails on purpose: tests/service/http/sandbox/ types it
_CONSOLE = [block for block in blocks(GUIDE, "console") if "export BASE" not in block and "TEST_KEY" not in block]
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


@pytest.mark.parametrize("block", blocks(GUIDE, "python"))
def test_the_python_programs_work(documented: Served, block: str) -> None:
    assert run([sys.executable, "-c", block], documented)


@pytest.mark.skipif(
    shutil.which("node") is None, reason="there is no node on the PATH (Debian: apt-get install nodejs)"
)
@pytest.mark.parametrize("block", blocks(GUIDE, "javascript"))
def test_the_javascript_programs_work(documented: Served, block: str) -> None:
    assert run(["node", "--input-type=module", "--eval", block], documented)


def test_the_sql_statement_fits_the_file(documented: Served, tmp_path: Path) -> None:
    """As DuckDB reads it from a copy: over HTTP it needs an extension, which it downloads itself."""
    (block,) = blocks(GUIDE, "sql")
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
    assert blocks(GUIDE, "python")
    assert blocks(GUIDE, "javascript")


def test_every_heading_and_code_of_the_text_is_on_the_page() -> None:
    page = render_guide(About())
    assert anchors(GUIDE) - {"for-partners"} == set(re.findall(r'<h\d id="([^"]+)"', page))
    assert all(f"<code>{code}</code>" in page for code in CODES)
    assert "a test compares" not in page
    assert "<script" not in page


def test_its_links_lead_to_the_page_itself_or_out(  # a partner has no other page of ours
) -> None:
    targets = [link for link in links(GUIDE) if not link.startswith("https://")]
    assert {target.removeprefix("#") for target in targets} <= anchors(GUIDE)


def test_the_contents_lead_to_every_section_once() -> None:
    page = render_guide(About())
    contents = page[page.index('class="contents"') : page.index("<main")]
    sections = re.findall(r'<h2 id="([^"]+)"', page)
    assert re.findall(r'href="#([^"]+)"', contents) == sections
    assert max(Counter(sections).values()) == 1


def test_it_names_the_instances_address_and_whom_to_ask() -> None:
    page = render_guide(About("https://data.example", "help@data.example"))
    assert "http://127.0.0.1:8000" not in page
    assert "BASE=https://data.example KEY=" in page
    assert '<a href="mailto:help@data.example">help@data.example</a>' in page
    assert '<a href="https://data.example/help">' in render_guide(About(contact="https://data.example/help"))
    assert "BASE=http://127.0.0.1:8000" in render_guide(About())
    assert "BASE=http://127.0.0.1:9000" in render_guide(About(local_url="http://127.0.0.1:9000"))
    assert "Questions" not in render_guide(About())
