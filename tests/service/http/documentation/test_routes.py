"""The documentation: static, public, off unless switched on."""

import gzip

import msgspec
import pytest

from config.hatch_build import REFERENCE
from service.http.documentation.guide import render_guide
from service.http.documentation.routes import read_documentation
from service.http.openapi import About
from tests.support.brought import needs_brought
from tests.support.served import FORECAST, Served

_ASSETS = ["/docs/style.css", "/docs/reference.js", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"]


@pytest.mark.parametrize("path", ["/docs/", "/docs/reference", "/docs/openapi.json", "/docs/style.css"])
def test_it_is_off_by_default(worker: Served, path: str) -> None:
    assert worker.ask(path, key=None).status == 401
    assert worker.ask(path).status == 404


@pytest.mark.parametrize("path", ["/docs", "/docs/"])
def test_the_guide_needs_no_key_and_loads_its_stylesheet_alone(documented: Served, path: str) -> None:
    answer = documented.ask(path, key=None)
    assert (answer.status, answer.header("content-type")) == (200, "text/html; charset=utf-8")
    policy = set((answer.header("content-security-policy") or "").split("; "))
    assert {"default-src 'none'", "style-src 'self'"} < policy
    assert not [part for part in policy if "script" in part or "unsafe" in part]
    assert answer.body.decode() == render_guide(About())


def test_the_reference_has_a_policy_of_its_own(documented: Served) -> None:
    policy = documented.ask("/docs/reference", key=None).header("content-security-policy") or ""
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert (parts["default-src"], parts["script-src"], parts["connect-src"]) == ("'none'", "'self'", "'self'")
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("path", _ASSETS)
def test_what_the_pages_load_is_there_without_a_key(documented: Served, path: str) -> None:
    if "swagger" in path:
        needs_brought(REFERENCE)
    plain = documented.ask(path, key=None)
    zipped = documented.ask(path, key=None, Accept_Encoding="gzip")
    assert (plain.status, zipped.header("content-encoding")) == (200, "gzip")
    assert gzip.decompress(zipped.body) == plain.body
    again = documented.ask(path, key=None, Accept_Encoding="gzip", If_None_Match=zipped.header("etag") or "")
    assert (again.status, again.body) == (304, b"")


def test_the_description_is_the_one_that_keys_get_without_data(documented: Served) -> None:
    answer = documented.ask("/docs/openapi.json", key=None)
    assert answer.header("content-type") == "application/json"
    document = answer.json()
    assert document["paths"].keys() == documented.ask("/v1/openapi.json").json()["paths"].keys()
    assert document["externalDocs"]["url"] == "/docs/"
    forecast = document["paths"][FORECAST]["get"]["responses"]["200"]["content"]["application/json"]
    assert {example["summary"] for example in forecast["examples"].values()} == {"Made up."}


@pytest.mark.parametrize("path", ["/docs/x", "/docsx", "/docs/../v1/", "/docs/routes.py", "/docs/pages/style.css"])
def test_nothing_else_is_public(documented: Served, path: str) -> None:
    """Paths are looked up among the files in memory, never on the disk. A client of HTTP would resolve the dots."""
    assert documented.ask_by_wire(path, key=None).json()["code"] == "missing_api_key"
    assert documented.ask_by_wire(path).json()["code"] == "not_found"


def test_all_files_together_are_small() -> None:
    files = read_documentation(About(guide=True))
    assert sum(len(file.body) + len(file.gzipped) for file in files.values()) < 3 << 20
    assert len(files["/docs"].gzipped) + len(files["/docs/style.css"].gzipped) < 40_000
    assert msgspec.json.decode(files["/docs/openapi.json"].body)["openapi"].startswith("3.1")
