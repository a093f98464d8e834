"""The README is short, and its figures are measured."""

import re

import msgspec
import pytest

from config.settings import Settings
from service.keys.verifier import UNKNOWN_AFTER_SECONDS
from tests.support.markdown import ROOT, blocks, table_after
from warehouse.following import POLL_SECONDS
from warehouse.rules.all_rules import RULES

README = ROOT / "README.md"
_MOST_LINES = 120


def _text() -> str:
    return " ".join(README.read_text().split())


def test_it_is_read_in_a_minute() -> None:
    """What is for one reader alone has a page of its own in docs/."""
    assert len(README.read_text().splitlines()) <= _MOST_LINES


@pytest.mark.parametrize(
    ("said", "ours", "peer"),
    [
        (r"(\d+\.\d+) times as many cached answers as nginx with Lua,", "near", "nginx with Lua"),
        (r"(\d+\.\d+) times as many as nginx with Lua as it is packaged", "near", "nginx with Lua, as packaged"),
        (r"(\d+\.\d+) times as many as a server in C on libh2o", "near", "libh2o"),
        (r"(\d+) times as many as FastAPI with fastapi-cache2", "near", "FastAPI + fastapi-cache2"),
        (r"(\d+\.\d+) times as many as ROAPI", "DuckDB", "ROAPI"),
    ],
)
def test_its_ratios_are_those_of_the_run_that_the_chart_shows(said: str, ours: str, peer: str) -> None:
    """The medians with headers that differ, which are the lower ones."""
    results = msgspec.json.decode((ROOT / "tests" / "bench" / "results.json").read_bytes())
    pair = (ours, peer, "unique")
    (ratio,) = [one["median"] for one in results["ratios"] if (one["ours"], one["peer"], one["headers"]) == pair]
    (figure,) = re.findall(said, _text())
    digits = len(figure.partition(".")[2])
    assert float(figure) == pytest.approx(ratio, abs=10**-digits), "make bench-chart was run: say its figures"


def test_the_ratios_of_the_page_on_speed_are_those_of_the_same_run() -> None:
    page = ROOT / "docs/design/speed.md"
    results = msgspec.json.decode((ROOT / "tests" / "bench" / "results.json").read_bytes())
    ratios = {(one["ours"], one["peer"]): one["median"] for one in results["ratios"] if one["headers"] == "unique"}
    assert f"Measured on {results['made_at'][:10]}" in page.read_text()
    for tier, peer, figure in table_after(page, "ratios"):
        digits = len(figure.partition(".")[2])
        assert float(figure) == pytest.approx(ratios[tier.removesuffix(" cache"), peer], abs=10**-digits), peer


def test_its_other_figures_are_those_of_the_code() -> None:
    """Rules, seconds until a release is noticed, the cache's budget, how long keys go on."""
    text = _text()
    assert "checked against more than a hundred rules" in text
    assert len(RULES) > 100
    assert f"notices within {POLL_SECONDS} s" in text
    assert f"gives up after {Settings(data_dir='').cache_timeout * 1000:.0f} ms" in text
    assert f"verified in the last {UNKNOWN_AFTER_SECONDS:.0f} s" in text


def test_it_shows_what_the_demo_prints() -> None:
    """Its steps, without their figures, and the headings of its lines."""
    shown = next(block for block in blocks(README, "console") if "make demo" in block and "Send requests" in block)
    code = "".join(file.read_text() for folder in ("service", "warehouse") for file in (ROOT / folder).rglob("*.py"))
    steps = [re.split(r" \d", step)[0] for step in re.findall(r"^· (.*)$", shown, flags=re.MULTILINE)]
    headings = re.findall(r"^[A-Z].*$", shown, flags=re.MULTILINE)
    assert steps
    assert headings
    for line in (*steps, *headings):
        assert line in code, line
