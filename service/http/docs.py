"""The documentation page: static, without scripts, written from the OpenAPI description when a worker starts."""

from html import escape
from importlib import resources
from string import Template
from typing import Any

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp

from service.http.areas import AREAS
from service.http.errors import CODES
from service.http.openapi import describe_api
from service.http.reply import Reply

PUBLIC_PATH = "/docs"


def docs_routes() -> list[HTTPRouteHandler]:
    body = render_docs().encode()
    headers = (
        (b"content-type", b"text/html; charset=utf-8"),
        (b"cache-control", b"public, max-age=3600"),
        (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
        (b"x-content-type-options", b"nosniff"),
    )

    @get(PUBLIC_PATH)
    async def docs() -> ASGIApp:
        return Reply(200, headers, body, "answered")

    return [docs]


def render_docs() -> str:
    document = describe_api()
    template = resources.files("service.http").joinpath("docs.html").read_text(encoding="utf-8")
    operations = [_operation(path, item["get"]) for path, item in document["paths"].items()]
    errors = [
        f"<tr><td>{status}</td><td><code>{code}</code></td><td>{escape(advice)}</td></tr>"
        for code, (status, advice) in CODES.items()
    ]
    return Template(template).substitute(
        title=escape(document["info"]["title"]),
        description=escape(document["info"]["description"]),
        path=AREAS[0].path,
        operations="\n".join(operations),
        errors="\n".join(errors),
    )


def _operation(path: str, operation: dict[str, Any]) -> str:
    parameters = [
        f"<tr><td><code>{escape(parameter['name'])}</code></td><td>{escape(parameter.get('description', ''))}</td></tr>"
        for parameter in operation.get("parameters", ())
    ]
    table = f"<table><tbody>{''.join(parameters)}</tbody></table>" if parameters else ""
    examples = operation["responses"]["200"]["content"]["application/json"].get("examples", {})
    shown = "".join(
        f"<details><summary>Example: {escape(name.replace('_', ' '))}</summary>"
        f"<pre>{_pretty(example['value'])}</pre></details>"
        for name, example in examples.items()
    )
    return (
        f'<h2><span class="method">GET</span> <code>{escape(path)}</code></h2>'
        f'<p>{escape(operation["summary"])}</p><p class="quiet">{escape(operation.get("description", ""))}</p>'
        f"{table}{shown}"
    )


def _pretty(value: Any) -> str:
    return escape(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
