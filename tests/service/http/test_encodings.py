"""Queries with characters that nobody sees, and with texts that were encoded once too often."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.text import INVISIBLE, invisible_in, printable, visible
from service.http.suggestions import encoded_in
from tests.support.served import FORECAST, Served
from tests.support.wire import Answer
from warehouse.rules.causes import CAUSES

MARKS = ("\ufeff", "\u200b", "\u200e", "\u200f", "\u2060", "\u202c", "\u00ad", "\u2069", "\u3164", "\U000e0100", "ï»¿")
PROJECTS = "/v1/development-projects?zip_code=94103"


def detail(answer: Answer) -> str:
    said: str = answer.json()["detail"]
    return said


@pytest.mark.parametrize("mark", ["\ufeff", "\u00ad", "ï»¿"])
@pytest.mark.parametrize(
    ("target", "parameter", "meant"),
    [
        (FORECAST + "?zip_code={}36436", "zip_code", "zip_code=36436?"),
        (FORECAST + "?zip_code=36436{}", "zip_code", "zip_code=36436?"),
        (FORECAST + "?zip_code=364{}36", "zip_code", "zip_code=36436?"),
        (FORECAST + "?city_name=Dickinson&state_code=A{}L", "state_code", "city_name=Dickinson&state_code=AL?"),
        (
            FORECAST + "/by-county?county_fips_code={}01025",
            "county_fips_code",
            "county_fips_code=01025 (Clarke County)?",
        ),
        (FORECAST + "/by-state?state_code=AL&limit=5{}", "limit", "limit=5?"),
        (PROJECTS + "&status_date_from=2026-11-{}05", "status_date_from", "status_date_from=2026-11-05?"),
        (PROJECTS + "&status={}approved", "status", "status=approved?"),
        ("/v1/usage?from={}2026-11-05", "from", "from=2026-11-05?"),
        ("/v1/releases/current/changes?area=forecast{}", "area", "area=forecast?"),
    ],
)
def test_an_invisible_character_is_named(
    documented: Served, target: str, parameter: str, meant: str, mark: str
) -> None:
    for _ in range(2):
        answer = documented.ask(target.format(quote(mark)))
        problem = answer.json()
        assert (answer.status, problem["code"], problem["parameter"]) == (400, "invalid_parameter", parameter)
        code = "FEFF" if mark == "ï»¿" else f"{ord(mark):04X}"
        assert problem["detail"].startswith(f"{parameter} contains an invisible character (U+{code}, ")
        assert problem["detail"].endswith(f"Did you mean {meant}")


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("target", [FORECAST + "?{}zip_code=36436", FORECAST + "/batch?{}zip_code=36436"])
def test_an_invisible_character_in_a_name_is_named(worker: Served, target: str, mark: str) -> None:
    answer = worker.ask(target.format(quote(mark)))
    assert answer.status == 400
    assert "A parameter's name contains an invisible character (U+" in detail(answer)
    assert "zip_code=36436" in detail(answer)


@pytest.mark.parametrize("mark", MARKS)
def test_the_wrong_parameter_is_shown_without_its_invisible_characters(worker: Served, mark: str) -> None:
    answer = worker.ask(f"{FORECAST}/by-state?{quote(mark)}state_code=AL")
    assert answer.json()["parameter"] == "state_code"


@pytest.mark.parametrize("target", [FORECAST + "?{}", FORECAST + "/batch?{}"])
@pytest.mark.parametrize("name", ["zip_code%0A", "%0Dzip_code", "zip_code%09", "zip%00_code", "zip_code%C2%85"])
def test_a_control_character_in_a_name_is_named(worker: Served, target: str, name: str) -> None:
    answer = worker.ask(target.format(f"{name}=36436"))
    assert answer.status == 400
    assert "A parameter's name contains an unprintable character. Did you mean zip_code=36436?" in detail(answer)


def test_an_invisible_character_in_the_name_of_a_city_changes_nothing(worker: Served) -> None:
    for mark in (*MARKS, "\u2800", "\u115f"):
        assert worker.forecast(city_name=f"{mark}Springfield", state_code="IL").status == 200


def test_half_a_character_is_no_defect(worker: Served) -> None:
    for sent in ("x%5Cud83d", "x%ud83d", "%FACILITY%"):
        assert worker.ask(f"{FORECAST}?city_name={quote(sent, safe='%')}&state_code=CO").status in (400, 404)


@pytest.mark.parametrize("ending", ["\r\r\n", "\n\r\n", "\r\n \r\n", "\0\r\n"])
def test_a_line_break_in_a_header_is_named(worker: Served, ending: str) -> None:
    head = worker.head(f"{FORECAST}?zip_code=36436").removesuffix("\r\n\r\n")
    with worker.wire() as wire:
        answer = wire.send(f"{head}{ending}\r\n").answer()
    assert (answer.status, answer.json()["code"]) == (400, "bad_request")
    assert "A header has a line break or a control character in its value" in detail(answer)


@given(st.text(max_size=100))
def test_any_text_can_be_looked_at(text: str) -> None:
    found = encoded_in(text)
    if found is not None:
        found[1].encode()
    assert invisible_in(visible(text)) is None or "ï»¿" in visible(text)


@pytest.mark.parametrize("name", ["Cañon City", "Coeur d'Alene", "100% Ranch", "A & B; C", "St. Mary's", "Doña Ana"])
def test_a_name_that_only_looks_a_little_encoded_is_not(name: str) -> None:
    assert encoded_in(name) is None


def test_drops_and_messages_know_the_same_characters() -> None:
    (cause,) = [cause for cause in CAUSES if cause.name == "an invisible character"]
    for first, last in INVISIBLE:
        assert rf"\x{{{first:04X}}}-\x{{{last:04X}}}" in cause.pattern
        assert chr(first) not in printable(chr(first))
        assert invisible_in(chr(last)) is not None
