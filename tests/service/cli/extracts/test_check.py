"""forecast extracts check: everything that publishing would say, and nothing changes; readable at any width."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from service.reports import terminal
from service.reports.terminal_comparison import print_comparison
from tests.service.conftest import Cli
from tests.support.drops import LOCATIONS, homes, people, write_drop, write_table
from tests.warehouse.comparisons import ANSWERS, compared, figure, places, state
from tests.warehouse.helpers import contents
from warehouse.schema.comparison import Comparison, Mover
from warehouse.schema.findings import Finding, make_report

LONG = Finding(
    severity="warning",
    rule="ignored-column",
    message=f"column(s) that nothing needs were ignored: {', '.join(f'column_{number}' for number in range(30))}",
    file="a-rather-long-name-of-a-file-as-warehouses-like-to-make-them-with-a-part-number-00001.snappy.parquet",
    samples=("36436", "00501"),
    remedy="check the export, if these were expected, and tell whoever made it what you expected there instead",
)


def written(width: int, write: Callable[[Console], None]) -> str:
    out = io.StringIO()
    write(Console(file=out, width=width, highlight=False, emoji=False))
    return out.getvalue()


def printed(width: int, *findings: Finding) -> list[str]:
    text = written(width, lambda console: terminal.print_report(console, make_report(list(findings))))
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def shown(width: int, comparison: Comparison) -> str:
    return written(width, lambda console: print_comparison(console, comparison, "Against it"))


def test_a_good_drop_is_exit_code_0_and_changes_nothing(cli: Cli, drop: Path) -> None:
    done = cli("extracts", "check", str(drop))
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("Good: it can be published; no findings.")
    assert not cli.data.exists()


def test_a_bad_drop_is_exit_code_1_and_changes_nothing(cli: Cli, release: str, drop: Path) -> None:
    before = contents(cli.data)
    write_table(drop / "again.parquet", [homes("36436")])
    done = cli("extracts", "check", str(drop))
    assert done.code == 1
    assert done.err.startswith("Refused: 1 error")
    assert f"{release} stays current" in done.err.splitlines()[0]
    assert contents(cli.data) == before


def test_the_drop_of_the_current_release_is_already_current(cli: Cli, release: str, drop: Path) -> None:
    done = cli("extracts", "check", str(drop))
    assert (done.code, bool(release)) == (0, True)
    assert done.err.startswith("Already current: 1 note.")


@pytest.mark.parametrize(
    ("given", "page", "said"),
    [
        ("", "zip_housing.parquet", "must end in .html or .htm"),
        ("", "../report", "must end in .html or .htm"),
        ("", "report.html", "is inside the drop"),
        ("*.parquet", "report.HTM", "is inside the drop"),
        ("zip_housing.parquet", "report.html", "is inside the drop"),
    ],
)
def test_a_page_replaces_nothing_of_the_drop(cli: Cli, drop: Path, given: str, page: str, said: str) -> None:
    before = contents(drop)
    done = cli("extracts", "check", str(drop / given), "--html", str(drop / page))
    assert done.code == 2
    assert said in done.err
    assert contents(drop) == before


def test_wrong_usage_is_exit_code_2(cli: Cli) -> None:
    assert cli("extracts", "check").code == 2
    assert cli("extracts", "check", "--keep", "x").code == 2


def test_check_as_json_has_findings_and_comparison(cli: Cli, release: str, tmp_path: Path) -> None:
    other = write_drop(tmp_path / "other", population=[people("36436", 2023, 784)])
    done = cli("extracts", "check", str(other), "--json")
    assert (done.code, done.err) == (0, "")
    assert set(done.json) == {"result", "release", "findings", "comparison", "data_folder"}
    assert (done.json["result"], done.json["release"]) == ("passed", release)
    comparison = done.json["comparison"]
    (mover,) = comparison["movers"]
    place = {"city_name": "Dickinson", "state": "AL"}
    assert mover == {"zip_code": "36436", "figure": "population 2023", "old": 783, "new": 784, "others": 0, **place}
    assert {one["state"] for one in comparison["states"]} == {"AE", "AL", "CA", "MO", "ND", "NY"}
    assert comparison["answers"]["examples"][0]["zip_code"] == "36436"
    assert [one["rule"] for one in done.json["findings"]] == ["lost-figures", "changed-figures"]


@pytest.mark.usefixtures("release")
def test_drift_is_an_error_until_it_is_accepted(cli: Cli, tmp_path: Path) -> None:
    """By check without a reason, because nothing is recorded; by publish only with one."""
    less = str(write_drop(tmp_path / "less", locations=LOCATIONS[:-1]))
    limits = "zip-codes-lost=5%, zip-codes-gained=1, coverage-lost=1, total-drift=1, aliases-lost=1, vanished-figure=9"
    refused = cli("extracts", "check", less, limits=limits)
    assert refused.code == 1
    assert "1 of 9 ZIP codes are gone, in AE 1" in refused.err
    accept = (less, "--accept", "zip-codes-lost=12%")
    accepted = cli("extracts", "check", *accept, limits=limits)
    assert accepted.code == 0
    assert "accepted, reason given: for this check only" in accepted.err
    assert cli("extracts", "publish", *accept, limits=limits).code == 2
    published = cli("extracts", "publish", *accept, "--reason", "closed offices", limits=limits)
    assert published.code == 0
    assert "accepted, reason given: closed offices" in published.err
    text = cli("extracts", "show").out
    assert "zip-codes-lost, by " in text
    assert ": closed offices" in text


def test_of_a_finding_that_names_many_five_are_shown_and_the_rest_counted() -> None:
    names = tuple(f"Badger {number}, AK finds 99711 in Fairbanks, AK" for number in range(100))
    found = Finding(severity="info", rule="barren-alias", message="150 aliases", count=150, samples=names)
    lines = printed(120, found)
    assert (len(lines), lines[-1].strip()) == (7, "and 145 more")
    assert "Badger 4, AK" in lines[-2]


@pytest.mark.parametrize("width", [60, 100])
def test_a_long_finding_wraps_under_its_beginning(width: int) -> None:
    lines = printed(width, LONG)
    assert max(map(len, lines)) <= width
    indents = {len(line) - len(line.lstrip()) for line in lines[1:]}
    hanging = min(indents)
    assert hanging > 0
    assert indents == {hanging, hanging + 2}  # what to do hangs under its arrow
    text = " ".join(line.strip() for line in lines)
    assert LONG.message in text
    assert (LONG.remedy or "-") in text
    assert (LONG.file or "-") in "".join(line.strip() for line in lines)
    assert any(line.strip().startswith("a-rather-long-name") for line in lines)
    assert "such as 36436, 00501" in text


def test_severity_is_a_word_where_there_is_no_colour() -> None:
    assert printed(100, LONG)[0].startswith("warning  ignored-column")
    assert printed(60, LONG)[0] == "warning ignored-column"


def test_names_that_would_steer_the_terminal_are_shown_escaped() -> None:
    hostile = Finding(
        severity="error", rule="not-parquet", message="\x1b[2J\x07[red]x[/red]\nnext\u202e.parquet is none"
    )
    text = "\n".join(printed(100, hostile))
    assert "\\u001b[2J\\u0007[red]x[/red]\\nnext\\u202e.parquet is none" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [60, 100])
def test_only_figures_that_changed_are_listed(width: int) -> None:
    changed = figure("population 2023", new_total=1010, changed=3)
    regrouped = figure("est_total_home_demand_2030", changed=2)  # the same total, made up of others
    same = [figure(f"population {year}") for year in range(2010, 2020)]
    movers = (Mover("36436", "population 2023", 100, 110),)
    text = shown(width, compared(figures=(*same, changed, regrouped), movers=movers, changed_zip_codes=5))
    assert "population 2023" in text
    assert "+1.00%" in text
    assert "est_total_home_demand_2030" in text
    assert "population 2011" not in text
    assert "10 figures did not change in any ZIP code." in text
    assert "+10" in text
    assert max(map(len, text.splitlines())) <= width


def test_a_change_that_rounds_to_nothing_is_not_called_none() -> None:
    moved = figure(old_total=100_000_000, new_total=100_000_001, changed=1)
    assert "+<0.01%" in shown(100, compared(figures=(moved,)))


@pytest.mark.parametrize("width", [60, 100])
def test_the_states_that_changed_most_are_listed_and_the_others_counted(width: int) -> None:
    """Worst first: by the share of a figure that moved, or of the ZIP codes that are gone or lose figures."""
    states = [state(f"A{letter}", moved=100 + number) for number, letter in enumerate("ABCDEFGHIJ")]
    text = shown(width, compared(states=(*states, state("NV", lost=60), state("TX", moved=10))))
    rows = [line.split() for line in text.splitlines()]
    codes = [row[0] for row in rows if row and len(row[0]) == 2]
    assert codes == ["NV", "AJ", "AI", "AH", "AG", "AF", "AE", "AD"]
    assert "and 3 more" in text
    assert "TX" not in text
    assert max(map(len, text.splitlines())) <= width


def test_figures_that_come_or_vanish_are_named_in_runs_of_years() -> None:
    gone = [figure(f"population {year}", new_total=None, new_count=0, lost=100) for year in (2024, 2025, 2026, 2030)]
    new = figure("tot_home_available_2020", old_total=None, old_count=0, gained=100)
    text = " ".join(shown(100, compared(figures=(*gone, new))).split())
    assert "vanished population 2024 to 2026, population 2030" in text
    assert "new figures tot_home_available_2020" in text
    assert "national total" not in text


def test_of_many_figures_those_that_moved_most_are_listed() -> None:
    figures = tuple(figure(f"population {2000 + number}", changed=1, moved=number) for number in range(20))
    text = shown(100, compared(figures=figures))
    assert "population 2007" not in text
    assert "population 2008" in text
    assert "and 8 more" in text


def test_the_summary_says_what_changes_for_partners() -> None:
    text = " ".join(shown(100, compared(answers=ANSWERS)).split())
    assert "answers 7 ZIP codes change, 2 appear, 1 vanish; 3 lose figures 5 cities change, 1 appear, 0 vanish" in text
    assert "1,000 → 1,200 figures in all answers" in text


@pytest.mark.parametrize("width", [60, 100])
def test_findings_with_one_cause_stand_together_below_it(width: int) -> None:
    causes = (("a", "leading zero lost"), ("b", "was a float"), ("c", "leading zero lost"))
    findings = [
        Finding(severity="error", rule="unreadable-value", message=f"{name} is wrong", cause=cause)
        for name, cause in causes
    ]
    text = " ".join(" ".join(printed(width, *findings)).split())
    places = [text.index(part) for part in ("leading zero lost:", "a is wrong", "c is wrong", "b is wrong")]
    assert places == sorted(places)
    assert "was a float:" not in text


def test_tables_are_listed_only_where_their_rows_changed() -> None:
    text = shown(100, compared(rows={"housing": (50, 50), "aliases": (None, 7), "population": (100, 150)}))
    assert "aliases" in text
    assert "+50.00%" in text
    assert "housing" not in text


def test_states_are_listed_by_how_many_came_and_went() -> None:
    lost = {f"{first}{second}": 1 for first in "ABCD" for second in "WXYZ"} | {"TX": 9}
    text = " ".join(shown(60, places(gained={"AL": 2}, lost=lost)).split())
    assert "new in AL 2" in text
    assert "gone from TX 9, AW 1," in text
    assert "and 5 more states" in text


@pytest.mark.parametrize("width", [60, 100])
def test_a_follow_on_is_indented_below_its_cause_and_suggests_nothing_of_its_own(width: int) -> None:
    cause = Finding(severity="error", rule="unreadable-value", message="3 values are wrong", remedy="correct them")
    below = Finding(
        severity="warning",
        rule="orphan-rows",
        message="3 ZIP codes have no location",
        remedy="publish with --accept",
        follows="unreadable-value",
    )
    lines = printed(width, below, cause)
    (at,) = [number for number, line in enumerate(lines) if "orphan-rows" in line]
    assert "unreadable-value" in lines[0]
    assert lines[at].startswith("  ") or "└ orphan-rows" in lines[at]
    text = " ".join(" ".join(lines).split())
    assert "follows from unreadable-value: correct that first" in text
    assert "--accept" not in text


@pytest.mark.usefixtures("release")
def test_rows_without_a_readable_key_are_compared_with_nothing(cli: Cli, tmp_path: Path) -> None:
    rows = [{**row, "zip_code": row["zip_code"].lstrip("0")} for row in LOCATIONS]
    bad = str(write_drop(tmp_path / "bad", locations=rows))
    done = cli("extracts", "check", bad, limits="zip-codes-lost=0, zip-codes-gained=0, total-drift=1, coverage-lost=1")
    assert done.code == 1
    assert "leading zero lost" in " ".join(done.err.split())
    assert "zip-codes-lost" in done.err
    assert "zip-codes-gained" not in done.err
