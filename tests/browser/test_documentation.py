"""The documentation on the partners' listener, in a browser."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE, WIDE, Opened
from tests.browser.judging import AXE, violations
from tests.support.served import Served
from tests.support.waiting import PATIENCE

expect.set_options(timeout=PATIENCE * 1000)


def address(documented: Served, path: str) -> str:
    return f"http://127.0.0.1:{documented.port}{path}"


@pytest.mark.parametrize(("path", "shown"), [("/docs/", "#errors"), ("/docs/reference", ".opblock")])
def test_nothing_scrolls_sideways_on_a_phone(documented: Served, opened: Opened, path: str, shown: str) -> None:
    with opened(address(documented, path), size=PHONE) as page:
        expect(page.locator(shown).first).to_be_attached()
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]


def test_rows_of_tables_are_blocks_on_a_phone(documented: Served, opened: Opened) -> None:
    with opened(address(documented, "/docs/#errors"), size=PHONE) as page:
        row = page.get_by_role("row").filter(has_text="missing_parameter")
        advice = row.get_by_role("cell").last.bounding_box()
        assert advice is not None
        assert advice["width"] > 0.8 * PHONE[0]


def test_axe_finds_no_violation_in_the_guide(documented: Served, opened: Opened) -> None:
    with opened(address(documented, "/docs/"), errors=True) as page:
        page.evaluate(AXE)
        assert violations(page, "html", WIDE, PHONE) == []


def test_a_request_can_be_tried(documented: Served, opened: Opened) -> None:
    with opened(address(documented, "/docs/reference")) as page:
        page.get_by_role("button", name="Authorize").click()
        page.locator(".auth-container input").fill(documented.key)
        page.locator(".auth-container").get_by_role("button", name="Apply credentials").click()
        page.locator(".auth-container").get_by_role("button", name="Close").click()
        forecast = page.locator("#operations-forecast-getPopulationHousingForecast")
        forecast.locator(".opblock-summary-control").click()
        forecast.get_by_role("button", name="Try it out").click()
        for parameter in ("city_name", "state_code"):
            forecast.locator(f"tr[data-param-name={parameter}] input").fill("")
        forecast.get_by_role("button", name="Execute").click()
        shown = forecast.locator(".live-responses-table .response")
        expect(shown.locator(".response-col_status").first).to_contain_text("200")
        expect(shown).to_contain_text("Dickinson, AL")


def test_every_word_of_the_reference_can_be_read(documented: Served, opened: Opened) -> None:
    with opened(address(documented, "/docs/reference")) as page:
        page.locator("#operations-forecast-getPopulationHousingForecast .opblock-summary-control").click()
        expect(page.locator(".opblock-body").first).to_be_visible()
        page.evaluate(AXE)
        found = page.evaluate("() => axe.run('html', {runOnly: ['color-contrast']})")["violations"]
        assert [(node["html"], node["failureSummary"]) for rule in found for node in rule["nodes"]] == []
