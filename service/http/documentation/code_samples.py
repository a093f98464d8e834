"""Code samples of the API reference: each operation with the examples of its parameters, in three languages."""

from typing import Any
from urllib.parse import urlencode

_CURL = """curl {saved}-H "x-api-key: $KEY" '{url}'"""
_PYTHON = """import os
from urllib.request import Request, urlopen

request = Request("{url}", headers={{"x-api-key": os.environ["KEY"]}})
with urlopen(request, timeout=10) as answer:
    body = answer.read()
print(body[:1000])"""
_JAVASCRIPT = """const answer = await fetch("{url}", {{
  headers: {{ "x-api-key": process.env.KEY }},
}});
console.log(answer.status, (await answer.text()).slice(0, 1000));"""
_LANGUAGES = (("Shell", "curl", _CURL), ("Python", "Python", _PYTHON), ("JavaScript", "JavaScript", _JAVASCRIPT))


def add_code_samples(document: dict[str, Any], base: str) -> None:
    """Adds samples to each operation of the OpenAPI `document`, for the service at `base`.

    The member is an extension that API references read (https://redocly.com/docs-legacy/api-reference-docs/spec-extensions).
    """
    for path, item in document["paths"].items():
        url = base + _target(path, item["get"]["parameters"])
        # a terminal cannot show a file
        saved = f"--output {url.rpartition('/')[2]} " if path.endswith("{file}") else ""
        item["get"]["x-codeSamples"] = [
            {"lang": language, "label": label, "source": sample.format(url=url, saved=saved)}
            for language, label, sample in _LANGUAGES
        ]


def _target(path: str, parameters: list[dict[str, Any]]) -> str:
    for parameter in parameters:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
    query = {one["name"]: one["example"] for one in parameters if one["in"] == "query" and "example" in one}
    return f"{path}?{urlencode(query, doseq=True)}" if query else path
