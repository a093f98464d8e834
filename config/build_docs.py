"""Builds the documentation into the package: ``python -m config.build_docs``.

There are two sites. The operators' listener serves all pages, the partners' listener those of docs/partners.
"""

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

from config.browser_libraries import DIAGRAMS, REFERENCE, bring_all

ROOT = Path(__file__).resolve().parents[1]
PLACE = Path("service/http/documentation/sites")
# The folder of a site's pages below docs/, by the site's name.
_SITES = {"all": "", "partners": "partners"}
_MERMAID = "design/mermaid/mermaid.min.js"
_SECONDS = 120


class DocumentationError(Exception):
    """A page cannot be built. The message is the generator's."""


def build(root: Path = ROOT) -> bool:
    """Replaces the built sites below `root`. Returns whether the generator is installed.

    Raises:
        DocumentationError: a page is wrong, for example because of a link that leads nowhere.
    """
    sys.path.append(str(Path(sys.prefix, "docs")))  # where config/setup.sh installs the generator
    if find_spec("zensical") is None:
        return False
    bring_all((REFERENCE, DIAGRAMS), root)
    with tempfile.TemporaryDirectory() as folder:
        running = [(name, _start(root, Path(folder) / name, pages)) for name, pages in _SITES.items()]
        for name, process in running:
            output, _ = process.communicate(timeout=_SECONDS)
            if process.returncode:
                raise DocumentationError(output.decode(errors="replace"))
            rmtree(root / PLACE / name, ignore_errors=True)
            copytree(Path(folder) / name / "site", root / PLACE / name)
    return True


def _start(root: Path, folder: Path, pages: str) -> "subprocess.Popen[bytes]":
    """Starts the build of one site in `folder`."""
    import yaml  # the generator brings it

    docs = folder / "docs"
    copytree(root / "docs" / pages, docs)
    for page in docs.rglob("*.md"):
        if "\n```mermaid" in page.read_text(encoding="utf-8"):
            depth = "../" * (len(page.relative_to(docs).parts) - 1)
            with page.open("a", encoding="utf-8") as stream:  # without it, the page loads it from another site
                stream.write(f'\n<script src="{depth}{_MERMAID}"></script>\n')
    settings = yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))
    if pages:
        settings["nav"] = _nav_of(settings["nav"], f"{pages}/")
        settings["extra_css"] = [file.removeprefix(f"{pages}/") for file in settings["extra_css"]]
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _nav_of(nav: list[Any], pages: str) -> list[str]:
    """Returns the section of `nav` whose paths begin with `pages`, without that beginning."""
    sections = (value for item in nav if isinstance(item, dict) for value in item.values())
    section = next(one for one in sections if isinstance(one[0], str) and one[0].startswith(pages))
    return [page.removeprefix(pages) for page in section]


if __name__ == "__main__":
    if not build():
        sys.exit("the documentation needs its generator; to install it: rm .venv/.installed; make setup")
