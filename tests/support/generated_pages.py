"""Pages of docs/ that come from the code: ``python -m tests.support.generated_pages`` writes them."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from prometheus_client.parser import text_string_to_metric_families

from service.base.telemetry import Telemetry
from service.cli.main import main
from service.http.openapi import describe_api
from service.operators.metrics import render_metrics
from service.operators.state import InstanceState
from tests.support.markdown import ROOT
from warehouse.rules.all_rules import RULES
from warehouse.rules.rule import Rule
from warehouse.schema.column_types import TYPES, ColumnType
from warehouse.schema.tables import ColumnKind

_WIDTH = 100


def _page(title: str, text: str, *parts: str) -> str:
    return "\n\n".join((f"# {title}", text, *parts)) + "\n"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# --- the command line ------------------------------------------------------------------------------------------------


def render_commands() -> str:
    parts = [f"## {path}\n\n```text\n{text}\n```" for path, text in _commands(main, "forecast", None)]
    return _page(
        "Command line",
        "Every command, as its `--help` describes it. In a checkout, the program is `.venv/bin/forecast`.",
        *parts,
    )


def _commands(command: click.Command, path: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    context = click.Context(
        command,
        parent=parent,
        info_name=path.rpartition(" ")[2],
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
        help_option_names=["-h", "--help"],
    )
    yield path, re.sub(r" +$", "", command.get_help(context), flags=re.MULTILINE)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from _commands(found, f"{path} {name}", context)


# --- metrics and rules -----------------------------------------------------------------------------------------------


def exported_metrics() -> list[tuple[str, str, str]]:
    """Name, type and help of each."""
    state = InstanceState(workers=(), wanted_workers=1, restarts=0, draining=False)
    families = text_string_to_metric_families(render_metrics(state, Telemetry().snapshot()).decode())
    return [
        (f"{one.name}_total" if one.type == "counter" else one.name, one.type, one.documentation)
        for one in sorted(families, key=lambda family: family.name)
    ]


def render_metric_list() -> str:
    rows = [(f"`{name}`", kind, text) for name, kind, text in exported_metrics()]
    return _page(
        "Metrics",
        "Every metric at `/metrics` of the operators' listener. [Watch an instance](../operate/watch.md) says which to "
        "look at first, and [alerts](../operate/alerts.md) are rules on them.",
        _table(("metric", "type", "meaning"), rows),
    )


def render_rules() -> str:
    rows = [
        (f"`{rule.name}`", rule.severity, _limit(rule), "yes" if rule.override else "no", rule.about, rule.remedy or "")
        for rule in RULES.values()
    ]
    return _page(
        "Rules for drops",
        "Every rule that `forecast extracts check` and `publish` apply, with its default limit. A finding of severity "
        "error refuses the drop. Where the table says yes, `--accept` publishes all the same. `FORECAST_LIMITS` "
        "and `FORECAST_SEVERITIES` change limits and severities.",
        _table(("rule", "severity", "limit", "accept", "what it checks", "what to do"), rows),
    )


def _limit(rule: Rule) -> str:
    if rule.limit is None:
        return ""
    return f"{rule.limit:.4g}" if rule.unit != "share" else f"{100 * rule.limit:.4g} %"


# --- types of columns ------------------------------------------------------------------------------------------------

# The kinds of columns of a drop, with their titles. FIPS codes are read like ZIP codes.
_KINDS: dict[ColumnKind, str] = {
    "zip": "ZIP or FIPS code",
    "state": "state code",
    "text": "text",
    "integer": "whole number",
    "real": "coordinate",
    "date": "date",
}


def render_types() -> str:
    alike: dict[tuple[str, ...], dict[str, None]] = {}
    for one in TYPES:
        uses = ("yes" if kind in one.conversions else "no" for kind in _KINDS)
        if one.name not in ("NULL", "UNKNOWN"):
            alike.setdefault((*uses, one.remedy.format("see the last row")), {})[f"`{_label(one)}`"] = None
    rows = [(", ".join(names), *cells) for cells, names in alike.items()]
    instead = ColumnType("")
    return _page(
        "Types of columns",
        "Every type that a column of a Parquet file can have, in the names of DuckDB, and the kinds of columns that "
        "can be read from it. Where the table says yes, every value that fits the column is read exactly, without "
        "rounding; a value that does not fit is an error with its row. Otherwise a column with any value is refused by "
        "the name of its type.",
        _table(
            ("type", *_KINDS.values(), "what to do"),
            [*rows, ("export instead", *map(instead.remedy_for, _KINDS), "")],
        ),
    )


def _label(held: ColumnType) -> str:
    """Returns the name of a type. Decimals have several rows."""
    if held.name != "DECIMAL":
        return held.name
    return "DECIMAL(p,0)" if held.pattern.endswith(r",0\)") else "DECIMAL(p,s)"


# --- the data dictionary ---------------------------------------------------------------------------------------------


def render_dictionary() -> str:
    schemas = describe_api()["components"]["schemas"]
    parts: list[str] = []
    for name, schema in schemas.items():
        if schema.get("properties"):
            text = " ".join(schema.get("description", "").replace("``", "`").split())  # Python 3.13 removes indents
            parts += [f"## {name}", text, _table(("member", "type", "null", "meaning"), _members(schema))]
    return _page(
        "Data dictionary",
        "Every member of every answer. [What the figures mean](figures.md) has units, sources and years.",
        *parts,
    )


def _members(schema: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (f"`{name}`", _type(one), "yes" if _may_be_null(one) else "no", one.get("description", ""))
        for name, one in schema["properties"].items()
    ]


def _may_be_null(schema: dict[str, Any]) -> bool:
    return any(one.get("type") == "null" for one in schema.get("anyOf", ())) or "null" in schema.get("type", ())


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"] if one.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}" if "items" in schema else "list"
    if "enum" in schema:
        return "one of " + ", ".join(f"`{value}`" for value in schema["enum"] if value is not None)
    return str(schema.get("format", schema.get("type", "any")))


# --- the list for language models ------------------------------------------------------------------------------------


def render_llms() -> str:
    """The partners' pages, as https://llmstxt.org describes the form."""
    pages = sorted((ROOT / "docs/partners").glob("*.md"), key=lambda page: (page.name != "index.md", page.name))
    lines = [
        "# Population and housing forecasts",
        "",
        "> A read-only HTTP API by ZIP code or by city and state. Every request needs the header x-api-key.",
        "",
        "## Pages",
        "",
        *(f"- [{title}]({page.stem}.html)" for page in pages if (title := _title(page))),
        "- [OpenAPI description](openapi.json)",
    ]
    return "\n".join(lines) + "\n"


def _title(page: Path) -> str:
    title = re.search(r"^# (.+)$", page.read_text(), flags=re.MULTILINE)
    return title[1] if title else page.stem


GENERATED: dict[Path, Callable[[], str]] = {
    ROOT / "docs/reference/cli.md": render_commands,
    ROOT / "docs/reference/metrics.md": render_metric_list,
    ROOT / "docs/reference/rules.md": render_rules,
    ROOT / "docs/reference/types.md": render_types,
    ROOT / "docs/partners/data-dictionary.md": render_dictionary,
    ROOT / "docs/partners/llms.txt": render_llms,
}

if __name__ == "__main__":
    for page, render in GENERATED.items():
        page.write_text(render())
