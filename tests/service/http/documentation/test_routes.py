"""The documentation: pages, public, off unless switched on."""

import gzip
import re
from base64 import b64encode
from hashlib import sha256

import pytest

from service.http.documentation.site import Site
from service.http.openapi import About
from tests.support.served import FORECAST, Served

_PAGES = ["/docs/", "/docs/requests.html", "/docs/api.html"]
_ASSETS = ["/docs/site.css", "/docs/api.js", "/docs/search.json", "/docs/openapi.json"]


@pytest.mark.parametrize("path", ["/docs", *_PAGES, *_ASSETS])
def test_it_is_off_by_default(worker: Served, path: str) -> None:
    assert worker.ask(path, key=None).status == 401
    assert worker.ask(path).status == 404


@pytest.mark.parametrize("path", _PAGES)
def test_a_page_needs_no_key_and_runs_only_its_own_scripts(documented: Served, path: str) -> None:
    answer = documented.ask(path, key=None)
    assert (answer.status, answer.header("content-type")) == (200, "text/html; charset=utf-8")
    policy = dict(part.split(" ", 1) for part in (answer.header("content-security-policy") or "").split("; "))
    inline = {sha256(script).digest() for script in re.findall(rb"<script>(.*?)</script>", answer.body, re.DOTALL)}
    assert set(policy["script-src"].split()) == {"'self'", *(f"'sha256-{b64encode(one).decode()}'" for one in inline)}
    assert (policy["default-src"], policy["frame-ancestors"], policy["connect-src"]) == ("'none'", "'none'", "'self'")


def test_without_the_slash_it_leads_to_the_folder(documented: Served) -> None:
    """Links between the pages are relative."""
    answer = documented.ask_by_wire("/docs", key=None)
    assert (answer.status, answer.header("location")) == (308, "/docs/")


def test_the_root_leads_a_browser_to_it_and_a_program_to_an_error(documented: Served) -> None:
    answer = documented.ask_by_wire("/", key=None, Accept="text/html,*/*;q=0.8")
    assert (answer.status, answer.header("location")) == (303, "/docs/")
    assert documented.ask_by_wire("/", key=None).json()["code"] == "not_found"


@pytest.mark.parametrize("path", _ASSETS)
def test_what_the_pages_load_is_there_without_a_key(documented: Served, path: str) -> None:
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


@pytest.mark.parametrize("path", ["/docs/x", "/docsx", "/docs/../v1/", "/docs/index.md", "/docs/operate/index.html"])
def test_nothing_else_is_public(documented: Served, path: str) -> None:
    """Pages for operators are on their listener. A client of HTTP would resolve the dots."""
    assert documented.ask_by_wire(path, key=None).json()["code"] == "missing_api_key"
    assert documented.ask_by_wire(path).json()["code"] == "not_found"


def _page(about: About, path: str = "index.html") -> str:
    file = Site("partners", about).file(path)
    assert file is not None
    return file.body.decode()


def test_it_names_the_instances_address_and_whom_to_ask() -> None:
    page = _page(About("https://data.example", "help@data.example"))
    assert "http://127.0.0.1:8000" not in page
    assert "https://data.example" in page
    assert '<a href="mailto:help@data.example">help@data.example</a>' in page
    assert '<a href="https://data.example/help">' in _page(About(contact="https://data.example/help"))
    assert "http://127.0.0.1:9000" in _page(About(local_url="http://127.0.0.1:9000"))
    assert "http://127.0.0.1:8000" in _page(About())
    assert "Questions" not in _page(About())
