"""The page that `check --html` writes, in a browser: its report of the made-up country, and one with long names."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from service.reports.html_page import render_page
from tests.browser.conftest import PHONE, SCHEMES, WIDE, ColorScheme, Opened
from tests.browser.judging import AXE, violations
from tests.browser.made import MARKUP
from tests.support.country import DEMAND, census, make_country
from tests.support.publishing import dry_run, publish
from tests.support.waiting import until
from tests.warehouse.comparisons import places
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.releases.catalog import Catalog
from warehouse.schema.findings import Finding, make_report

HEIGHT = 5000
LONG = "a_very_long_name_" * 12


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page about a drop in which ZIP codes, figures and a whole year are lost or changed."""
    folder = tmp_path_factory.mktemp("report")
    country = make_country()
    catalog = Catalog(folder / "data")
    publish(catalog, [str(country.write(folder / "first"))], PublishOptions())
    lost = country.rows_in("TX")[:7]
    for row in country.rows_in("VT", "NM", "FL"):
        country.figures[DEMAND][row] = None if row % 5 == 0 else (country.figures[DEMAND][row] or 0) * 2
    country.figures.pop(census(2015))
    country.keep([row for row in range(len(country)) if row not in lost])
    outcome = dry_run(catalog, [str(country.write(folder / "second"))], PublishOptions())
    return _written(folder / "report.html", outcome, "second")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page whose names are markup, or long."""
    findings = [
        Finding(severity="error", rule="foreign-file", message=name, file=name, table=name, samples=(f"{name} 1",))
        for name in (MARKUP, LONG)
    ]
    comparison = places(lost={MARKUP: 3, LONG: 4}, lost_samples=(MARKUP, LONG))
    outcome = PublishOutcome(result="refused", report=make_report(findings, comparison), manifest=None)
    return _written(tmp_path_factory.mktemp("odd") / "report.html", outcome, f"{MARKUP}/{LONG}")


def _written(path: Path, outcome: PublishOutcome, drop: str) -> str:
    path.write_text(render_page(outcome, drop))
    return path.as_uri()


def _unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


def test_axe_finds_nothing_serious_in_a_report(report: str, opened: Opened) -> None:
    with opened(report) as page:
        _unfold(page)
        page.evaluate(AXE)
        assert violations(page, "html", WIDE, PHONE) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_only_tables_scroll_sideways_on_a_phone(report: str, odd: str, opened: Opened, scheme: ColorScheme) -> None:
    for address in (report, odd):
        with opened(address, size=PHONE, scheme=scheme) as page:
            _unfold(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
            wide = "[...document.querySelectorAll('main *')].filter(one => getComputedStyle(one).overflowX === 'auto')"
            assert set(page.evaluate(f"{wide}.map(one => one.className)")) == {"wide"}


def test_tables_scroll_by_keyboard(report: str, opened: Opened) -> None:
    with opened(report, size=PHONE) as page:
        table = page.get_by_role("region", name="Largest movers")
        for _ in range(60):
            page.keyboard.press("Tab")
            if table.evaluate("one => one === document.activeElement"):
                break
        expect(table).to_be_focused()
        page.keyboard.press("ArrowRight")
        until(lambda: bool(table.evaluate("one => one.scrollLeft > 0")))


def test_a_report_is_short_until_its_tables_are_unfolded(report: str, opened: Opened) -> None:
    with opened(report, size=WIDE) as page:
        height = "document.documentElement.scrollHeight"
        assert page.evaluate(height) < HEIGHT
        expect(page.get_by_role("region", name="Rows, coverage and totals")).to_be_hidden()
        page.get_by_text("By state and table").click()
        expect(page.get_by_role("region", name="Rows, coverage and totals")).to_be_visible()


def test_losses_follow_the_verdict(report: str, opened: Opened) -> None:
    with opened(report, size=WIDE) as page:
        assert page.locator("h2").first.inner_text() == "Losses for partners"
        assert "population 2015" in page.locator(".losses").inner_text()
        assert page.locator("#losses").bounding_box()["y"] < 400  # type: ignore[index]  # it is there


def test_the_contents_lead_to_a_section(report: str, opened: Opened) -> None:
    with opened(report, size=PHONE) as page:
        page.get_by_role("navigation", name="Contents").get_by_role("link", name="States").click()
        expect(page.locator("#states")).to_be_in_viewport()


def test_a_printed_report_shows_folded_tables(report: str, opened: Opened) -> None:
    with opened(report) as page:
        table = page.get_by_role("table", name="Rows, coverage and totals")
        assert not table.is_visible()
        page.emulate_media(media="print")
        assert table.evaluate("one => one.checkVisibility({contentVisibilityAuto: true})")
        assert table.evaluate("one => one.getBoundingClientRect().height") > 100


def test_text_of_a_drop_stays_text(odd: str, opened: Opened) -> None:
    with opened(odd) as page:
        assert MARKUP in page.locator("h1").inner_text()
        assert MARKUP in page.locator(".message").all_inner_texts()
        assert page.locator("img, b").count() == 0
        assert page.title() != "owned"
