"""The data dictionary, and the list of the partners' pages for language models."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from service.http.openapi import describe_api
from tests.support.markdown import ROOT, written_page, written_table

# Extensions of the OpenAPI description, which `warehouse.areas.fields.figure` sets.
_OF_FIGURES = {"x-unit": "Unit", "x-source": "Source", "x-years": "Years"}
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def render_dictionary() -> str:
    schemas = describe_api()["components"]["schemas"]
    parts: list[str] = []
    for name, schema in schemas.items():
        if schema.get("properties"):
            text = " ".join(schema.get("description", "").replace("``", "`").split())  # Python 3.13 removes indents
            parts += [f"## {name}", text, written_table(("member", "type", "null", "meaning"), _members(schema))]
    return written_page(
        "service/http/openapi.py",
        "Data dictionary",
        "Every member of every answer. [What the figures mean](figures.md) explains the sources, and what a figure is "
        "in each year.",
        *parts,
    )


def _members(schema: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, one in schema["properties"].items():
        facts = (f"{label}: {one[extension]}." for extension, label in _OF_FIGURES.items() if extension in one)
        meaning = " ".join([one.get("description", ""), *facts])
        yield f"`{name}`", _type(one), "yes" if _may_be_null(one) else "no", meaning


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


def render_llms() -> str:
    """The partners' pages with their first sentences, as https://llmstxt.org describes the form."""
    pages = sorted((ROOT / "docs/partners").glob("*.md"), key=lambda page: (page.name != "index.md", page.name))
    lines = [
        "# Population and housing forecasts",
        "",
        "> A read-only HTTP API by ZIP code or by city and state. Every request needs the header x-api-key.",
        "",
        "## Pages",
        "",
        *(f"- [{title}]({page.stem}.html): {sentence}" for page in pages for title, sentence in [_beginning(page)]),
        "- [OpenAPI description](openapi.json): Every endpoint, parameter, member and error, for programs.",
    ]
    return "\n".join(lines) + "\n"


def _beginning(page: Path) -> tuple[str, str]:
    """Returns the title and the first sentence."""
    title, text, *_ = page.read_text().partition("# ")[2].split("\n\n")
    words = " ".join(_LINK.sub(r"\1", text).split())
    return title, re.split(r"(?<=[.:]) ", words)[0]
