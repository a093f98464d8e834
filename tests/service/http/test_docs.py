"""The documentation page: static, public, off unless switched on."""

from collections.abc import Iterator

import msgspec
import pytest

from config.settings import Settings
from service.http.docs import render_docs
from service.http.errors import CODES
from tests.support.served import FORECAST, Served, served


@pytest.fixture(scope="module")
def documented(settings: Settings) -> Iterator[Served]:
    with served(msgspec.structs.replace(settings, docs=True)) as running:
        yield running


def test_the_page_is_off_by_default(worker: Served) -> None:
    """And as unknown as any other path."""
    assert worker.ask("/docs/", key=None).status == 401
    assert worker.ask("/docs/").status == 404


@pytest.mark.parametrize("path", ["/docs", "/docs/"])
def test_the_page_needs_no_key(documented: Served, path: str) -> None:
    """HTML that a browser may keep, and that may load nothing from anywhere."""
    answer = documented.ask(path, key=None)
    assert (answer.status, answer.header("content-type")) == (200, "text/html; charset=utf-8")
    policy = answer.header("content-security-policy") or ""
    assert "default-src 'none'" in policy
    assert answer.body.decode() == render_docs()


@pytest.mark.parametrize("path", ["/docs/x", "/docsx", "/docs/../v1/"])
def test_nothing_else_is_public(documented: Served, path: str) -> None:
    """Only the page itself is."""
    assert documented.ask(path, key=None).json()["code"] == "missing_api_key"
    assert documented.ask(path).json()["code"] == "not_found"


def test_the_page_takes_no_other_method(documented: Served) -> None:
    """As every endpoint."""
    assert documented.ask("/docs/", "POST", key=None).status == 405
    assert documented.ask("/docs/", "HEAD", key=None).status == 200


def test_the_page_runs_no_script_and_names_every_code() -> None:
    """It is written from what the service raises."""
    page = render_docs()
    assert "<script" not in page
    assert "src=" not in page
    assert FORECAST in page
    assert all(f"<code>{code}</code>" in page for code in CODES)
