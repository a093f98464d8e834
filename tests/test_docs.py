"""The pages and the code say the same: links, settings, commands, codes, tables, decisions."""

import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
import yaml

from config import build_docs
from config.metadata import is_secret, names
from service.base.interruption import EXIT_CODE as INTERRUPTED
from service.cli.main import main
from service.cli.output import FAILED, LOST
from service.http.forecast_batch import BatchBody
from service.http.index import Index
from service.http.own_usage.errors import OwnErrors
from service.http.own_usage.usage import Usage, UsageByHour
from service.http.releases.changes import ForecastChanges
from service.http.releases.listing import Releases
from service.request.errors import CODES
from tests.support.generated_pages import render_pages
from tests.support.generated_pages.operators import exported_metrics, name_in_scrape
from tests.support.markdown import (
    PAGES,
    ROOT,
    anchors,
    blocks,
    links,
    name_of,
    named_commands,
    prose,
    shown_commands,
    table_after,
)
from warehouse.areas.forecast import ForecastBody
from warehouse.schema.tables import TABLES

DOCS = ROOT / "docs"
CONTRACT = DOCS / "reference/contract.md"
CONTRACT_PAGES = sorted(CONTRACT.parent.glob("contract*.md"))
DECISIONS = DOCS / "design/decisions"
SETTINGS = DOCS / "reference/settings.md"
ARCHITECTURE = DOCS / "design/index.md"
WHERE = DOCS / "design/where.md"
EXTEND = DOCS / "design/extend.md"
TESTING = DOCS / "design/testing.md"

# Bodies that are shown, by a member that none of those below has.
_KINDS = {
    "total_found": BatchBody,
    "previous": ForecastChanges,
    "errors": OwnErrors,
    "days": Usage,
    "hours": UsageByHour,
    "attribution": Index,
    "illustrative": Releases,
    "total_results": ForecastBody,
}


def test_every_link_leads_somewhere() -> None:
    """To a file of the project, and to a heading that it has."""
    for page in PAGES:
        for link in links(page):
            if re.match(r"https?:", link):
                continue
            target, _, anchor = link.partition("#")
            if target == "openapi.json":  # which the service makes
                continue
            file = (page.parent / target).resolve() if target else page
            assert file.exists(), f"{page}: {link}: no such file"
            if anchor:
                assert anchor in anchors(file), f"{page}: {link}: no such heading"


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    """Each once; and the README links to the pages beside it."""
    listed = [str(page) for page in _leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])]
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
    targets = {link.partition("#")[0] for link in links(ROOT / "README.md")}
    assert {page.name for page in ROOT.glob("*.md")} - {"README.md"} <= targets


def _leaves(nav: object) -> Iterator[object]:
    if isinstance(nav, dict | list):
        for one in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(one)
    else:
        yield nav


def test_pages_that_come_from_the_code_are_up_to_date() -> None:
    stale = [name_of(page) for page, text in render_pages().items() if not page.exists() or page.read_text() != text]
    assert stale == [], "make docs-pages writes them"


def test_the_sites_can_be_built_without_a_warning(tmp_path: Path) -> None:
    """The generator checks that links lead to pages and headings."""
    (tmp_path / "mkdocs.yml").write_bytes((ROOT / "mkdocs.yml").read_bytes())
    shutil.copytree(DOCS, tmp_path / "docs")
    assert build_docs.build(tmp_path)
    assert (tmp_path / build_docs.PLACE / "partners" / "index.html").exists()


def test_the_settings_page_names_the_variables_that_name_a_file() -> None:
    files = {f"FORECAST_{name.upper()}_FILE" for name in names() if is_secret(name)}
    assert set(re.findall(r"FORECAST_[A-Z_]+_FILE", prose(SETTINGS))) == files


def test_settings_that_are_named_exist() -> None:
    """In any page; with or without `_FILE`."""
    known = {f"FORECAST_{name.upper()}" for name in names()}
    known |= {f"{name}_FILE" for name in known} | {"FORECAST_CONFIG"}
    foreign = {"FORECAST_PORT", "FORECAST_SERVICE_"}  # what Kubernetes injects
    for page in PAGES:
        assert set(re.findall(r"\bFORECAST_[A-Z_]+", page.read_text())) - known - foreign == set(), page


def test_commands_that_are_shown_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Group, command, arguments and options are those of the command line; only files need not be there."""
    for page in PAGES:
        for arguments in shown_commands(page, "forecast"):
            command, name, rest = _command(arguments)
            for parameter in command.params:
                if isinstance(parameter.type, click.Path):
                    monkeypatch.setattr(parameter.type, "exists", False)
                if isinstance(parameter, click.Option) and parameter.prompt:  # asked for at a terminal
                    monkeypatch.setattr(parameter, "prompt", None)
                    monkeypatch.setattr(parameter, "callback", None)
            # the command keeps the help option that it is first asked for
            command.make_context(name, rest, help_option_names=["-h", "--help"])


def test_commands_that_are_named_exist() -> None:
    """In running text, where arguments may be left out: group, command, and the options that are named."""
    for page in PAGES:
        for arguments in named_commands(page, "forecast"):
            command, _, rest = _command(arguments)
            options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
            assert {word for word in rest if word.startswith("--")} <= options, (page, arguments)


def _command(arguments: list[str]) -> tuple[click.Command, str, list[str]]:
    """The command that `arguments` lead to, and what is left of them."""
    command: click.Command = main
    name, rest = "forecast", arguments
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name, *rest = rest
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"no such command: forecast {' '.join(arguments)}"
        command = found
    return command, name, rest


def test_targets_of_make_exist() -> None:
    """Shown and named."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for page in PAGES:
        for arguments in (*shown_commands(page, "make"), *named_commands(page, "make")):
            assert set(arguments) <= targets, (page, arguments)


def test_the_errors_that_partners_read_are_those_of_the_code() -> None:
    """Each code once, with its status and what to do."""
    rows = table_after(DOCS / "partners/error-codes.md", "errors")
    assert sorted((code.strip("`"), int(status)) for status, code, *_ in rows) == sorted(
        (code, status) for code, (status, _) in CODES.items()
    )
    assert all(all(row) for row in rows)


def test_the_contract_lists_the_codes_of_the_code() -> None:
    """Point 10: each code once, beside its status."""
    rows = table_after(CONTRACT, "codes")
    listed = [(code, int(status)) for status, codes in rows for code in re.findall(r"`([a-z_]+)`", codes)]
    assert sorted(listed) == sorted((code, status) for code, (status, _) in CODES.items())


def test_the_exit_codes_of_publishing_are_those_of_the_code() -> None:
    """Scripts branch on them."""
    rows = {int(code): meaning for code, meaning in table_after(DOCS / "publish/index.md", "exit codes")}
    assert sorted(rows) == [0, FAILED, click.UsageError.exit_code, LOST, INTERRUPTED]
    assert "refused" in rows[FAILED]
    assert "usage" in rows[click.UsageError.exit_code]
    assert "another publish" in rows[LOST]
    assert "interrupted" in rows[INTERRUPTED]


def test_the_tables_of_a_drop_are_those_of_the_code() -> None:
    """Names, columns in their order, and which tables may be missing."""
    rows = [
        (name, re.findall(r"`(\w+)`", columns)) for name, columns in table_after(DOCS / "publish/drops.md", "tables")
    ]
    for table in TABLES:
        ((name, columns),) = [row for row in rows if row[0].startswith(f"`{table.name}`") and "wide" not in row[0]]
        assert tuple(columns) == table.column_names
        assert ("optional" in name) is not table.needed
    assert {re.findall(r"`(\w+)`", name)[0] for name, _ in rows} == {table.name for table in TABLES}


def test_metrics_that_are_named_exist() -> None:
    """An alarm on a name that nobody exports would never ring."""
    known = {name_in_scrape(metric) for metric in exported_metrics()}
    named = {name for page in DOCS.rglob("*.md") for name in re.findall(r"`(forecast_\w+)`", page.read_text())}
    assert named, "no page names a metric"
    assert named - known == set()


def _kind_of(block: str) -> type | None:
    return next((kind for name, kind in _KINDS.items() if f'"{name}":' in block), None)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(_kind_of(block) for block in blocks(page, "json"))], ids=name_of
)
def test_bodies_that_are_shown_are_those_of_the_contract(page: Path) -> None:
    """The members of a 200, in their order, no more and no less."""
    shown = [(block, kind) for block in blocks(page, "json") if (kind := _kind_of(block)) is not None]
    for block, kind in shown:
        body: object = msgspec.json.decode(block, type=kind)
        assert msgspec.json.encode(body) == msgspec.json.encode(msgspec.json.decode(block))


def test_decisions_and_points_are_numbered_from_one_on() -> None:
    """So that a number that is named leads to one place."""
    assert _decisions() == list(range(1, len(_decisions()) + 1))
    assert sorted(_points()) == list(range(1, len(_points()) + 1))


def test_every_decision_and_point_that_is_referred_to_is_in_the_design() -> None:
    """In code, tests, configuration and pages."""
    decisions, points = set(_decisions()), set(_points())
    referred = 0
    for file in _files():
        text = file.read_text()
        for listed in re.findall(r"\bDecisions? (\d+(?:(?:, | and )\d+)*)", text):
            numbers = {int(number) for number in re.findall(r"\d+", listed)}
            assert numbers <= decisions, f"{name_of(file)}: Decision {listed}"
            referred += len(numbers)
        for number in re.findall(r"\b[Cc]ontracts? (\d+)", text):
            assert int(number) in points, f"{name_of(file)}: contract {number}"
            referred += 1
    assert referred


def test_pages_that_code_refers_to_ship() -> None:
    """A comment that leads to a page outside the repository leads nowhere."""
    for file in _files():
        for name in re.findall(r"\b(?:[a-z-]+/)*[\w-]+\.md\b", re.sub(r"\]\([^)]*\)", "]", file.read_text())):
            places = (ROOT, DOCS, file.parent)
            assert any((place / name).is_file() for place in places), f"{name_of(file)} refers to {name}"


def _decisions() -> list[int]:
    return [int(page.stem) for page in sorted(DECISIONS.glob("??.md"))]


def _points() -> list[int]:
    texts = [page.read_text() for page in CONTRACT_PAGES]
    return [int(number) for text in texts for number in re.findall(r"^##+ (\d+)\. ", text, flags=re.MULTILINE)]


def _files() -> list[Path]:
    """What people read: code, configuration and pages."""
    kinds = (".py", ".md", ".toml", ".yaml", ".conf", ".lua", ".sql", ".sh", ".html")
    folders = ("service", "warehouse", "config", "tests", "docs")
    inside = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in kinds]
    return sorted([*inside, *(file for file in ROOT.glob("*") if file.is_file() and file.suffix in kinds)])


def _contracts(kind: str) -> list[Any]:
    pyproject: Any = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [one for one in pyproject["tool"]["importlinter"]["contracts"] if one["type"] == kind]


def test_the_layers_of_the_architecture_are_those_that_the_linter_checks() -> None:
    """A column for each package."""
    columns = zip(*table_after(ARCHITECTURE, "layers"), strict=True)
    listed = [[sorted(cell.replace("`", "").split(", ")) for cell in column if cell] for column in columns]
    assert listed == [[sorted(layer.split(" | ")) for layer in one["layers"]] for one in _contracts("layers")]


def test_the_forbidden_imports_of_the_architecture_are_those_that_the_linter_checks() -> None:
    """With the one module that may import a library."""

    def names(cell: str) -> list[str]:
        return sorted(re.findall(r"`([\w.]+)`", cell))

    rows = sorted((names(importers), names(imported)) for importers, imported in table_after(ARCHITECTURE, "forbidden"))
    assert rows == sorted(
        (
            sorted(one["source_modules"]),
            sorted(one["forbidden_modules"] + [line.split(" -> ")[0] for line in one.get("ignore_imports", ())]),
        )
        for one in _contracts("forbidden")
    )


def test_every_room_is_in_the_tree_and_nothing_else_is() -> None:
    """The folders that hold code are the rooms; a newcomer reads one line for each."""
    text = WHERE.read_text().partition("## All rooms")[2].partition("## ")[0]
    reported = set()
    top = ""
    for line in text.splitlines():
        name = line.strip().partition(" ")[0]
        if line[:1].isalpha():
            top = name
        elif line.startswith("  ") and name.endswith("/"):
            reported.add(top + name)
    tops = ("service", "warehouse")
    there = {f"{path.parent.relative_to(ROOT)}/" for one in tops for path in (ROOT / one).glob("*/__init__.py")}
    for room in ("http", "operators"):
        there |= {f"{path.parent.relative_to(ROOT)}/" for path in (ROOT / "service" / room).glob("*/__init__.py")}
    assert reported == there


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", WHERE, EXTEND, TESTING], ids=name_of)
def test_every_path_that_a_page_for_contributors_names_exists(page: Path) -> None:
    """If a module moves, its row changes with it."""
    named = re.findall(r"`((?:service|warehouse|config|tests|docs)/[\w./-]*)`", page.read_text())
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_contributing_is_short_and_leads_to_the_list_of_places() -> None:
    """A newcomer reads it in a few minutes."""
    page = ROOT / "CONTRIBUTING.md"
    assert len(page.read_text().split()) <= 800
    assert {"docs/design/where.md", "docs/design/extend.md", "docs/design/testing.md"} <= set(links(page))
