"""GET .../by-county and .../by-state: pages of a region, their cursors, and what is wrong with a query."""

from typing import Any
from urllib.parse import urlencode

import pytest

from service.http.area import Resolved
from service.http.forecast_regions import resolve_county
from service.request.errors import ApiError
from tests.support.served import FORECAST, Served
from warehouse.areas.paging import Cursors
from warehouse.places.keyset_builder import KeySetBuilder

COUNTY, STATE = f"{FORECAST}/by-county", f"{FORECAST}/by-state"
SPRINGFIELD = [str(zip_code) for zip_code in range(62701, 62709)]


def ask(worker: Served, path: str, **parameters: str | int) -> tuple[int, dict[str, Any]]:
    answer = worker.ask(f"{path}?{urlencode(parameters)}")
    assert answer.header("content-type") == "application/json"
    return answer.status, answer.json()


def zips(body: dict[str, Any]) -> list[str]:
    return [entry["location"]["zip_code"] for entry in body["zip_codes"]]


@pytest.mark.parametrize(
    ("path", "query"), [(COUNTY, {"county_fips_code": "17167"}), (STATE, {"state_code": "il"})], ids=["county", "state"]
)
@pytest.mark.parametrize("limit", [1, 3, 7, 8, 1000])
def test_the_pages_have_each_zip_code_once(worker: Served, path: str, query: dict[str, str], limit: int) -> None:
    found: list[str] = []
    asked: dict[str, str | int] = {**query, "limit": limit}
    while True:
        status, body = ask(worker, path, **asked)
        assert list(body) == ["total_results", "total_matching", "next_cursor", "zip_codes"]
        assert (status, body["total_results"], body["total_matching"]) == (200, len(body["zip_codes"]), 8)
        found += zips(body)
        alone = worker.forecast(zip_code=zips(body)[0]).json()
        assert body["zip_codes"][0] == alone["zip_codes"][0]
        if body["next_cursor"] is None:
            break
        asked["cursor"] = body["next_cursor"]
    assert found == SPRINGFIELD


def test_a_place_without_a_county_is_in_its_state(worker: Served) -> None:
    assert zips(ask(worker, STATE, state_code="AE")[1]) == ["09001"]


def test_a_page_is_cached_like_any_answer(worker: Served) -> None:
    first = worker.ask(f"{STATE}?state_code=mo&limit=2")
    again = worker.ask(f"{STATE}/?limit=002&state_code=MO&cursor=")
    assert "fwd=uri-miss" in (first.header("cache-status") or "")
    assert "hit" in (again.header("cache-status") or "")
    assert first.body == again.body
    single = worker.forecast(zip_code="36436")
    assert {name for name, _ in first.headers} == {name for name, _ in single.headers}


def test_a_cursor_belongs_to_its_query(worker: Served) -> None:
    cursor = ask(worker, COUNTY, county_fips_code="17167", limit=1)[1]["next_cursor"]
    assert zips(ask(worker, COUNTY, county_fips_code="17167", limit=2, cursor=cursor)[1]) == SPRINGFIELD[1:3]
    for path, query in (
        (COUNTY, {"county_fips_code": "01025"}),
        (STATE, {"state_code": "IL"}),
        (COUNTY, {"county_fips_code": "17167", "cursor": cursor[:-1]}),
    ):
        status, body = ask(worker, path, **{"cursor": cursor, **query})
        assert (status, body["code"], body["parameter"]) == (400, "invalid_cursor", "cursor")


@pytest.mark.parametrize(
    ("path", "query", "code", "parameter", "says"),
    [
        (COUNTY, "", "missing_parameter", "county_fips_code", "county_fips_code=01025"),
        (
            COUNTY,
            "county_fips_code=1025",
            "invalid_parameter",
            "county_fips_code",
            "Did you mean county_fips_code=01025",
        ),
        (COUNTY, "county_name=Clarke+County&state_code=AL", "unknown_parameter", "county_name", "=01025"),
        (COUNTY, "county_fips_code=01025&page=2", "unknown_parameter", "page", "Send the next_cursor"),
        (STATE, "", "missing_parameter", "state_code", "state_code=AL"),
        (STATE, "state_code=ALA", "invalid_parameter", "state_code", "AL"),
        (STATE, "state_code=AL&state_code=AL", "duplicate_parameter", "state_code", "twice"),
    ],
)
def test_an_error_names_the_parameter(
    worker: Served, path: str, query: str, code: str, parameter: str, says: str
) -> None:
    answer = worker.ask(f"{path}?{query}")
    body = answer.json()
    assert (answer.status, body["code"], body["parameter"]) == (400, code, parameter)
    assert says in body["detail"]


@pytest.mark.parametrize(
    ("path", "query", "says"),
    [
        (COUNTY, {"county_fips_code": "17168"}, "Answers name the county_fips_code"),
        (COUNTY, {"county_fips_code": "99001"}, "01 is Alabama"),
        (STATE, {"state_code": "US"}, "GET /v1/releases"),
        (STATE, {"state_code": "ZZ"}, "There are no ZIP codes in a state ZZ."),
    ],
)
def test_an_unknown_region_is_a_cacheable_404(worker: Served, path: str, query: dict[str, str], says: str) -> None:
    answer = worker.ask(f"{path}?{urlencode(query)}")
    assert (answer.status, answer.json()["code"]) == (404, "no_matching_records")
    assert says in answer.json()["detail"]
    assert answer.header("cache-control") == "private, max-age=60"


def test_a_release_that_knows_no_counties_says_so() -> None:
    """One of an earlier version, after a rollback: nobody is told that the county does not exist."""
    builder = KeySetBuilder()
    builder.add("36436", "Dickinson, AL", "AL", has_figures=True)
    with pytest.raises(ApiError) as raised:
        resolve_county(builder.build(), b"county_fips_code=01025", Cursors(b""))
    assert raised.value.code == "not_found"


def test_a_page_counts_as_empty_if_nothing_on_it_has_figures(worker: Served) -> None:
    builder = KeySetBuilder()
    builder.add("36436", "Dickinson, AL", "AL", has_figures=True, county="01025")
    builder.add("36446", "Fulton, AL", "AL", has_figures=False, county="01025")
    keys, cursors = builder.build(), Cursors(b"")
    first = resolve_county(keys, b"county_fips_code=01025&limit=1", cursors)
    after = cursors.encode("forecast\ncounty:01025", "36436").encode()
    second = resolve_county(keys, b"county_fips_code=01025&limit=1&cursor=" + after, cursors)
    assert isinstance(first, Resolved)
    assert isinstance(second, Resolved)
    assert (first.outcome, second.outcome) == ("answered", "answered_empty")
    assert (first.keys, second.keys) == (("36436",), ("36446",))
