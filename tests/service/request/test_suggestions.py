"""Suggestions for keys in wrong places and forms, of paths that are nearly right, and of spaces in addresses."""

import pytest

from service.http.releases.controller import OF_CURRENT
from service.request import suggestions
from tests.support.key_store import any_key
from tests.support.problems import problem
from tests.support.served import FORECAST, Served

KEY, PARTS = any_key()
GOOD = f"{FORECAST}?zip_code=36436"


# Keys are random, and names of tests must not be: they are those of what is said.
ELSEWHERE = [
    ([(b"authorization", b"Bearer abc")], b"", "Authorization"),
    ([(b"api-key", b"abc")], b"", "api-key"),
    ([(b"x-apikey", b"abc")], b"", "x-apikey"),
    ([(b"x-token", KEY.encode())], b"", "x-token"),
    ([(b"x-api-key", b"")], b"", "empty"),
    ([], b"zip_code=36436&api_key=abc", "ask for a new key"),
    ([], f"k={KEY}".encode(), "ask for a new key"),
]


@pytest.mark.parametrize(("headers", "query", "said"), ELSEWHERE, ids=[said for *_, said in ELSEWHERE])
def test_a_key_that_is_somewhere_else_is_found(headers: list[tuple[bytes, bytes]], query: bytes, said: str) -> None:
    detail = suggestions.hint_for_missing_key([(b"accept", b"*/*"), *headers], query)
    assert detail is not None
    assert said.lower() in detail.lower()
    assert KEY not in detail


def test_a_request_without_any_key_gets_no_hint() -> None:
    assert suggestions.hint_for_missing_key([(b"accept", b"*/*"), (b"user-agent", b"curl")], b"zip_code=36436") is None


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/v1/population-housing-forecasts", FORECAST),
        ("/v1/population_housing_forecast", FORECAST),
        ("/api/v1/population-housing-forecast", FORECAST),
        ("/v2/population-housing-forecast", FORECAST),
        ("/v1/Population-Housing-Forecast", FORECAST),
        ("/v1/populaton-housing-forcast", FORECAST),
        ("/v1/projects", "/v1/development-projects"),
        ("/usage", "/v1/usage"),
        ("/v1/releases/current/forecast.csv", "/v1/releases/current/forecast.csv.gz"),
        ("/v1/releases/current/forecast", "/v1/releases/current/forecast.csv.gz"),
        ("/v1/releases/latest/forecast.parquet", "/v1/releases/current/forecast.parquet"),
        ("/v1/releases/current/development-projects.parquet", "/v1/releases/current/projects.parquet"),
        (f"{FORECAST}/36436", f"{FORECAST}?zip_code=36436"),
        (f"{FORECAST}/by-state/AL", f"{FORECAST}/by-state?state_code=AL"),
        (f"{FORECAST}/by-county/01025", f"{FORECAST}/by-county?county_fips_code=01025"),
        (f"{FORECAST}/by-city", FORECAST),
        (f"{FORECAST}/city/Dallas", f"{FORECAST}?city_name=Dallas"),
        (f"{FORECAST}/zip_code/36436", f"{FORECAST}?zip_code=36436"),
        (f"{FORECAST}&zip_code=36436", f"{FORECAST}?zip_code=36436"),
        (f"{FORECAST}%3Fzip_code=36436", f"{FORECAST}?zip_code=36436"),
        ("/v1/housing-population-forecast", FORECAST),
        ("/v1/releases/latest", "/v1/releases"),
        ("/v1/releases/current/change", "/v1/releases/current/changes"),
    ],
)
def test_a_path_that_is_nearly_one_is_named(path: str, meant: str) -> None:
    below = tuple(f"{FORECAST}/{leaf}" for leaf in ("batch", "by-county", "by-state"))
    known = ("/v1", FORECAST, *below, "/v1/development-projects", "/v1/usage", "/v1/releases", *OF_CURRENT)
    assert "?".join(filter(None, suggestions.nearest_path(path, known) or ())) == meant


def test_any_other_path_is_like_none() -> None:
    assert suggestions.nearest_path("/wp-admin.php", ("/v1", FORECAST)) is None


def test_a_good_key_that_stands_elsewhere_does_not_count(worker: Served) -> None:
    in_query = worker.ask(f"{GOOD}&x-api-key={worker.key}&api_key={worker.key}", key=None)
    for answer in (in_query, worker.ask(GOOD, key=None, Authorization=f"Bearer {worker.key}")):
        assert problem(answer) == (401, "missing_api_key")


def test_keys_and_paths_are_corrected_over_the_wire(worker: Served, documented: Served) -> None:
    assert "Authorization" in worker.ask(GOOD, key=None, authorization="Bearer x").json()["detail"]
    assert "placeholder" in worker.ask(GOOD, key="$KEY").json()["detail"]
    assert FORECAST in worker.ask("/v1/population-housing-forecasts?zip_code=36436").json()["detail"]
    assert "/docs/" in documented.ask("/nowhere").json()["detail"]
    assert "/docs/" not in worker.ask("/nowhere").json()["detail"]


def test_what_the_release_lacks_is_no_correction(worker: Served) -> None:
    assert "development-projects" not in worker.ask("/v1/development-project").json()["detail"]


@pytest.mark.parametrize(("city_name", "hint"), [("San Francisco", "%20"), ("Cañon", "percent-encoded, as UTF-8")])
def test_an_unencoded_space_or_letter_in_the_address_is_named(worker: Served, city_name: str, hint: str) -> None:
    with worker.wire() as wire:
        answer = wire.send(worker.head(f"{FORECAST}?city_name={city_name}")).answer()
    assert problem(answer) == (400, "bad_request")
    assert hint in answer.json()["detail"]


def test_other_faults_of_a_request_are_not_taken_for_a_space(worker: Served) -> None:
    for head in (b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", b"nonsense\r\n\r\n"):
        with worker.wire() as wire:
            assert "%20" not in wire.send(head).answer().json()["detail"]
