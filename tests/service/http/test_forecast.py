"""GET /v1/population-housing-forecast: what matches, what does not, and the exact bytes."""

import pytest

from tests.support.served import FORECAST, Served

DICKINSON = (
    b'{"total_results":1,"zip_codes":[{"location":{"zip_code":"36436","county_name":"Clarke County",'
    b'"county_fips_code":"01025","city":"Dickinson, AL","state_code":"AL","latitude":31.7061,"longitude":-87.9999},'
    b'"population":[{"year":2010,"tot_population":531},{"year":2023,"tot_population":783}],'
    b'"housing":{"tot_home_available_2020":216,"tot_home_available_2021":333,"tot_home_available_2022":334,'
    b'"tot_home_available_2023":281,"est_total_home_demand_2030":467}}]}'
)
WITHOUT_FIGURES = (
    b'{"total_results":1,"zip_codes":[{"location":{"zip_code":"09001","county_name":null,"county_fips_code":null,'
    b'"city":"APO, AE","state_code":"AE","latitude":null,"longitude":null},"population":[],'
    b'"housing":{"tot_home_available_2020":null,"tot_home_available_2021":null,"tot_home_available_2022":null,'
    b'"tot_home_available_2023":null,"est_total_home_demand_2030":null}}]}'
)


def zip_codes(worker: Served, **parameters: str) -> list[str]:
    """What a query that must match finds; also holds total_results against it."""
    answer = worker.forecast(**parameters)
    assert answer.status == 200, answer.body
    body = answer.json()
    assert body["total_results"] == len(body["zip_codes"])
    return [entry["location"]["zip_code"] for entry in body["zip_codes"]]


def miss(worker: Served, **parameters: str) -> str:
    answer = worker.forecast(**parameters)
    assert (answer.status, answer.json()["code"]) == (404, "no_matching_records")
    detail: str = answer.json()["detail"]
    return detail


def test_an_answer_is_exactly_the_documented_bytes(worker: Served) -> None:
    answer = worker.forecast(zip_code="36436")
    assert answer.body == DICKINSON
    assert answer.header("content-type") == "application/json"
    assert answer.header("content-length") == str(len(DICKINSON))


def test_a_zip_code_without_figures_is_a_match_with_nulls(worker: Served) -> None:
    assert worker.forecast(zip_code="09001").body == WITHOUT_FIGURES


def test_a_city_answers_all_its_zip_codes_ascending(worker: Served) -> None:
    assert zip_codes(worker, city_name="Los Angeles", state_code="CA") == ["90001", "90028"]
    assert zip_codes(worker, city_name="Springfield", state_code="IL") == [str(code) for code in range(62701, 62709)]


def test_the_name_of_a_county_gets_the_endpoint_for_counties(worker: Served) -> None:
    hint = miss(worker, city_name="Clarke County", state_code="AL")
    assert f"Did you mean {FORECAST}/by-county?county_fips_code=01025 (Clarke County)?" in hint


def test_an_answer_to_another_name_says_which_city_each_time(worker: Served) -> None:
    query = "city_name=Los+Angeles+CA&state_code=CA"
    answers = [worker.ask(f"{FORECAST}?{query}") for _ in range(3)]
    again = worker.ask(f"{FORECAST}?{query}", if_none_match=answers[0].header("etag") or "")
    assert again.status == 304
    assert [answer.header("x-matched-city") for answer in (*answers, again)] == ["Los Angeles, CA"] * 4
    own = worker.ask(f"{FORECAST}?city_name=Los+Angeles&state_code=CA")
    assert (own.header("x-matched-city"), own.body) == (None, answers[0].body)


def test_ignored_parameters_are_named_and_change_nothing_else(worker: Served) -> None:
    """On a 200 and a 304, of GET and HEAD, each time; never in the cache key. Errors name them in their detail."""
    plain = worker.ask_by_wire(f"{FORECAST}?zip_code=36436")
    sent = f"{FORECAST}?zip_code=36436&zip=10001&page=2&page=3&a%0D%0Ab=1&phf_live_{'a' * 40}=1"
    for ask in (worker.ask, worker.ask_by_wire):
        for _ in range(2):
            answer = ask(sent)
            assert answer.header("x-ignored-parameters") == "zip, page, ab, phf_live_********"
            assert (answer.body, answer.header("etag")) == (plain.body, plain.header("etag"))
            assert answer.header("cache-status") == "forecast; hit; detail=near"
    assert worker.ask_by_wire(sent, "HEAD").header("x-ignored-parameters") is not None
    unchanged = worker.ask_by_wire(sent, if_none_match=plain.header("etag") or "")
    assert (unchanged.status, unchanged.header("x-ignored-parameters") is not None) == (304, True)
    assert plain.header("x-ignored-parameters") is None
    assert worker.ask(f"{FORECAST}?zip_code=99999&page=2").header("x-ignored-parameters") is None


def test_a_miss_says_what_would_match(worker: Served) -> None:
    assert "Dickinson, AL" in miss(worker, zip_code="36436", city_name="Saint Louis", state_code="MO")
    assert miss(worker, city_name="Saint Louis", state_code="ZZ") == (
        "There is no state ZZ. Did you mean city_name=Saint+Louis&state_code=MO?"
    )


def test_a_miss_may_be_kept_like_an_answer(worker: Served) -> None:
    answer = worker.forecast(zip_code="99999")
    assert answer.header("cache-control") == "private, max-age=60"
    assert answer.header("vary") == "accept, accept-encoding, x-api-key"
    assert answer.header("x-data-release") == worker.forecast(zip_code="36436").header("x-data-release")


def test_unknown_parameters_and_spellings_share_one_entry(worker: Served) -> None:
    first = worker.forecast(city_name="Dickinson", state_code="ND")
    other = worker.ask(f"{FORECAST}?utm=1&state_code=nd&city_name=DICK-INSON&x=%FF")
    assert other.header("cache-status") == "forecast; hit; detail=near"
    assert other.body == first.body


@pytest.mark.parametrize("accept", ["text/html", "application/xml;q=1, */*;q=0", "nonsense"])
def test_accept_never_causes_a_406(worker: Served, accept: str) -> None:
    answer = worker.ask(f"{FORECAST}?zip_code=36436", Accept=accept)
    assert (answer.status, answer.header("content-type")) == (200, "application/json")
