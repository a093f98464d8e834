"""The report of a check as a page: all that was found, charts of what drifted, and nothing from elsewhere."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree.ElementTree import fromstring

import msgspec
import pytest

from service.reports import html_page
from tests.service.conftest import Cli
from tests.support.drops import location, people, write_drop
from tests.warehouse.comparisons import ANSWERS, compared, figure, places, state
from warehouse.publishing.outcome import PublishOutcome
from warehouse.schema.comparison import Comparison, Distribution, Mover
from warehouse.schema.findings import Finding, make_report
from warehouse.schema.tables import TABLES

AT = datetime(2026, 10, 5, 9, 30, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert('x')</script>&\"'"
ERROR = Finding(
    severity="error",
    rule="duplicate-key",
    message="2 rows of housing share their zip_code",
    table="housing",
    file="zip_housing.parquet",
    column="zip_code",
    count=12345,
    samples=("36436 in zip_housing.parquet row 1",),
    remedy="one row for each; was a file dropped twice?",
)
DRIFTED = compared(
    rows={"aliases": (None, 7), "population": (1234, 5678)},
    figures=(
        figure("population 2023", new_total=1100, changed=3),
        figure("population 2010"),
        figure("tot_home_available_2021", new_total=None, new_count=0, lost=100),
    ),
    movers=(Mover("36436", "population 2023", 100, 310, 3, "Dickinson", "AL"),),
    changed_zip_codes=77,
)
VOID = {"meta", "br", "wbr", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """What a browser would make of a page: elements, attributes, text; and that all of them are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page(*findings: Finding, comparison: Comparison | None = None, drop: str = "drops/2026-10") -> str:
    result = make_report(findings, comparison)
    outcome = PublishOutcome(result="refused" if result.refused else "passed", report=result, manifest=None)
    return html_page.render_page(outcome, drop, AT)


def rows_of(text: str) -> list[str]:
    """The rows of all tables, as text with single spaces."""
    rows = re.findall(r"<tr.*?</tr>", text, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", row.replace("<wbr>", "")).split()) for row in rows]


def test_the_headline_says_whether_the_drop_is_good() -> None:
    good, bad = Page(page()).text, Page(page(ERROR)).text
    assert "Good: it can be published; no findings." in good
    assert "No findings." in good
    assert "Refused: 1 error; nothing is published." in bad
    for text in (good, bad):
        assert "Not compared: there is no comparable release" in text
        assert "drops/2026-10" in text
        assert "2026-10-05 09:30 UTC" in text


WARNED = Finding(severity="warning", rule="total-drift", message="more")
GONE = compared(figures=(figure("population 2035", new_total=None, new_count=0, lost=100),))


@pytest.mark.parametrize(
    ("findings", "comparison", "word"),
    [
        ((WARNED,), None, "Passed, with warnings"),
        ((WARNED, msgspec.structs.replace(WARNED, accepted="new census")), None, "Passed, with accepted errors"),
        ((WARNED,), GONE, "Passed, but 1 figure vanishes"),
        ((), GONE, "Passed, but 1 figure vanishes"),
    ],
    ids=["warnings", "accepted", "vanished", "vanished-without-a-finding"],
)
def test_the_banner_is_green_only_if_nothing_needs_a_look(
    findings: tuple[Finding, ...], comparison: Comparison | None, word: str
) -> None:
    read = Page(page(*findings, comparison=comparison))
    assert ("class", "verdict doubtful") in read.attributes
    assert f"{word}: it can be published" in read.text
    assert ("class", "verdict good") in Page(page(msgspec.structs.replace(WARNED, severity="info"))).attributes


def test_findings_with_one_cause_stand_together_below_it() -> None:
    findings = [
        msgspec.structs.replace(ERROR, message=name, cause=cause)
        for name, cause in (("first", "leading zero lost"), ("second", "was a float"), ("third", "leading zero lost"))
    ]
    follow_on = Finding(severity="error", rule="zip-codes-lost", message="fourth", follows="duplicate-key")
    rows = rows_of(page(*findings, follow_on))
    said = ("Cause: leading zero lost", "first", "third", "fourth", "second")
    order = [next(number for number, row in enumerate(rows) if part in row) for part in said]
    assert order == sorted(order)
    assert not any("Cause: was a float" in row for row in rows)
    assert "└ zip-codes-lost" in rows[order[3]]


STATES = compared(
    states=(
        state("NV", lost=60),
        state("TX", moved=123, changed=40),
        state("WY"),
        state("GA", rows={"locations": (0, 3)}),
    ),
    distributions=(
        Distribution(figure="population 2023", changes=tuple(range(11)), old_sizes=(0,) * 7, new_sizes=tuple(range(7))),
    ),
    answers=ANSWERS,
)


def test_a_map_has_a_number_and_all_details_for_each_state() -> None:
    text = page(comparison=STATES)
    chart = next(one for one in re.findall(r"<svg.*?</svg>", text, re.DOTALL) if "Changes by state" in one)
    tiles = {
        (group.findtext(f"{SVG}title") or "")[:2]: [one.text for one in group.iter(f"{SVG}text")]
        for group in fromstring(chart).iter(f"{SVG}g")
    }
    assert (tiles["NV"], tiles["TX"], tiles["WY"]) == (["NV", "60.0%"], ["TX", "12.3%"], ["WY", "0%"])
    assert tiles["GA"] == ["GA", "new"]
    assert tiles["CA"] == ["CA", None]
    assert "TX: 100 ZIP codes before, 100 now" in chart
    assert "population 2023 moved most: 12.3%, its total 0%" in chart


def test_states_have_a_row_for_each_table_if_anything_changed() -> None:
    rows = rows_of(page(comparison=STATES))
    assert "NV locations 100 40" in rows
    assert "NV population population 2023 100 40 100 1,000 0% 0%" in rows
    assert "TX population population 2023 100 100 1,000 0% 12.3%" in rows
    assert not any(row.startswith("WY locations") for row in rows)
    heads = [row[:2] for row in rows if "ZIP codes before" in row]
    assert heads == ["GA", "NV", "TX", "WY"]


def test_what_changes_for_partners_has_numbers_and_examples() -> None:
    text = page(comparison=STATES)
    assert "7 ZIP codes change, 2 appear, 1 vanish; 3 lose figures" in text
    assert "5 cities change, 1 appear, 0 vanish" in text
    assert "36436: the largest change" in text
    assert {"population 2023 783 1,800", "city_name Dickinson Dickinson Mills"} <= set(rows_of(text))
    assert "and 4 more fields" in text


def test_distributions_are_charted() -> None:
    text = Page(page(comparison=STATES)).text
    assert "How population 2023 changed" in text
    assert "above +50%: 10" in text
    assert "100,000 or more: 0 before, 6 now" in text


def test_a_page_stays_small_whatever_changed() -> None:
    codes = [f"{first}{second}" for first in "ABCDEFGHIJ" for second in "ABCDEFGHIJ"]
    tables = {table.name: (1_000_000, 2_000_000) for table in TABLES}
    figures = tuple(figure(f"tot_home_available_{year}", moved=10**6, changed=1) for year in range(2020, 2024))
    comparison = compared(
        states=tuple(state(code, rows=tables, figures=figures) for code in codes),
        figures=tuple(figure(f"population {year}", changed=1) for year in range(2000, 2040)),
    )
    assert len(page(comparison=comparison)) < 500_000


def test_a_finding_is_shown_whole() -> None:
    (row,) = [row for row in rows_of(page(ERROR)) if "duplicate-key" in row]
    for part in (*ERROR.samples, ERROR.rule, ERROR.message, ERROR.remedy, ERROR.file, ERROR.column, "Error", "12,345"):
        assert part is not None
        assert part in row
    accepted = msgspec.structs.replace(WARNED, remedy="no longer", accepted="new census")
    text = Page(page(accepted)).text
    assert "Accepted, reason given: new census" in text
    assert "no longer" not in text


def test_what_drifted_is_charted_and_in_tables() -> None:
    text = page(comparison=DRIFTED)
    rows = rows_of(text)
    assert "population 2023 1,000 1,100 +10.00% 3" in rows
    assert "tot_home_available_2021 1,000 - 100" in rows
    assert "36436 Dickinson, AL population 2023 100 310 +210 3" in rows
    assert "aliases - 7" in rows
    assert "population 1,234 5,678 +360.13%" in rows
    assert not any(row.startswith("population 2010") for row in rows)
    assert "1 figure did not change in any ZIP code." in text
    assert "changed in 77 ZIP codes" in text
    assert text.count("<svg") == 2
    assert "No ZIP code is new or gone." in text


def test_places_that_came_and_went_have_a_chart() -> None:
    text = page(comparison=places(gained={"AL": 2}, lost={"NY": 1}, gained_samples=("36437", "36438")))
    assert "ZIP codes by state" in text
    assert "Gained, such as: 36437, 36438" in Page(text).text
    assert "No ZIP code is new or gone." not in text


def test_nothing_runs_and_nothing_is_loaded_from_elsewhere() -> None:
    text = page(ERROR, comparison=DRIFTED)
    read = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "base", "form", "a"} & set(read.tags)
    assert not {name for name, _ in read.attributes if name.startswith("on") or name in ("src", "href", "action")}
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {"#hatched"}
    assert "@import" not in text
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in read.attributes


@pytest.mark.parametrize("member", ["rule", "message", "table", "file", "column", "remedy", "accepted", "samples"])
def test_names_in_a_finding_are_text(member: str) -> None:
    base = {"severity": "warning", "rule": "foreign-file", "message": "a file"}
    finding = Finding(**{**base, member: (EVIL,) if member == "samples" else EVIL})  # type: ignore[arg-type]
    read = Page(page(finding))
    assert "script" not in read.tags
    assert EVIL in read.text


def test_names_of_drop_states_tables_and_figures_are_text() -> None:
    comparison = compared(
        rows={EVIL: (1, 2)}, figures=(figure(EVIL, changed=1),), movers=(Mover(EVIL, EVIL, 1, 2, 0, EVIL, EVIL),)
    )
    for text in (page(comparison=comparison, drop=EVIL), page(comparison=places(lost={EVIL: 3}, lost_samples=(EVIL,)))):
        read = Page(text)
        assert "script" not in read.tags
        assert EVIL in read.text


def test_what_cannot_be_printed_is_shown_escaped() -> None:
    text = page(Finding(severity="warning", rule="foreign-file", message="a\x00b\x1b\udcff\u202e.txt"))
    assert "a\\u0000b\\u001b\\udcff\\u202e.txt" in text
    assert text.encode()


def test_charts_are_well_formed_titled_and_tables_captioned() -> None:
    text = page(ERROR, comparison=compared(**{**given(DRIFTED), "places": places(lost={"AL": 1}).places}))
    charts = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(charts) == 3
    for chart in charts:
        assert fromstring(chart).findtext("{http://www.w3.org/2000/svg}title")
    assert text.count("<figcaption>") == 3
    assert text.count("<caption>") == text.count("<table") == 4
    assert re.findall(r"<th(?! scope)[ >]", text) == []
    assert '<html lang="en">' in text


def given(comparison: Comparison) -> dict[str, object]:
    return {name: getattr(comparison, name) for name in comparison.__struct_fields__}


def test_check_writes_the_page_beside_what_it_prints(cli: Cli, drop: Path, tmp_path: Path) -> None:
    places = [location("36436", "<b>Dickinson</b>", "AL")]
    other = write_drop(tmp_path / "other", locations=places, population=[people("36436", 2023, -1)])
    out = tmp_path / "report.html"
    done = cli("extracts", "check", str(other), "--html", str(out))
    assert done.code == 1
    text = out.read_text()
    assert "Refused" in text
    assert "out-of-range" in text
    assert str(other) in Page(text).text
    assert "<b>" not in text
    unwritten = cli("extracts", "check", str(drop), "--html", str(tmp_path / "nowhere" / "report.html"))
    assert unwritten.code == 1
    assert "cannot write" in unwritten.error()
