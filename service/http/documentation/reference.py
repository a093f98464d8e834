"""The reference: the OpenAPI description as text, which Swagger UI replaces where it is installed."""

from html import escape
from importlib import resources
from string import Template
from typing import Any

import msgspec

from service.http.documentation.guide import TITLE
from service.http.openapi_headers import Document
from service.request.errors import CODES

_HEAD = '<link rel="stylesheet" href="/docs/swagger-ui.css">\n'
_SCRIPTS = '<script src="/docs/swagger-ui-bundle.js"></script>\n<script src="/docs/reference.js"></script>\n'


def render_reference(document: Document, *, with_swagger: bool) -> str:
    """Returns the page as HTML, from the OpenAPI `document`."""
    template = resources.files("service.http.documentation").joinpath("pages", "reference.html")
    operations = [_operation(path, item["get"]) for path, item in document["paths"].items()]
    errors = [
        f"<tr><td>{status}</td><td><code>{code}</code></td><td>{escape(advice)}</td></tr>"
        for code, (status, advice) in CODES.items()
    ]
    return Template(template.read_text(encoding="utf-8")).substitute(
        title=TITLE,
        description=escape(document["info"]["description"]),
        head=_HEAD if with_swagger else "",
        scripts=_SCRIPTS if with_swagger else "",
        operations="\n".join(operations),
        errors="\n".join(errors),
    )


def _operation(path: str, operation: dict[str, Any]) -> str:
    parameters = [
        f"<tr><td><code>{escape(parameter['name'])}</code></td><td>{escape(parameter.get('description', ''))}</td></tr>"
        for parameter in operation.get("parameters", ())
    ]
    table = f"<table><tbody>{''.join(parameters)}</tbody></table>" if parameters else ""
    content = operation["responses"]["200"].get("content", {}).get("application/json", {})
    shown = "".join(
        f"<details><summary>Example: {escape(name.replace('_', ' '))}</summary>"
        f'<pre tabindex="0">{_pretty(example["value"])}</pre></details>'
        for name, example in content.get("examples", {}).items()
    )
    return (
        f'<h2 id="{escape(operation["operationId"])}"><span class="method">GET</span> <code>{escape(path)}</code></h2>'
        f'<p>{escape(operation["summary"])}</p><p class="quiet">{escape(operation.get("description", ""))}</p>'
        f"{table}{shown}"
    )


def _pretty(value: Any) -> str:
    return escape(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
