"""The operators' page as it is served; tests/browser has what it does."""

import gzip
from html.parser import HTMLParser

import pytest

from service.operators.page_files import read_page_files
from tests.service.operators.test_state import WELL, instance
from tests.support.operators import READ, Answer, ask, operators

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"
# What a visit may load at most, compressed.
_MOST_BYTES = 60_000


async def get(path: str = "/", accept: str = BROWSER, **headers: str) -> Answer:
    """Without the token that figures take: the page has no data."""
    app = operators(lambda: instance(WELL), read=READ)
    return await ask(app, path, method="GET", token=None, body=b"", accept=accept, **headers)


async def test_a_browser_gets_the_page_and_a_program_the_index() -> None:
    page, index = await get(), await get(accept="*/*")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.body.startswith(b"<!doctype html>")
    assert "/overview" in index.json()["endpoints"]
    assert "accept" in page.headers["vary"].split(", ")


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/page/page.css", "/page/keys.html"])
async def test_nothing_foreign_runs_in_the_page(path: str) -> None:
    headers = (await get(path)).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy.pop("img-src") == "data:"
    own = {name for name, source in policy.items() if source == "'self'"}
    assert own == {"script-src", "style-src", "connect-src"}
    assert {source for name, source in policy.items() if name not in own} == {"'none'"}
    assert {"default-src", "frame-ancestors", "base-uri", "form-action"} < set(policy)
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


async def test_what_a_browser_has_is_not_sent_again() -> None:
    plain, zipped = await get(), await get(accept_encoding="gzip")
    assert gzip.decompress(zipped.body) == plain.body
    assert plain.headers["etag"] != zipped.headers["etag"]
    assert plain.headers["cache-control"] == "no-cache"
    again = await get(accept_encoding="gzip", if_none_match=zipped.headers["etag"])
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", zipped.headers["etag"])


async def test_only_files_of_the_page_are_served() -> None:
    for path in ("/page/", "/page/nothing.js", "/page/../page_files.py", "/page//etc/passwd"):
        assert (await get(path)).problem() == (404, "not_found")


def test_the_page_is_light_and_its_files_are_where_it_looks_for_them() -> None:
    """Files that each page names, relative to where it is, so that a proxy may put it below a prefix."""
    named: list[str] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag in ("script", "link"):
                named.extend(value or "" for name, value in attrs if name in ("src", "href"))

    files = read_page_files()
    assert {"index.html", "page.css", "page.js"} < set(files)
    assert sum(len(file.gzipped) for file in files.values()) < _MOST_BYTES
    for index, folder, expected in (
        ("index.html", "page/", ["page.css", "page.js"]),
        ("keys.html", "", ["page.css", "keys.css", "keys.js"]),
    ):
        named.clear()
        Links().feed(files[index].body.decode())
        assert named == ["data:,", *(f"{folder}{name}" for name in expected)]
        assert set(expected) <= set(files)
