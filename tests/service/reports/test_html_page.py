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
from warehouse.schema.comparison import Comparison, Distribution, Mover, RecordChanges
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


def spaced(markup: str) -> str:
    """The text, with single spaces."""
    return " ".join(re.sub(r"<[^>]*>", " ", markup).split())


def rows_of(text: str) -> list[str]:
    """The rows of all tables, as text with single spaces."""
    return [spaced(row) for row in re.findall(r"<tr.*?</tr>", text, re.DOTALL)]


def bars_of(text: str) -> list[str]:
    """The rows of all bar charts, as text with single spaces."""
    charts = "".join(re.findall(r'<dl class="bars">.*?</dl>', text, re.DOTALL))
    return [spaced(row) for row in re.findall(r"<div>.*?</div>", charts, re.DOTALL)]


def section(text: str, name: str) -> str:
    """The text of the section with the id `name`."""
    return spaced(text.partition(f'<h2 id="{name}">')[2].partition("<h2")[0])


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
        for name, cause in (("alpha", "leading zero lost"), ("gamma", "was a float"), ("beta", "leading zero lost"))
    ]
    follow_on = Finding(severity="error", rule="zip-codes-lost", message="delta", follows="duplicate-key")
    shown = section(page(*findings, follow_on), "findings")
    order = [
        shown.index(part)
        for part in ("Cause: leading zero lost", "alpha", "beta", "Consequences: 1", "zip-codes-lost", "delta")
    ]
    assert order == sorted(order)
    assert shown.index("gamma") > order[-1]
    assert "Cause: was a float" not in shown


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


def test_a_map_has_a_number_for_each_state() -> None:
    text = page(comparison=STATES)
    tiles = re.findall(r'<li class="tile (level\d|absent)" style=[^>]*>(.*?)</li>', text)
    assert [spaced(label) for kind, label in tiles if kind != "absent"] == ["GA new", "NV 60.0%", "TX 12.3%", "WY 0%"]
    assert [kind for kind, _ in tiles[:4]] == ["level4", "level4", "level3", "level0"]
    assert ("absent", "CA") in tiles


def test_the_colours_of_the_map_are_explained() -> None:
    scale = page(comparison=STATES).partition('<ul class="scale"')[2].partition("</ul>")[0]
    expected = ["under 0.1%", "from 0.1%", "from 1%", "from 5%", "from 20%"]
    assert re.findall(r'<li class="tile level(\d)">(.*?)</li>', scale) == [
        (str(at), one) for at, one in enumerate(expected)
    ]


def test_every_state_has_a_row_and_changed_ones_a_row_for_each_table() -> None:
    rows = rows_of(page(comparison=STATES))
    assert "GA new 0 → 3 0 0 0 0" in rows
    assert "NV 60.0% 100 → 40 0 60 0 0" in rows
    assert "TX population 2023 12.3% 12.3% 0% 100 0 0 40 0" in rows
    assert "WY 0% 100 0 0 0 0" in rows
    assert "NV locations 100 → 40" in rows
    assert "NV population population 2023 100 → 40 100 1,000 0% 0%" in rows
    assert "TX population population 2023 100 100 1,000 0% 12.3%" in rows
    assert not any(row.startswith("WY locations") for row in rows)


LOSING = compared(
    places=msgspec.structs.replace(places().places, lost={"AL": 2, "NY": 1}, lost_samples=("36436",)),
    figures=(*GONE.figures, figure("population 2034", lost=7)),
    records={"development_projects": RecordChanges(old_count=9, gained=0, lost=4, changed=0)},
    states=(state("AL", without=1), state("NY", without=2), state("TX")),
    answers=ANSWERS,
)


def test_losses_come_before_the_findings() -> None:
    text = page(ERROR, comparison=LOSING)
    assert text.index('<h2 id="losses">') < text.index('<h2 id="findings">')
    assert section(text, "losses") == (
        "Losses for partners Figures gone from every ZIP code population 2035 "
        "ZIP codes gone 3: AL 2, NY 1; such as 36436 ZIP codes that lose a figure 3: NY 2, AL 1 "
        "Figures lost in 7 of 100 ZIP codes population 2034 development_projects gone 4 of 9"
    )


def test_figures_lost_alike_share_a_line_and_lines_are_few() -> None:
    alike = [figure(f"population {year}", lost=3) for year in range(2020, 2024)]
    others = [figure(f"tot_home_available_{year}", lost=year - 1999) for year in range(2000, 2012) if year != 2002]
    shown = section(page(comparison=compared(figures=(*alike, *others))), "losses")
    assert "Figures lost in 12 of 100 ZIP codes tot_home_available_2011 Figures lost in 11" in shown
    assert shown.endswith(
        "Figures lost in 5 of 100 ZIP codes tot_home_available_2004 Figures lost in fewer ZIP codes 7 more"
    )
    few = section(page(comparison=compared(figures=tuple(alike))), "losses")
    assert few == "Losses for partners Figures lost in 3 of 100 ZIP codes population 2020 to 2023"


def test_a_drop_without_losses_has_a_sentence_for_it() -> None:
    text = section(page(comparison=compared()), "losses")
    assert text == "Losses for partners The drop has every ZIP code, city and figure of the current release."


@pytest.mark.parametrize("comparison", [None, compared(), LOSING, STATES], ids=["none", "same", "losing", "states"])
def test_the_contents_link_to_every_section(comparison: Comparison | None) -> None:
    text = page(comparison=comparison)
    contents = text.partition("<nav")[2].partition("</nav>")[0]
    assert re.findall(r'<a href="#(\w+)">(.*?)</a>', contents) == re.findall(r'<h2 id="(\w+)">(.*?)</h2>', text)


def test_what_changes_for_partners_has_numbers_and_examples() -> None:
    text = page(comparison=STATES)
    assert "7 ZIP codes change, 2 appear, 1 vanish; 3 lose figures" in text
    assert "5 cities change, 1 appear, 0 vanish" in text
    assert "36436: the largest change" in text
    assert {"population 2023 783 1,800", "city_name Dickinson Dickinson Mills"} <= set(rows_of(text))
    assert "and 4 more fields" in text


def test_distributions_are_charted() -> None:
    text = page(comparison=STATES)
    assert "How population 2023 changed" in text
    assert {"above +50% 10 ZIP codes", "100,000 or more 0 before 6 now"} <= set(bars_of(text))


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
    shown = section(page(ERROR), "findings")
    for part in (*ERROR.samples, ERROR.rule, ERROR.message, ERROR.remedy, ERROR.file, ERROR.column, "Error", "12,345"):
        assert part is not None
        assert part in shown
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
    assert text.count("<svg") == 1
    assert bars_of(text) == ["tot_home_available_2021 1,000 before none now"]
    assert "No ZIP code is new." in text


def test_new_zip_codes_are_counted_by_state() -> None:
    text = page(comparison=places(gained={"AL": 2, "GA": 1}, gained_samples=("36437", "36438")))
    assert "New ZIP codes: 3: AL 2, GA 1; such as 36437, 36438" in section(text, "tables")


def test_nothing_runs_and_nothing_is_loaded_from_elsewhere() -> None:
    text = page(ERROR, comparison=DRIFTED)
    read = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(read.tags)
    assert not {name for name, _ in read.attributes if name.startswith("on") or name in ("src", "action")}
    assert all((value or "").startswith("#") for name, value in read.attributes if name == "href")
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in text
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
    assert len(charts) == 1
    assert fromstring(charts[0]).findtext(f"{SVG}title") == "Population by year"
    assert text.count("<figcaption>") == text.count("<figure") == 2
    assert text.count("<caption>") == text.count("<table") == text.count('tabindex="0" role="region"') == 3
    assert re.findall(r"<th(?! scope)[ >]", text) == []
    assert '<html lang="en">' in text


def test_a_line_has_a_dot_for_each_year_with_figures() -> None:
    figures = (
        figure("population 2010", old_total=300_000_000, new_total=310_000_000),
        figure("population 2012", old_total=320_000_000, new_total=None),
        figure("population 2013", old_total=None, new_total=330_000_000),
    )
    (chart,) = re.findall(r"<svg.*?</svg>", page(comparison=compared(figures=figures)), re.DOTALL)
    svg = fromstring(chart)
    dots = [one.get("class") for one in svg.iter(f"{SVG}circle")]
    assert dots == ["dot old", "dot old", "dot new", "dot new"]
    assert {"300 M", "330 M", "2010", "2013"} <= {one.text for one in svg.iter(f"{SVG}text")}
    assert "2012: 320,000,000 before, - now" in (svg.findtext(f"{SVG}desc") or "")


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
    assert "nowhere/report.html: No such file or directory" in unwritten.error()
