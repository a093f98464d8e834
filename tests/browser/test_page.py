"""The operators' page, in a browser, from figures made by hand."""

import re
from functools import partial
from itertools import count, cycle
from typing import Any

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from service.operators.overview import Event, History, Reason, Verdict
from tests.browser.conftest import PHONE, WIDE, Opened
from tests.browser.double import Double
from tests.browser.judging import AXE, violations
from tests.browser.made import MARKUP, NEWER, OLDER, empty, history, unavailable, under_load, well, without_cache
from tests.support.operators import READ
from tests.support.waiting import PATIENCE, until

UNREACHABLE = "Partners get answers. The shared cache is unreachable. DuckDB answers instead; nothing is lost."

# Counts changes in live regions, and in the figures.
_LISTEN = """() => {
  window.heard = window.seen = 0;
  const all = {subtree: true, childList: true, characterData: true};
  const watch = (count, of) => new MutationObserver(count).observe(of, all);
  document.querySelectorAll("[role=status], [role=alert], [aria-live]").forEach(of => watch(() => heard++, of));
  watch(() => seen++, document.querySelector("#figures"));
}"""

# Where everything is, after each of the next updates: what it was in the first, and every place that is another later.
_MOVED = """updates => new Promise(resolve => {
  const all = "section, figure, dl, h2, h3, p, summary, table:not(.scroll table)"; // those scroll by themselves
  const places = () => [...document.querySelectorAll(all)].map(of => {
    const {top, height} = of.getBoundingClientRect();
    return of.checkVisibility() ? `${Math.round(top + scrollY)}, ${Math.round(height)}` : "hidden";
  });
  let first = null;
  const moved = new Set();
  new MutationObserver(() => {
    const now = places();
    first ??= now;
    document.querySelectorAll(all).forEach((of, at) => {
      if (now[at] !== first[at]) moved.add(`${of.tagName} ${of.id}: ${first[at]}, then ${now[at]}`);
    });
    if (--updates === 0) resolve([...moved]);
  }).observe(document.querySelector("#gist"), {subtree: true, childList: true, characterData: true});
})"""

expect.set_options(timeout=PATIENCE * 1000)


def sentence(page: Page) -> Any:
    return page.locator("#sentence")


def row(page: Page, table: str, name: str) -> list[str]:
    """The cells of the row of `table` that `name` begins."""
    found = page.locator(f"{table} tbody tr").filter(has=page.get_by_role("rowheader", name=name, exact=True))
    return [cell.strip() for cell in found.locator("th, td").all_inner_texts()]


def test_the_page_begins_with_the_essentials(double: Double, opened: Opened) -> None:
    with opened(double.url) as page:
        expect(sentence(page)).to_have_text("All is well.")
        expect(page.locator("#since")).to_have_text(re.compile("^Since .*, for 2 h 14 min.$"))
        gist = page.locator("#gist").inner_text()
        assert gist == (
            "912 requests a second, none failed. 92.9 % of answers come from near caches, 5.0 % from Redis, 2.0 % from "
            f"DuckDB. Half take at most 0.21 ms, 99 % at most 3.4 ms. Release {NEWER}, 2 d 3 h old."
        )
        assert page.title() == "OK · forecast-1"
        assert page.locator("#gist").bounding_box()["y"] < 250  # type: ignore[index]  # it is there


def test_every_figure_of_an_overview_is_on_the_page(double: Double, opened: Opened) -> None:
    with opened(double.url) as page:
        expect(sentence(page)).to_have_text("All is well.")
        assert row(page, "#answers", "Hit rate") == ["Hit rate", "97.9 %", "97.1 %"]
        assert row(page, "#answers", "from DuckDB (missed)")[1:] == ["2.0 %", "2.8 %"]
        assert row(page, "#answers", "unknown names a second")[1:] == ["8.53", "8.06"]
        assert row(page, "#answers", "429 over a limit")[1:] == ["9.60", "9.60"]
        assert row(page, "#answers", "p99.9")[1:] == ["22 ms", "25 ms"]
        assert (
            "Hit rate in the 5 minutes before: 98.1 %; in the 5 minutes after: 94.2 %."
            in page.locator("#switch").inner_text()
        )
        assert [row(page, "#releases", release)[1] for release in (NEWER, OLDER)] == ["current", "earlier"]
        assert row(page, "#ranking-limited", "9xTt2mLr0aQe · Bolt Mortgages")[1] == "34,560"
        acme = row(page, "#partners", "Acme Realty")
        assert acme[1:4] == ["1,930,000", "536", "200: 1,929,960, 404: 30, 429: 10"]
        assert acme[4:8] == ["0.20 ms", "4.0 ms", "98.1 %", "87.0 %"]
        assert (acme[8], acme[9].endswith("429 rate_limited")) == ("89.3 %", True)
        page.get_by_label("Filter").fill("404 no_MATCH")
        assert page.locator("#partners tbody th").all_inner_texts() == ["Cedar <b>Homes</b>"]
        page.get_by_label("Filter").fill("nobody")
        expect(page.locator("#partners tbody")).to_have_text("No partner matches the filter.")
        assert row(page, "#ranking-refused", "203.0.113.77 · unknown key")[1] == "3,960"
        assert row(page, "#stores", "cache")[1:] == ["up", "124 MB of 512 MB", "1,290", "0.30 ms", "–"]
        assert row(page, "#stores", "keys")[-1] == "to 2 of 2 workers"
        assert row(page, "#workers", "4721")[1:4] == ["serving", NEWER, "456"]
        assert "Free disk\n41 GB of 107 GB" in page.locator("#machine").inner_text()
        assert "Expire within 7 days\n1" in page.locator("#keys").inner_text()
        assert "a key of Acme Realty was issued" in page.locator("#events").inner_text()


def test_what_is_wrong_is_said_with_its_reasons_and_since_when(double: Double, opened: Opened) -> None:
    with opened(double.url) as page:
        expect(sentence(page)).to_have_text("All is well.")
        double.overview = without_cache
        expect(sentence(page)).to_have_text(UNREACHABLE)
        expect(page.locator("#since")).to_have_text(re.compile("^Since .*, for 1 min.$"))
        assert row(page, "#stores", "cache")[1] == "unreachable"
        step = page.locator("#reasons li")
        expect(step).to_have_text("Begin with docker compose ps -a cache · Runbook")
        with page.expect_popup() as opening:
            step.get_by_role("link", name="Runbook").click()
        expect(opening.value.locator("#forecastcacheaway")).to_be_in_viewport()
        opening.value.close()
        double.overview = unavailable
        expect(page).to_have_title("Unavailable · forecast-1")
        expect(page.locator("#reasons li")).to_have_text(
            [re.compile(r"no answer is cached.* \(since "), re.compile("Worker 4720 does not respond")]
        )
        assert "97.5 % of them failed (5xx)" in page.locator("#gist").inner_text()
        assert row(page, "#workers", "4720")[1] == "hanging"
        assert row(page, "#answers", "503 unavailable")[1] == "890"


def test_an_instance_that_knows_nothing_yet_has_no_false_figures(double: Double, opened: Opened) -> None:
    double.overview = empty
    with opened(double.url) as page:
        expect(page.locator("#gist")).to_have_text("No requests in the last 2 s. No release is current.")
        assert row(page, "#answers", "Hit rate")[1:] == ["–", "–"]
        assert page.locator("#span-hour").inner_text() == "Last 2 s"
        assert page.locator("#workers tbody").inner_text() == "No worker runs."


def test_text_from_requests_stays_text(double: Double, opened: Opened) -> None:
    made = well()
    partners = (replace(made.partners[0], name=MARKUP),)
    verdict = Verdict("degraded", MARKUP, made.at, (Reason(MARKUP, made.at),))
    event = Event(made.at, "key", MARKUP)
    double.overview = lambda: well(verdict=verdict, partners=partners, events=(event,))
    with opened(double.url) as page:
        expect(sentence(page)).to_have_text(MARKUP)
        assert row(page, "#ranking-queries", MARKUP)[0] == row(page, "#partners", MARKUP)[0] == MARKUP
        assert page.locator("#events td").last.inner_text() == MARKUP
        assert page.locator("main img").count() == page.locator("main b", has_text="city").count() == 0
        assert "owned" not in page.title()


def test_every_chart_has_its_table_whose_rows_stay_while_newer_ones_come(double: Double, opened: Opened) -> None:
    with opened(double.url) as page:
        expect(page.locator("figure canvas")).to_have_count(9)
        assert page.locator("figure").count() == page.locator("figure details table").count() == 9
        page.get_by_label("10 minutes").check()
        figure = page.get_by_role("figure", name="Answers a second")
        figure.locator("summary").click()
        expect(figure.locator("tbody tr").nth(600)).to_be_attached()
        row_before = figure.locator("tbody tr").first.element_handle()
        before = row_before.inner_text()
        page.wait_for_function("row => row.rowIndex > 5", arg=row_before)
        assert row_before.inner_text() == before  # newer rows are put above it, so that a selection survives
        newest, legend = figure.evaluate(
            "figure => [figure.querySelector('tbody tr'), figure.querySelector('.legend')].map(of =>"
            " [...of.querySelectorAll('td, b')].map(node => node.textContent))"
        )
        assert newest == legend
        assert re.match(
            "Chart of the last 10 minutes. near: now .*",
            figure.get_by_role("img").get_attribute("aria-label") or "",
        )
        page.get_by_label("24 hours").check()
        expect(figure.locator("tbody tr")).to_have_count(1441)


def test_without_the_library_there_are_tables_and_a_sentence(double: Double, opened: Opened) -> None:
    with opened("about:blank", errors=True) as page:
        page.route("**/uplot/**", lambda route: route.fulfill(status=404))
        page.goto(double.url)
        expect(page.get_by_text("Charts are not installed here")).to_be_visible()
        expect(page.locator("figure table:visible")).to_have_count(9)
        expect(page.locator("figure canvas")).to_have_count(0)
        rate = page.get_by_role("figure", name="Hit rate by release").locator("tbody td").first.inner_text()
        assert re.fullmatch(r"9[78]\.\d %", rate)  # of a moving minute


def test_a_lost_connection_is_said_and_mended(double: Double, opened: Opened) -> None:
    with opened(double.url, errors=True) as page:
        expect(sentence(page)).to_have_text("All is well.")
        double.stop()
        expect(sentence(page)).to_have_text(
            re.compile(r"No connection to the instance since [\d:]+. The figures below are old.")
        )
        expect(page.locator("#since")).to_contain_text("Last verdict: All is well.")
        expect(page.locator("#updated")).to_have_text(re.compile(r"Old figures, from [\d:]+"))
        assert page.title() == "No connection · forecast-1"
        assert page.locator("#figures").evaluate("of => getComputedStyle(of).filter") == "grayscale(1)"
        double.overview = without_cache
        double.start()
        expect(sentence(page)).to_have_text(re.compile("The shared cache is unreachable"))
        expect(page.locator("#updated")).to_have_text(re.compile("Live, "))
        assert page.locator("body.old").count() == 0


def test_an_instance_that_falls_silent_counts_as_lost(double: Double, opened: Opened) -> None:
    """The connection stands, but nothing comes: within 6 s. The page's clock is put forward."""
    with opened("about:blank") as page:
        page.clock.install()
        page.goto(double.url)
        expect(sentence(page)).to_have_text("All is well.")
        double.silent = True
        page.wait_for_timeout(500)  # what was under way has come
        page.clock.fast_forward(7000)
        expect(sentence(page)).to_have_text(re.compile("No connection to the instance"))
        expect(page.locator("#reasons")).to_have_text(
            "Last attempt: the instance sends no figures. This page keeps trying."
        )


def test_another_version_of_the_service_brings_its_own_page(double: Double, opened: Opened) -> None:
    with opened(double.url) as page:
        expect(sentence(page)).to_have_text("All is well.")
        page.evaluate("document.body.dataset.old = 'yes'")
        double.overview = lambda: well(instance=replace(well().instance, version="0.2.0"))
        expect(page.locator("body[data-old]")).to_have_count(0)
        expect(page.locator("#instance")).to_have_text("forecast-1, version 0.2.0")


def test_a_reader_can_freeze_the_figures(double: Double, opened: Opened) -> None:
    with opened(double.url) as page:
        expect(sentence(page)).to_have_text("All is well.")
        page.get_by_role("button", name="Pause").click()
        double.overview = unavailable
        expect(sentence(page)).to_have_text(re.compile("Partners get no answers"))
        expect(page.locator("#updated")).to_have_text(re.compile("Paused at "))
        assert row(page, "#workers", "4720")[1] == "serving"
        page.get_by_role("button", name="Pause").click()
        assert row(page, "#workers", "4720")[1] == "hanging"


def test_with_a_read_token_the_page_asks_for_it(opened: Opened) -> None:
    double = Double(read=READ).start()
    try:
        with opened(double.url, errors=True) as page:
            field = page.get_by_label("Operators’ token")
            expect(field).to_be_focused()
            assert page.locator("#figures").is_hidden()
            for wrong in ("another-token-altogether", "schlüssel"):
                field.fill(wrong)
                field.press("Enter")
                expect(page.get_by_role("alert")).to_have_text("This token is not accepted here. It was not stored.")
                assert page.evaluate("sessionStorage.length") == 0
            field.fill(READ)
            field.press("Enter")
            expect(sentence(page)).to_have_text("All is well.")
            expect(page.locator("figure canvas")).to_have_count(9)
            assert page.evaluate("[{...sessionStorage}, localStorage.length, document.cookie]") == [
                {"forecast.token": READ},
                0,
                "",
            ]
            page.reload()
            expect(sentence(page)).to_have_text("All is well.")
            page.get_by_role("button", name="Forget the token").click()
            expect(field).to_be_visible()
            assert page.evaluate("sessionStorage.length") == 0
    finally:
        double.stop()


def short_history(now: float, seconds: float, _: float) -> History:
    """Of a few rows in each table: as wide as many, and drawn sooner."""
    return history(now, seconds, seconds / 20)


def test_axe_finds_no_violation(double: Double, opened: Opened) -> None:
    """Wide and on a phone, light and dark: while much is wrong, in every verdict, and in what asks for a token."""
    double.history = short_history  # of longer tables, it reads each cell
    double.overview = unavailable
    with opened(double.url, errors=True) as page:
        expect(page.locator("figure canvas")).to_have_count(9)
        page.locator("summary").first.click()
        page.evaluate(AXE)
        assert violations(page, "html", WIDE, PHONE) == []
        for overview, level in ((well, "OK"), (without_cache, "Degraded")):
            double.overview = overview
            expect(page).to_have_title(re.compile(level))
            assert violations(page, "#verdict", PHONE) == []
        double.stop()
        expect(page).to_have_title(re.compile("No connection"))
        assert violations(page, "#verdict", PHONE) == []
        page.evaluate("document.querySelector('#token').hidden = false")
        assert violations(page, "#token", PHONE) == []
        double.start()


def _is_wide(page: Page, pixels: int) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth") == pixels)


def test_nothing_scrolls_sideways_on_a_phone_nor_when_it_is_turned(double: Double, opened: Opened) -> None:
    double.history = short_history
    with opened(double.url, (844, 390)) as page:
        expect(page.locator("figure canvas")).to_have_count(9)
        for summary in page.locator("summary").all():
            summary.click()
        for width in (844, 390, 320):
            page.set_viewport_size({"width": width, "height": 844})
            until(partial(_is_wide, page, width))
        assert page.get_by_role("cell", name="serving").count() == 2, "the layout keeps what tables are"


@pytest.mark.parametrize("size", [WIDE, (320, 844)], ids=str)
def test_live_figures_move_nothing(double: Double, opened: Opened, size: tuple[int, int]) -> None:
    """However long the words are that they need. Who reads or clicks is not to follow a page that jumps."""
    loads = cycle((0.004, 950_000.0, 12.0))
    double.overview = lambda: under_load(next(loads))
    double.history = short_history
    with opened(double.url, size) as page:
        expect(page.locator("figure canvas")).to_have_count(9)
        for summary in page.locator("summary").all():
            summary.click()
        page.evaluate(_MOVED, 6)  # room for what is longest is made once
        assert page.evaluate(_MOVED, 12) == []


def test_everything_is_reached_by_keyboard_in_order(double: Double, opened: Opened) -> None:
    with opened(double.url) as page:
        expect(page.locator("figure canvas")).to_have_count(9)
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        expect(page.get_by_text("Table: hit rate by release")).to_be_visible()
        reached = []
        for _ in range(7):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.value || document.activeElement.textContent"))
            assert page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 2
        assert reached == [
            "Skip to the verdict",
            "API keys",
            "Pause",
            "2h",
            "Table: answers a second",
            "Table: hit rate by tier",
            "Table: hit rate by release",
        ]
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name="Table: Hit rate by release")).to_be_visible()


def test_a_screen_reader_hears_the_verdict_and_not_each_second(double: Double, opened: Opened) -> None:
    connections = count(100)
    double.overview = lambda: well(instance=replace(well().instance, connections=next(connections)))
    with opened(double.url) as page:
        expect(sentence(page)).to_have_text("All is well.")
        page.evaluate(_LISTEN)
        page.wait_for_function("() => seen >= 3")
        assert page.evaluate("heard") == 0
        double.overview = without_cache
        page.wait_for_function("() => heard > 0")


def test_the_page_brings_everything_along_and_moves_nothing(double: Double, opened: Opened) -> None:
    with opened("about:blank") as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(double.url)
        expect(page.locator("figure canvas")).to_have_count(9)
        assert [url for url in asked if not url.startswith(double.url)] == ["data:,"][: "data:," in asked]
        assert page.evaluate("document.getAnimations().length") == 0
