"""The page for keys, in a browser, with the real application on a real key store."""

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from playwright.sync_api import Locator, Page, Route, expect

from service.quota import last_errors
from service.quota.names import LAST_USED, MONTH_TOTAL, counts_name, day_total, field_name, month_of
from tests.browser.conftest import PHONE, WIDE, Opened
from tests.browser.double import Double
from tests.browser.judging import AXE, violations
from tests.browser.made import MARKUP
from tests.browser.test_page import row
from tests.support.last_errors import failed
from tests.support.operators import KEYS, READ
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import until

QUOTA = {"requests": 1_000_000, "period": "month", "warn_at": 0.9}
BASIC = {"areas": ["forecast"], "rate": {"requests": 50, "seconds": 1, "burst": 100}, "quota": QUOTA}


class Sales:
    """An instance with a read token, a keys token and a key store; and the API, beside the page."""

    def __init__(self, folder: Path) -> None:
        self.server = ValkeyProcess(folder, appendonly=True).start()
        self.redis = redis.Redis(unix_socket_path=str(self.server.socket))
        self.double = Double(read=READ, keys=KEYS, keys_url=self.server.url, data=str(folder)).start()
        self.url = f"{self.double.url}page/keys.html"
        headers = {"Authorization": f"Bearer {KEYS}"}
        self.http = httpx.Client(base_url=self.double.url, headers=headers)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def issue(self, partner: str = "acme", **order: Any) -> str:
        return str(self.ask("POST", "keys", {"partner": partner, **order})["key_id"])

    def use(self, key_id: str, days_ago: int, answered: int, rejected: int = 0) -> None:
        """Counts requests, as a worker stores them."""
        day = datetime.now(UTC).date() - timedelta(days_ago)
        name = counts_name(key_id, month_of(day))
        self.redis.hincrby(name, field_name(day, "forecast", "answered"), answered)
        self.redis.hincrby(name, field_name(day, "forecast", "limited"), rejected)
        self.redis.hincrby(name, day_total(day), answered)
        self.redis.hincrby(name, MONTH_TOTAL, answered)
        self.redis.hset(LAST_USED, key_id, str(int(time.time() // 60)))

    def stop(self) -> None:
        self.http.close()
        self.double.stop()
        self.server.kill()


@pytest.fixture(scope="module")
def sales() -> Iterator[Sales]:
    folder = Path(tempfile.mkdtemp(prefix="ks"))
    running = Sales(folder)
    running.ask("PUT", "plans/basic", {"terms": BASIC})
    yield running
    running.stop()
    shutil.rmtree(folder)


def enter(field: Locator, text: str) -> None:
    field.fill(text)
    field.press("Enter")


def sign_in(page: Page) -> None:
    enter(page.get_by_label("Keys token"), KEYS)
    expect(page.get_by_role("heading", name="Keys", exact=False).first).to_be_visible()


@pytest.fixture
def page(sales: Sales, opened: Opened) -> Iterator[Page]:
    """The list of keys. What the application refuses is an error in the console, so only other errors fail."""
    with opened("about:blank", errors=True) as page:
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: said.append(message.text))
        page.goto(sales.url)
        sign_in(page)
        yield page
        assert [text for text in said if not text.startswith("Failed to load resource:")] == []


def shown(page: Page, key_id: str) -> None:
    """Waits until the view of a key is there, with the focus."""
    expect(page.locator("#key-title")).to_contain_text(key_id)
    expect(page.locator("#usage")).to_be_visible()


def fact(page: Page, name: str) -> str:
    return page.locator("#facts > div").filter(has=page.get_by_text(name, exact=True)).locator("dd").inner_text()


def listed(page: Page) -> list[str]:
    return page.locator("#keys tbody th").all_inner_texts()


def open_dialog(page: Page, name: str) -> Locator:
    page.get_by_role("button", name=name).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    return dialog


def test_keys_need_their_own_token_and_the_figures_theirs(sales: Sales, opened: Opened) -> None:
    with opened(sales.double.url, errors=True) as page:
        field = page.get_by_label("Operators’ token")
        field.fill(KEYS)
        field.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("This token is not accepted here. It was not stored.")
        page.get_by_role("banner").get_by_role("link", name="API keys").click()
        field = page.get_by_label("Keys token")
        expect(field).to_be_focused()
        for wrong, said in (
            (READ, "This token may not."),
            ("another-token-altogether", "The token is unknown"),
            ("ü", "not accepted"),
        ):
            field.fill(wrong)
            field.press("Enter")
            expect(page.locator("#token-problem")).to_contain_text(said)
            assert page.evaluate("sessionStorage.length") == 0
        assert page.locator("#list").is_hidden()
        sign_in(page)
        assert page.evaluate("[{...sessionStorage}, localStorage.length, document.cookie]") == [
            {"forecast.keys-token": KEYS},
            0,
            "",
        ]
        page.reload()
        expect(page.locator("#list")).to_be_visible()
        page.get_by_role("button", name="Forget the token").click()
        expect(field).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0


def test_without_a_keys_token_the_page_says_which_setting_is_missing(double: Double, opened: Opened) -> None:
    with opened(f"{double.url}page/keys.html", errors=True) as page:
        enter(page.get_by_label("Keys token"), KEYS)
        expect(page.locator("#token-problem")).to_contain_text("Set FORECAST_OPERATOR_KEYS_TOKEN")
        assert page.evaluate("sessionStorage.length") == 0


def test_keys_are_searched_paged_and_opened(sales: Sales, page: Page) -> None:
    ids = [sales.issue("Bulk Homes", label=f"site {number:02}", plan="basic") for number in range(60)]
    odd = sales.issue("Bulk Homes", label=MARKUP, test=True)
    enter(page.get_by_role("search").get_by_label("Partner"), "Bulk Homes")
    expect(page.locator("#found")).to_have_text("50 of 61 shown")
    page.get_by_role("button", name="Show more").press("Enter")
    expect(page.locator("#found")).to_have_text("61 found")
    expect(page.locator("#keys tbody a").nth(50)).to_be_focused()
    assert sorted(listed(page)) == sorted([odd, *ids])
    assert row(page, "#keys", odd)[1:5] == ["Bulk Homes", MARKUP, "–", "active, test"]
    assert page.locator("main img").count() == 0
    page.get_by_role("search").get_by_label("Plan").select_option("basic")
    page.get_by_label("Part of the label").fill("SITE 07")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#found")).to_have_text("1 found")
    page.get_by_role("link", name=ids[7]).press("Enter")
    shown(page, ids[7])
    expect(page.locator("#key-title")).to_be_focused()
    page.get_by_role("link", name="All keys").press("Enter")
    expect(page.get_by_role("link", name=ids[7])).to_be_focused()
    page.get_by_label("Status").select_option("revoked")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#keys tbody")).to_have_text("No key matches.")


def test_a_key_in_the_search_never_gets_into_an_address(sales: Sales, page: Page) -> None:
    whole = sales.ask("POST", "keys", {"partner": "acme"})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for text in (whole["key"], f" {whole['key'][:40]}"):
        enter(page.get_by_label("Part of the label"), text)
        shown(page, whole["key_id"])
        page.go_back()
    alert = page.get_by_role("search").get_by_role("alert")
    enter(page.get_by_role("search").get_by_label("Partner"), "phf_live_abc")
    expect(alert).to_contain_text("a part of a key")
    assert not [url for url in [*asked, page.url] if "phf_" in url]
    enter(page.get_by_label("Or the id of a key"), "../plans")
    expect(alert).to_contain_text("not the id of a key")
    enter(page.get_by_label("Or the id of a key"), "0" * 12)
    expect(page.locator("#key-problem")).to_contain_text("No key 000000000000")
    assert page.locator("#details").is_hidden()


def test_a_key_is_shown_with_terms_usage_quota_and_errors(sales: Sales, page: Page) -> None:
    sales.ask("PUT", "partners/Elm%20Data", {"terms": {"quota": {**QUOTA, "requests": 5_000_000}}, "contact": "x"})
    key_id = sales.issue("Elm Data", label="site", plan="basic", terms={"rate": {"requests": 5, "seconds": 60}})
    sales.use(key_id, 0, 1_200, 30)
    sales.use(key_id, 29, 4_800)
    sales.use(key_id, 31, 99_999)
    for number in range(3):
        sales.redis.lpush(f"e:{{{key_id}}}", last_errors._encoded(key_id, failed(number, key_id)))
    page.goto(f"{sales.url}#{key_id}")
    shown(page, key_id)
    assert fact(page, "Rate") == "5 a minute, 1 at once; in the plan: 50 a second, 100 at once"
    assert fact(page, "Quota") == "1,000,000 a month, as in the plan"
    assert fact(page, "Areas") == "forecast, as in the plan"
    assert fact(page, "Quota of all keys of the partner") == "5,000,000 a month"
    assert (fact(page, "Status"), fact(page, "Ends")) == ("active", "never")
    left = int(re.sub(r"\D", "", page.locator("#quota").inner_text().partition(" of ")[0]))
    assert left == sales.ask("GET", f"keys/{key_id}/usage")["limits"]["remaining"] < 1_000_000
    assert page.locator("#quota-left").evaluate("meter => meter.value") == left
    assert page.locator("#total").inner_text() == "6,000 billable and 30 other requests, at most 4,800 in a day."
    assert page.locator("#bars rect").count() == 60
    expect(page.get_by_role("img", name="6,000 billable and 30 other")).to_be_visible()
    page.get_by_text("Table: usage by day").click()
    days = page.locator("#days tbody tr")
    assert days.count() == 30
    assert [days.nth(at).locator("td").all_inner_texts() for at in (0, 1, 29)] == [
        ["1,200", "30"],
        ["0", "0"],
        ["4,800", "0"],
    ]
    expect(page.locator("#errors tbody tr")).to_have_count(3)
    assert row(page, "#errors", "2026-11-20 12:00:00")[1:3] == [
        "400 invalid_parameter",
        "GET /v1/population-housing-forecast?zip_code=2",
    ]


def test_a_key_is_issued_by_keyboard_and_handed_over_by_a_link(sales: Sales, page: Page) -> None:
    page.get_by_label("Your name").fill("Jörg Sales")
    page.get_by_role("button", name="Issue a key").press("Enter")
    dialog = page.get_by_role("dialog", name="Issue a key")
    expect(dialog.get_by_label("Partner", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Issue a key")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("Fir Homes")
    dialog.get_by_label("Plan").select_option("basic")
    dialog.get_by_label("Ends").fill("2099-01-31")
    dialog.get_by_label("Rate").fill("7")
    dialog.get_by_label("Areas").fill("forecast, projects")
    dialog.get_by_label("Label").press("Enter")
    expect(page.get_by_role("heading", name="Send this link to Fir Homes")).to_be_focused()
    link = page.locator("#handed-value").inner_text()
    (issued,) = sales.ask("GET", "keys?partner=Fir%20Homes")["keys"]
    assert (issued["plan"], issued["expires_at"]) == ("basic", "2099-01-31T00:00:00Z")
    assert issued["terms"] == {"areas": ["forecast", "projects"], "rate": {"requests": 7, "seconds": 1, "burst": 7}}
    assert httpx.post(link, headers={"accept": "application/json"}, json={}).json()["key_id"] == issued["key_id"]
    trail: Any = sales.redis.xrevrange("a:audit", count=2)
    assert '"by":"operator page (127.0.0.1): Jörg Sales"' in trail[1][1][b"line"].decode()
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#copied")).to_have_text(re.compile("Copied|Selected"))
    assert page.evaluate("getSelection().toString()") == link
    page.get_by_role("link", name="All keys").click()
    expect(page.locator("#keys")).to_be_visible()
    assert link not in page.content()


def test_a_dialog_that_is_opened_again_at_once_has_its_fields(page: Page) -> None:
    """The browser tells of the end of the first one only afterwards."""
    open_dialog(page, "Issue a key")
    told = """() => new Promise((told) => {
        const dialog = document.getElementById("dialog");
        dialog.addEventListener("close", told, { once: true });
        dialog.close();
        document.getElementById("issue-key").click();
    })"""
    page.evaluate(told)
    expect(page.get_by_role("dialog").get_by_label("Plan")).to_be_visible()


def test_a_dialog_that_opens_before_the_plans_arrive_offers_them_when_they_do(sales: Sales, page: Page) -> None:
    expect(page.locator("#plans")).to_contain_text("basic")  # nothing of the first load is under way
    waiting: list[Route] = []
    page.route("**/plans", lambda route: waiting.append(route))
    with page.expect_request("**/plans"):
        page.reload()
    dialog = open_dialog(page, "Issue a key")
    plan = dialog.get_by_label("Plan")
    expect(plan.get_by_role("option")).to_have_text(["none"])
    waiting[0].continue_()
    plan.select_option("basic")


def test_a_key_that_is_shown_leaves_the_page_with_its_view(sales: Sales, page: Page) -> None:
    dialog = open_dialog(page, "Issue a key")
    dialog.get_by_label("Partner", exact=True).fill("Gum Data")
    dialog.get_by_label("A test key").check()
    dialog.get_by_label("Show the key here").check()
    dialog.get_by_role("button", name="Issue").click()
    value = page.locator("#handed-value")
    expect(value).to_have_text(re.compile("^phf_test_"))
    key = value.inner_text()
    assert not [
        text for text in (page.url, page.evaluate("JSON.stringify([sessionStorage, localStorage])")) if "phf_" in text
    ]
    page.evaluate("window.dispatchEvent(new PageTransitionEvent('pagehide'))")
    assert key not in page.content()


def test_a_request_without_an_answer_is_repeated_without_a_second_key(sales: Sales, page: Page) -> None:
    lost: list[int] = []

    def lose(route: Route) -> None:
        if route.request.method == "POST" and not lost:
            lost.append(route.fetch().status)
            route.abort()
        else:
            route.continue_()

    page.route("**/keys", lose)
    page.route(re.compile("keys/[^/]+$"), lambda route: route.abort())
    dialog = open_dialog(page, "Issue a key")
    dialog.get_by_label("Partner", exact=True).fill("Hazel Homes")
    dialog.get_by_role("button", name="Issue").click()
    expect(dialog.get_by_role("alert")).to_have_text("the instance is unreachable")
    dialog.get_by_role("button", name="Issue").click()
    expect(page.locator("#handed")).to_be_visible()
    expect(page.locator("#key-problem")).to_have_text("the instance is unreachable")
    assert lost == [201]
    assert sales.ask("GET", "keys?partner=Hazel%20Homes")["total"] == 1


def test_a_key_is_suspended_resumed_changed_rotated_and_revoked(sales: Sales, page: Page) -> None:
    old = sales.issue("Ivy Realty", label="web", terms={"quota": QUOTA})
    page.goto(f"{sales.url}#{old}")
    shown(page, old)
    assert page.get_by_role("button", name="Resume").is_hidden()
    enter(open_dialog(page, "Suspend").get_by_label("Reason"), "invoice 4711")
    expect(page.locator("#key-done")).to_have_text("The key is suspended.")
    expect(page.locator("#key-title")).to_be_focused()
    assert re.match(r"suspended since 20.* by operator page \(127.0.0.1\): invoice 4711", fact(page, "Status"))
    assert page.get_by_role("button", name="Rotate").is_hidden()
    dialog = open_dialog(page, "Change")
    dialog.get_by_label("Ends").fill("2099-01-31")
    dialog.get_by_role("button", name="Change").click()
    expect(dialog.get_by_role("alert")).to_contain_text("is suspended: resume it first")
    dialog.get_by_role("button", name="Cancel").click()
    open_dialog(page, "Resume").get_by_role("button", name="Resume").click()
    expect(page.locator("#key-done")).to_have_text("The key works again.")
    dialog = open_dialog(page, "Change")
    assert (dialog.get_by_label("Quota").input_value(), dialog.get_by_label("Warn from").input_value()) == (
        "1000000",
        "90",
    )
    dialog.get_by_label("Plan").select_option("basic")
    dialog.get_by_label("Quota").fill("5")
    dialog.get_by_role("button", name="Change").click()
    expect(page.locator("#key-done")).to_have_text("The key is changed.")
    assert fact(page, "Quota") == "5 a month; in the plan: 1,000,000 a month"
    dialog = open_dialog(page, "Rotate")
    dialog.get_by_label("Days").fill("2")
    dialog.get_by_role("button", name="Rotate").click()
    expect(page.locator("#handed-note")).to_contain_text("The old key works until")
    new = sales.ask("GET", f"keys/{old}")["rotated_to"]
    shown(page, new)
    page.get_by_role("link", name=old).click()
    shown(page, old)
    assert page.locator("#handed").is_hidden()
    dialog = open_dialog(page, "Revoke")
    enter(dialog.get_by_label("last 4 characters"), "none")
    expect(dialog).to_be_visible()
    assert sales.ask("GET", f"keys/{old}")["status"] == "active"
    enter(dialog.get_by_label("last 4 characters"), old[-4:])
    expect(page.locator("#key-done")).to_have_text("The key is revoked.")
    expect(page.locator("#usage")).to_be_visible()
    assert fact(page, "Status").startswith("revoked since 20")
    assert page.locator("#actions button:visible").count() == 0


def test_of_two_who_change_a_key_the_second_is_told_so(sales: Sales, page: Page) -> None:
    key_id = sales.issue("Juniper", terms={"rate": {"requests": 5}})
    page.goto(f"{sales.url}#{key_id}")
    shown(page, key_id)
    dialog = open_dialog(page, "Change")
    dialog.get_by_label("Rate").fill("9")
    sales.ask("PATCH", f"keys/{key_id}", {"terms": {"rate": {"requests": 50}}})
    dialog.get_by_role("button", name="Change").click()
    expect(page.locator("#key-problem")).to_contain_text("Somebody else changed this key meanwhile")
    assert fact(page, "Rate") == "50 a second, 50 at once"
    dialog = open_dialog(page, "Change")
    assert dialog.get_by_label("Rate").input_value() == "50"
    dialog.get_by_label("Rate").fill("9")
    dialog.get_by_role("button", name="Change").click()
    expect(page.locator("#key-done")).to_have_text("The key is changed.")
    assert page.locator("#key-problem").inner_text() == ""


def test_plans_and_partners_are_set(sales: Sales, page: Page) -> None:
    dialog = open_dialog(page, "Add a plan")
    dialog.get_by_label("Name").fill("basic")
    dialog.get_by_role("button", name="Set").click()
    problem = page.locator("#plans-problem")
    expect(problem).to_contain_text("It exists already")
    dialog = open_dialog(page, "Add a plan")
    dialog.get_by_label("Name").fill("a b")
    dialog.get_by_role("button", name="Set").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The name of a plan has letters")
    dialog.get_by_label("Name").fill("gold")
    dialog.get_by_label("Rate").fill("500")
    dialog.get_by_role("button", name="Set").click()
    expect(page.get_by_role("button", name="gold: change")).to_be_visible()
    assert row(page, "#plans", "gold: change")[1:] == ["500 a second, 500 at once", "–", "–", "0"]
    expect(page.get_by_role("search").get_by_label("Plan").locator("option")).to_have_text(["any", "basic", "gold"])
    dialog = open_dialog(page, "basic: change")
    dialog.get_by_label("Quota").fill("2000000")
    dialog.get_by_role("button", name="Set").click()
    expect(page.locator("#plans")).to_contain_text("2,000,000 a month")
    assert sales.ask("GET", "plans/basic")["terms"] == {**BASIC, "quota": {**QUOTA, "requests": 2_000_000}}
    dialog = open_dialog(page, "basic: change")
    sales.ask("PUT", "plans/basic", {"terms": BASIC})
    dialog.get_by_role("button", name="Set").click()
    expect(problem).to_contain_text("Somebody else changed it meanwhile")
    dialog = open_dialog(page, "Limit a partner")
    dialog.get_by_label("Name").fill("Kauri & Sons/2")
    dialog.get_by_label("Contact").fill("k@kauri.example")
    dialog.get_by_label("Quota").fill("10")
    dialog.get_by_role("button", name="Set").click()
    expect(page.locator("#partners")).to_contain_text("k@kauri.example")
    assert row(page, "#partners", "Kauri & Sons/2: change")[1:] == ["–", "10 a month", "k@kauri.example", "0"]


def test_a_key_store_that_is_away_is_said_and_the_page_goes_on(sales: Sales, page: Page) -> None:
    key_id = sales.issue("Larch")
    sales.server.kill()
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("search").get_by_role("alert")).not_to_be_empty()
    sales.server.start()
    until(lambda: sales.http.get("keys").is_success)
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("link", name=key_id)).to_be_visible()
    expect(page.get_by_role("search").get_by_role("alert")).to_be_empty()


def test_it_is_accessible_and_fits_a_phone(sales: Sales, page: Page) -> None:
    """In both colour schemes: what asks for a token, the list, a key with all that it can have, and its dialogs."""
    key_id = sales.issue("Maple " + "x" * 60, label="y" * 60, plan="basic", terms={"quota": QUOTA})
    sales.use(key_id, 0, 5, 5)
    sales.redis.lpush(f"e:{{{key_id}}}", last_errors._encoded(key_id, failed(1, key_id)))
    page.evaluate(AXE)

    def fits(within: str, *sizes: tuple[int, int]) -> None:
        assert violations(page, within, *sizes) == []
        for width in (390, 320):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert page.locator("dialog").evaluate("of => of.scrollWidth <= of.clientWidth")

    try:
        page.get_by_label("Part of the label").fill("yyy")
        page.get_by_role("button", name="Search").click()
        expect(page.get_by_role("link", name=key_id)).to_be_visible()
        expect(page.locator("#found")).to_have_text("1 found")
        fits("html", WIDE, PHONE)
        open_dialog(page, "Issue a key")
        fits("dialog", PHONE)
        page.keyboard.press("Escape")
        page.get_by_role("link", name=key_id).click()
        shown(page, key_id)
        expect(page.locator("#errors tbody tr")).to_have_count(1)
        page.get_by_text("Table: usage by day").click()
        page.evaluate("document.querySelector('#handed').hidden = false")
        fits("html", WIDE, PHONE)
        assert page.locator("#errors").get_by_role("cell").count() == 3, "the layout keeps what tables are"
        for name in ("Change", "Revoke", "Rotate"):
            open_dialog(page, name)
            fits("dialog", PHONE)
            page.keyboard.press("Escape")
        page.evaluate("document.querySelector('#token').hidden = false")
        fits("#token", PHONE)
    finally:
        page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
