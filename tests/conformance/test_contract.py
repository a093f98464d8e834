"""Tests the HTTP contract of docs/reference/contract.md and the pages that it lists, point by point, over the wire.

The number in a test's name is the point's. Other tests cover the details of each point.
"""

import gzip
import json
import re
from datetime import date
from typing import Any
from urllib.parse import quote

import pytest

from config.settings import Settings
from service.base.terms import Quota, Rate, Terms
from service.keys.changes import suspend
from service.keys.store import KeyStore
from service.request.errors import CODES
from tests.support.served import FORECAST, Served, with_keys
from tests.support.waiting import until
from tests.support.wire import Answer

PROJECTS = "/v1/development-projects"
BATCH = f"{FORECAST}/batch"
# docs/reference/contract.md, "The fixed part": the members of a body in their order
LOCATION = ["zip_code", "county_name", "county_fips_code", "city", "state_code", "latitude", "longitude"]
HOUSING = [*(f"tot_home_available_{year}" for year in range(2020, 2024)), "est_total_home_demand_2030"]
PROBLEM = ["type", "title", "status", "detail", "code", "request_id"]


@pytest.fixture(scope="module")
def keys(documented: Served, settings: Settings) -> dict[str, str]:
    """Keys: without the area `projects`; of 1,000 requests a second and 100,000 a day; revoked; suspended."""

    async def make(store: KeyStore) -> dict[str, str]:
        made = {}
        for name, terms in (
            ("forecast alone", Terms(areas=("forecast",))),
            ("limited", Terms(rate=Rate(1_000, 1, 1_000), quota=Quota(100_000, "day"))),
            ("revoked", Terms()),
            ("suspended", Terms()),
        ):
            made[name], record = await store.issue("acme", "", None, terms)
            if name == "revoked":
                await store.revoke(record.key_id)
            if name == "suspended":
                await suspend(store, record.key_id, "overdue")
        return made

    async def run() -> dict[str, str]:
        return await with_keys(settings.keys_url, settings.data_path, make)

    return documented.run(run)


def asked(documented: Served, query: str, path: str = FORECAST, **headers: str) -> Answer:
    return documented.ask(f"{path}?{query}", **headers)


def problem(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["code"]


def zip_codes(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    return [entry["location"]["zip_code"] for entry in answer.json()["zip_codes"]]


def test_given_a_body_has_exactly_these_members_in_this_order(documented: Served) -> None:
    body = asked(documented, "zip_code=36436").json()
    assert list(body) == ["total_results", "zip_codes"]
    (entry,) = body["zip_codes"]
    assert list(entry) == ["location", "population", "housing"]
    assert list(entry["location"]) == LOCATION
    assert list(entry["population"][0]) == ["year", "tot_population"]
    assert list(entry["housing"]) == HOUSING
    assert (entry["location"]["city"], entry["location"]["zip_code"]) == ("Dickinson, AL", "36436")


@pytest.mark.parametrize(
    ("method", "target", "key", "expected"),
    [
        ("GET", "/v1/nothing?zip_code=1", None, (401, "missing_api_key")),
        ("GET", "/v1/nothing?zip_code=1", "phf_live_nonsense", (401, "invalid_api_key")),
        ("POST", "/v1/nothing", "", (404, "not_found")),
        ("POST", f"{PROJECTS}?zip_code=1", "forecast alone", (405, "method_not_allowed")),
        ("GET", f"{PROJECTS}?zip_code=1", "forecast alone", (403, "not_entitled")),
        ("GET", f"{FORECAST}?zip_code=1", "forecast alone", (400, "invalid_parameter")),
        ("GET", f"{FORECAST}?zip_code=99999", "forecast alone", (404, "no_matching_records")),
    ],
)
def test_1_the_first_check_that_fails_answers(
    documented: Served, keys: dict[str, str], method: str, target: str, key: str | None, expected: tuple[int, str]
) -> None:
    answer = documented.ask(target, method, key=keys.get(key, key) if key else key)
    assert problem(answer) == expected


def test_1_two_keys_are_a_400_and_a_key_in_the_query_string_does_not_count(documented: Served) -> None:
    head = documented.head(f"{FORECAST}?zip_code=36436").replace("\r\n\r\n", f"\r\nx-api-key: {documented.key}\r\n\r\n")
    with documented.wire() as wire:
        assert problem(wire.send(head).answer()) == (400, "bad_request")
    assert documented.ask(f"{FORECAST}?zip_code=36436&x-api-key={documented.key}", key=None).status == 401


def test_2_both_forms_at_once_are_conjunctive(documented: Served) -> None:
    assert zip_codes(asked(documented, "zip_code=63101&city_name=Saint+Louis&state_code=MO")) == ["63101"]
    elsewhere = asked(documented, "zip_code=63101&city_name=Dickinson&state_code=AL")
    assert problem(elsewhere) == (404, "no_matching_records")
    assert "Saint Louis, MO" in elsewhere.json()["detail"]
    assert asked(documented, "zip_code=63101&state_code=AL").status == 404
    assert problem(asked(documented, "zip_code=63101&city_name=Saint+Louis")) == (400, "missing_parameter")
    assert problem(asked(documented, "state_code=MO")) == (400, "missing_parameter")


@pytest.mark.parametrize(
    "query",
    [
        "city_name=Saint+Louis&state_code=MO",
        "city_name=Saint%20Louis&state_code=mo",
        "city_name=%20st.%20%20louis&state_code=MO&zip_code=",
        "city_name=SAINT-LOUIS&state_code=MO",
        "city_name=St+Louis,+MO&state_code=MO",
    ],
)
def test_3_spellings_of_a_city_are_forgiven(documented: Served, query: str) -> None:
    assert zip_codes(asked(documented, query)) == ["63101", "63102"]


def test_3_of_zip_plus_4_the_first_five_digits_are_used(documented: Served) -> None:
    assert zip_codes(asked(documented, "zip_code=36436-1234")) == ["36436"]


def test_4_an_alias_is_consulted_only_if_no_city_has_the_name(documented: Served) -> None:
    hollywood = asked(documented, "city_name=Hollywood&state_code=CA")
    assert zip_codes(hollywood) == ["90028"]
    assert hollywood.json()["zip_codes"][0]["location"]["city"] == "Los Angeles, CA"
    assert zip_codes(asked(documented, "zip_code=90028&city_name=Hollywood&state_code=CA")) == ["90028"]
    assert asked(documented, "city_name=Tinseltown&state_code=CA").status == 404  # not an acceptable one


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("zip_code=501", "invalid_parameter"),
        ("city_name=Dickinson&state_code=Alabama", "invalid_parameter"),
        ("zip_code=36436&zip_code=36436", "duplicate_parameter"),
        ("city_name=%FF&state_code=AL", "invalid_parameter"),
        ("city_name=%00&state_code=AL", "invalid_parameter"),
        (f"city_name={'x' * 101}&state_code=AL", "invalid_parameter"),
    ],
)
def test_5_what_is_not_safe_to_forgive_is_a_400(documented: Served, query: str, code: str) -> None:
    assert problem(asked(documented, query)) == (400, code)


def test_5_a_lost_zero_is_named_and_an_unknown_state_is_a_404(documented: Served) -> None:
    assert "00501" in asked(documented, "zip_code=501").json()["detail"]
    assert problem(asked(documented, "city_name=Dickinson&state_code=ZZ")) == (404, "no_matching_records")


def test_5_an_unknown_parameter_of_the_forecast_never_splits_the_cache(documented: Served) -> None:
    plain, other = asked(documented, "zip_code=36436"), asked(documented, "zip_code=36436&utm_source=x")
    assert (plain.body, plain.header("etag")) == (other.body, other.header("etag"))
    assert "hit" in (other.header("cache-status") or "")


def test_6_head_answers_as_get_and_other_methods_are_a_405(documented: Served) -> None:
    get, head = asked(documented, "zip_code=36436"), documented.ask(f"{FORECAST}?zip_code=36436", "HEAD")
    assert (head.status, head.body, head.header("content-length")) == (200, b"", str(len(get.body)))
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        refused = documented.ask(f"{FORECAST}?zip_code=36436", method)
        assert (refused.status, refused.header("allow")) == (405, "GET, HEAD")
    assert documented.ask(f"{FORECAST}/?zip_code=36436").body == get.body
    assert asked(documented, "zip_code=36436", Accept="text/html").header("content-type") == "application/json"


def test_7_the_wire_form_has_no_space_and_a_length(documented: Served) -> None:
    answer = asked(documented, "city_name=Saint+Louis&state_code=MO")
    assert answer.header("content-type") == "application/json"
    assert int(answer.header("content-length") or 0) == len(answer.body)
    assert answer.body == json.dumps(answer.json(), separators=(",", ":"), ensure_ascii=False).encode()


def test_8_entries_and_years_ascend_and_all_are_there(documented: Served) -> None:
    answer = asked(documented, "city_name=Saint+Louis&state_code=MO")
    assert zip_codes(answer) == sorted(zip_codes(answer))
    years = [one["year"] for one in asked(documented, "zip_code=36436").json()["zip_codes"][0]["population"]]
    assert years == sorted(years) == [2010, 2023]


def test_9_a_zip_code_without_figures_is_a_match_with_nulls(documented: Served) -> None:
    (entry,) = asked(documented, "zip_code=09001").json()["zip_codes"]
    assert [name for name, value in entry["location"].items() if value is None] == [
        "county_name",
        "county_fips_code",
        "latitude",
        "longitude",
    ]
    assert (entry["population"], set(entry["housing"].values())) == ([], {None})


def test_10_every_error_has_the_members_of_a_problem(documented: Served) -> None:
    answers = [
        documented.ask("/nothing"),
        documented.ask(FORECAST, key=None),
        asked(documented, "zip_code=x"),
        asked(documented, "zip_code=99999"),
        documented.ask(FORECAST, "POST"),
    ]
    with documented.wire() as wire:
        answers.append(wire.send("NONSENSE\r\n\r\n").answer())
    for answer in answers:
        body = answer.json()
        assert [name for name in body if name != "parameter"] == PROBLEM
        assert (body["type"], body["status"]) == ("about:blank", answer.status)
        assert CODES[body["code"]][0] == answer.status
        assert answer.header("content-type") == "application/json"
        assert body["request_id"] == answer.header("x-request-id")


def test_11_a_401_names_the_scheme_and_only_the_right_secret_learns_of_a_revocation(
    documented: Served, keys: dict[str, str]
) -> None:
    revoked = documented.ask(f"{FORECAST}?zip_code=36436", key=keys["revoked"])
    assert problem(revoked) == (401, "revoked_api_key")
    guessed = documented.ask(f"{FORECAST}?zip_code=36436", key=keys["revoked"][:-1] + "_")
    assert problem(guessed) == (401, "invalid_api_key")
    assert revoked.header("www-authenticate") == guessed.header("www-authenticate") == "ApiKey"


def test_11_a_suspended_key_is_a_403_on_every_path_without_the_operator_s_reason(
    documented: Served, keys: dict[str, str]
) -> None:
    for path in (f"{FORECAST}?zip_code=36436", f"{FORECAST}/batch?zip_code=36436", "/v1/", "/v1/usage", "/v1/nothing"):
        answer = documented.ask(path, key=keys["suspended"])
        assert problem(answer) == (403, "suspended_api_key")
        assert b"overdue" not in answer.body
    guessed = documented.ask("/v1/", key=keys["suspended"][:-1] + "_")
    assert problem(guessed) == (401, "invalid_api_key")


def test_12_a_200_has_its_validators_and_says_where_it_came_from(documented: Served, keys: dict[str, str]) -> None:
    answer = asked(documented, "zip_code=36436", X_Request_Id="mine-1", key=keys["limited"])
    headers = dict(answer.headers)
    assert re.fullmatch(r'"[0-9a-f]+"', headers["etag"])
    assert headers["cache-control"] == "private, max-age=60"
    assert headers["vary"] == "accept, accept-encoding, x-api-key"
    assert headers["cache-status"].startswith("forecast; ")
    assert headers["x-request-id"] == "mine-1"
    assert headers["ratelimit-policy"].startswith('"rate";q=1000;w=1')
    assert "ratelimit" in headers
    assert "server" not in headers
    assert headers["x-data-release"] == documented.ask("/v1/").json()["release"]["id"]


def test_12_what_the_caller_has_is_a_304(documented: Served) -> None:
    first = asked(documented, "zip_code=36436")
    again = asked(documented, "zip_code=36436", If_None_Match=first.header("etag") or "")
    assert (again.status, again.body) == (304, b"")
    for name in ("etag", "cache-control", "vary", "x-data-release"):
        assert again.header(name) == first.header(name)


def test_12_nothing_found_is_kept_and_other_errors_are_not(documented: Served) -> None:
    assert asked(documented, "zip_code=99999").header("cache-control") == "private, max-age=60"
    assert asked(documented, "zip_code=x").header("cache-control") == "no-store"


def test_12_gzip_is_used_if_asked_for(documented: Served) -> None:
    plain = asked(documented, "limit=1000&city_name=San+Francisco&state_code=CA", PROJECTS)
    zipped = asked(documented, "limit=1000&city_name=San+Francisco&state_code=CA", PROJECTS, Accept_Encoding="gzip")
    assert zipped.header("content-encoding") == "gzip"
    assert gzip.decompress(zipped.body) == plain.body
    assert zipped.header("etag") != plain.header("etag")


def test_13_the_index_lists_the_areas_of_the_release(documented: Served) -> None:
    body: dict[str, Any] = documented.ask("/v1").json()
    assert body == documented.ask("/v1/").json()
    assert body["version"] == "v1"
    assert body["attribution"] == ["The tests"]
    areas = {area["name"]: area for area in body["areas"]}
    assert areas["forecast"]["path"] == FORECAST
    assert areas["projects"]["path"] == PROJECTS
    assert areas["forecast"]["query_forms"] == [["zip_code"], ["city_name", "state_code"]]
    assert (areas["forecast"]["cities"], areas["projects"]["cities"]) == (None, ["San Francisco, CA"])
    assert [body[path] for path in ("releases", "usage", "openapi", "documentation")] == [
        *("/v1/releases", "/v1/usage", "/v1/openapi.json", "/docs/"),
    ]
    assert documented.ask("/v1/openapi.json").json()["openapi"].startswith("3.1")


def test_13_the_index_says_what_the_asking_key_may_use(documented: Served, keys: dict[str, str]) -> None:
    assert documented.ask("/v1/", key=keys["forecast alone"]).json()["key"]["areas"] == ["forecast"]
    limited = documented.ask("/v1/", key=keys["limited"]).json()["key"]
    assert list(limited) == ["key_id", "areas", "rate", "quota", "expires_at"]
    assert (limited["rate"], limited["quota"], limited["expires_at"]) == ("1000/s", "100000/day", None)


def test_14_projects_come_in_pages_that_lose_and_repeat_nothing(documented: Served) -> None:
    query, found, cursor = "city_name=San+Francisco&state_code=CA&limit=5", [], ""
    while True:
        page = asked(documented, f"{query}{cursor}", PROJECTS).json()
        assert list(page) == ["total_results", "total_matching", "next_cursor", "development_projects"]
        assert (page["total_results"], page["total_matching"]) == (len(page["development_projects"]), 12)
        found += [one["project_id"] for one in page["development_projects"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={quote(page['next_cursor'])}"
    assert found == sorted(found)
    assert len(set(found)) == 12
    assert problem(asked(documented, f"zip_code=94103{cursor}", PROJECTS)) == (400, "invalid_cursor")
    for limit in ("0", "1001", "x"):
        assert problem(asked(documented, f"zip_code=94103&limit={limit}", PROJECTS)) == (400, "invalid_parameter")


def test_15_usage_is_of_the_requesting_key(documented: Served, keys: dict[str, str]) -> None:
    body = documented.ask("/v1/usage", key=keys["limited"]).json()
    assert list(body)[:5] == ["key_id", "partner", "period", "limits", "days"]
    assert body["partner"] == "acme"
    assert set(body["limits"]) == {"rate", "quota", "remaining"}
    date.fromisoformat(body["period"]["from"])


def test_15_usage_by_hour_is_of_the_requesting_key(documented: Served, keys: dict[str, str]) -> None:
    assert documented.ask(f"{FORECAST}?zip_code=36436", key=keys["limited"]).status == 200

    def reported() -> list[Any]:
        body = documented.ask("/v1/usage/hours", key=keys["limited"]).json()
        assert list(body) == ["key_id", "period", "hours"]
        return list(body["hours"])

    until(lambda: bool(reported()))
    assert list(reported()[-1]) == ["hour", "area", "answered", "not_modified", "not_found", "rejected", "limited"]
    assert reported()[-1]["hour"].endswith(":00:00Z")
    assert problem(documented.ask("/v1/usage/hours?from=2020-01-01")) == (400, "invalid_parameter")


def test_15_the_last_errors_tell_of_the_asking_key(documented: Served, keys: dict[str, str]) -> None:
    failed = documented.ask(f"{FORECAST}?zip_code=501", key=keys["limited"])

    def reported() -> list[Any]:
        body = documented.ask("/v1/usage/errors", key=keys["limited"]).json()
        assert list(body) == ["key_id", "total_results", "errors"]
        assert body["total_results"] == len(body["errors"])
        return [one for one in body["errors"] if one["request_id"] == failed.header("x-request-id")]

    until(lambda: bool(reported()))
    (error,) = reported()
    assert list(error) == ["time", "request_id", "method", "status", "code", "target"]
    assert list(error.values())[2:] == ["GET", 400, "invalid_parameter", f"{FORECAST}?zip_code=501"]
    assert error["time"].endswith("Z")
    assert problem(documented.ask("/v1/usage/errors?limit=101")) == (400, "invalid_parameter")


def test_16_a_key_without_options_has_no_limits(documented: Served) -> None:
    answer = asked(documented, "zip_code=36436")
    assert answer.header("ratelimit") is None
    assert documented.ask("/v1/usage").json()["limits"] == {"rate": None, "quota": None, "remaining": None}


@pytest.mark.parametrize("path", ["/health/ready", "/metrics", "/overview", "/"])
def test_18_what_is_for_operators_is_not_on_this_listener(documented: Served, path: str) -> None:
    assert documented.ask(path).status == 404


def test_19_several_zip_codes_are_answered_as_if_each_were_asked_for_alone(documented: Served) -> None:
    answer = documented.ask(f"{BATCH}?zip_code=36436&zip_code=99999&zip_code=501&zip_code=&zip_code=36436")
    body = answer.json()
    assert list(body) == ["total_results", "total_found", "results"]
    assert (body["total_results"], body["total_found"]) == (5, 2)
    reported = [(one["zip_code"], one["status"], one["code"]) for one in body["results"]]
    assert reported == [
        ("36436", 200, None),
        ("99999", 404, "no_matching_records"),
        ("501", 400, "invalid_parameter"),
        ("", 400, "invalid_parameter"),
        ("36436", 200, None),
    ]
    assert body["results"][0]["result"] == asked(documented, "zip_code=36436").json()["zip_codes"][0]
    assert answer.header("etag")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "missing_parameter"),
        ("zip_code=36436,90028", "invalid_parameter"),
        ("&".join(["zip_code=36436"] * 101), "invalid_parameter"),
        ("zip_code=36436&state_code=AL", "unknown_parameter"),
    ],
    ids=["none", "a list", "101", "another parameter"],
)
def test_19_what_is_wrong_with_a_batch_as_a_whole_is_a_400(documented: Served, query: str, code: str) -> None:
    assert problem(asked(documented, query, BATCH)) == (400, code)


def test_19_a_batch_counts_as_many_requests_as_it_has_zip_codes(documented: Served, keys: dict[str, str]) -> None:
    left = re.compile(r'"quota";r=([0-9]+)')
    reported = []
    for query in ("zip_code=36436", "&".join(["zip_code=36436"] * 10)):
        found = left.search(documented.ask(f"{BATCH}?{query}", key=keys["limited"]).header("ratelimit") or "")
        assert found is not None
        reported.append(int(found[1]))
    assert reported[0] - reported[1] == 10


def test_20_a_region_has_every_zip_code_that_names_it_in_pages(documented: Served) -> None:
    for path, query in (("by-state", "state_code=al"), ("by-county", "county_fips_code=01025")):
        whole = asked(documented, query, f"{FORECAST}/{path}").json()
        assert list(whole) == ["total_results", "total_matching", "next_cursor", "zip_codes"]
        found, cursor = [], ""
        while cursor is not None:
            page = asked(
                documented, f"{query}&limit=1{cursor and f'&cursor={quote(cursor)}'}", f"{FORECAST}/{path}"
            ).json()
            assert page["total_matching"] == whole["total_matching"]
            found += page["zip_codes"]
            cursor = page["next_cursor"]
        assert found == whole["zip_codes"]
        assert problem(asked(documented, f"{query}&page=2", f"{FORECAST}/{path}")) == (400, "unknown_parameter")


def test_21_a_whole_release_is_a_file_that_can_be_read_in_parts(documented: Served, keys: dict[str, str]) -> None:
    for name in ("forecast.parquet", "forecast.csv.gz", "projects.parquet", "projects.csv.gz"):
        target = f"/v1/releases/current/{name}"
        whole = documented.ask(target)
        etag = whole.header("etag") or ""
        assert (whole.status, whole.header("accept-ranges")) == (200, "bytes")
        assert documented.ask(target, If_None_Match=etag).status == 304
        part = documented.ask(target, Range="bytes=1-9", If_Range=etag)
        assert (part.status, part.body) == (206, whole.body[1:10])
        assert documented.ask(target, Range="bytes=1-9", If_Range='"another"').body == whole.body
        assert problem(documented.ask(target, Range="bytes=99999999-")) == (416, "range_not_satisfiable")
        assert documented.ask(target, key=keys["forecast alone"]).status == 403


def test_22_releases_are_listed_with_what_they_changed(documented: Served) -> None:
    answer = documented.ask("/v1/releases")
    first = answer.json()["releases"][0]
    assert list(first) == ["id", "published_at", "current", "illustrative", "areas"]
    assert (first["current"], first["id"]) == (True, answer.header("x-data-release"))
    for area in first["areas"]:
        assert list(area) == ["name", "rows", "changed", "files"]
        page = documented.ask(f"/v1/releases/{first['id']}/changes?area={area['name']}").json()
        ids = page["zip_codes" if area["name"] == "forecast" else "project_ids"]
        assert list(page)[:5] == ["release", "previous", "total_results", "total_matching", "next_cursor"]
        assert (len(ids), page["total_matching"]) == (page["total_results"], area["changed"])
        assert ids == sorted(ids)
    assert documented.ask("/v1/releases.atom").header("content-type") == "application/atom+xml"
    assert documented.ask("/v1/").json()["releases"] == "/v1/releases"
    assert problem(documented.ask("/v1/releases?page=2")) == (400, "unknown_parameter")
