"""One documentation site as it is served: its files, read when they are first requested."""

import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import msgspec

from service.http.openapi import About, describe_api
from service.http.static_file import StaticFile, static_file

Name = Literal["all", "partners"]

INDEX = "index.html"
# Where the pages of partners are in each site.
_PARTNERS: dict[Name, str] = {"all": "partners/", "partners": ""}
# As in the pages.
_SAMPLE_URL = "http://127.0.0.1:8000"
_CONTACT = b"<!-- contact -->"
_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
# Pages have inline styles and pictures, search in a worker, and send trial requests to their own origin.
_POLICY = (
    b"default-src 'none'; script-src 'self'%b; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    b"font-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'"
)
_CACHE_CONTROL = b"public, max-age=300"
# Of each operation, in the description.
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


class Site:
    """The files of one site, by their paths in it. `about` is what samples and the description name."""

    def __init__(self, name: Name, about: About) -> None:
        root = Path(__file__).parent / "sites" / name
        self._about = about
        self._files = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
        self._description = f"{_PARTNERS[name]}openapi.json"
        self._read: dict[str, StaticFile] = {}

    @property
    def paths(self) -> list[str]:
        return [self._description, *self._files]

    def file(self, path: str) -> StaticFile | None:
        """Returns the file, or None if there is none."""
        if path not in self._read and path in self.paths:
            self._read[path] = self._load(path)
        return self._read.get(path)

    def _load(self, path: str) -> StaticFile:
        if path == self._description:
            document = describe_api(self._about)
            _add_samples(document, self._url)
            body = msgspec.json.encode(document)
        else:
            body = self._files[path].read_bytes()
        if path.endswith((".html", "search.json")):
            body = self._with_names(body)
        scripts = {sha256(script).digest() for script in _INLINE_SCRIPT.findall(body)}
        allowed = b"".join(b" 'sha256-%b'" % b64encode(digest) for digest in sorted(scripts))
        return static_file(path, body, _POLICY % allowed, _CACHE_CONTROL)

    def _with_names(self, body: bytes) -> bytes:
        """Returns the page with the instance's address in its samples, and with whom to ask."""
        return body.replace(_SAMPLE_URL.encode(), self._url.encode()).replace(_CONTACT, _contact(self._about.contact))

    @property
    def _url(self) -> str:
        return self._about.public_url or self._about.local_url or _SAMPLE_URL


def _contact(contact: str | None) -> bytes:
    if contact is None:
        return b""
    address = contact if "://" in contact else f"mailto:{contact}"
    return f'<p>Questions, keys, limits: <a href="{escape(address)}">{escape(contact)}</a></p>'.encode()


def _add_samples(document: dict[str, Any], base: str) -> None:
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
