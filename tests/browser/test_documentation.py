"""The documentation on both listeners, in a browser."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, WIDE, Opened
from tests.browser.double import Double
from tests.browser.judging import AXE, violations
from tests.support.served import Served
from tests.support.waiting import PATIENCE

expect.set_options(timeout=PATIENCE * 1000)

_FORECAST = "/docs/api.html#get-/v1/population-housing-forecast"
# Rules that the generator and RapiDoc break on every page: landmarks without names, and a main part in another.
_MODERATE = {"landmark-unique", "landmark-main-is-top-level", "landmark-no-duplicate-main"}


def address(documented: Served, path: str) -> str:
    return f"http://127.0.0.1:{documented.port}{path}"


def serious(page: Page) -> list[str]:
    page.add_style_tag(content="* { transition: none !important }")  # colours between two schemes are judged otherwise
    page.evaluate(AXE)
    return [one for one in violations(page, "html", WIDE, PHONE) if json.loads(one)["id"] not in _MODERATE]


@pytest.mark.parametrize(("path", "shown"), [("/docs/", "h1"), ("/docs/errors.html", "h1"), (_FORECAST, "api-request")])
def test_nothing_scrolls_sideways_on_a_phone(documented: Served, opened: Opened, path: str, shown: str) -> None:
    with opened(address(documented, path), size=PHONE) as page:
        expect(page.locator(shown).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


@pytest.mark.parametrize("path", ["/docs/", "/docs/errors.html"])
def test_axe_finds_nothing_serious_in_a_page(documented: Served, opened: Opened, path: str) -> None:
    with opened(address(documented, path), errors=True) as page:
        assert serious(page) == []


def test_axe_finds_nothing_serious_in_an_endpoint(documented: Served, opened: Opened) -> None:
    with opened(address(documented, _FORECAST), errors=True) as page:
        expect(page.locator("api-request")).to_be_visible()
        assert serious(page) == []


def test_search_finds_a_page(documented: Served, opened: Opened) -> None:
    with opened(address(documented, "/docs/")) as page:
        page.get_by_role("button", name="Search").first.click()
        expect(page.get_by_role("combobox")).to_be_focused()
        page.keyboard.type("rate_limited")
        expect(page.get_by_role("option").filter(has_text="Errors on purpose")).to_be_visible()


def test_a_request_can_be_tried_with_the_example_as_it_is(documented: Served, opened: Opened) -> None:
    """Only the ZIP code is filled in, so that a change of it alone gets an answer."""
    with opened(address(documented, _FORECAST)) as page:
        page.locator("#link-auth").click()
        page.get_by_placeholder("api-token").fill(documented.key)
        page.locator("rapi-doc").get_by_role("button", name="Set").first.click()
        page.goto(address(documented, _FORECAST))
        expect(page.locator("#input-request-param-city_name")).to_have_value("")
        page.get_by_role("button", name="Try").click()
        expect(page.get_by_text("OK:200")).to_be_visible()


def test_the_operators_listener_shows_all_pages_and_their_pictures(double: Double, opened: Opened) -> None:
    with opened(f"{double.url}docs/design/request.html") as page:
        expect(page.locator("div.mermaid").first).to_be_visible()  # the text is a <pre> until it is drawn
        page.get_by_role("link", name="Partners").first.click()
        expect(page.locator("h1")).to_contain_text("Your first request")
