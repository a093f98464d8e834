"""Test keys: fixed answers behind the same checks, errors on purpose, and nothing of it on a bill or in an alarm."""

import os
import re
import shlex
import subprocess

import msgspec
import pytest

from config.settings import Settings
from service.base.telemetry import REQUESTS, TEST_REQUESTS
from service.base.terms import Quota, Rate, Terms
from service.http.forecast_examples import EXAMPLE
from service.http.own_usage.errors import EXAMPLES
from service.http.projects import PATH as PROJECTS
from service.http.sandbox.errors import ERROR_ZIPS
from service.http.sandbox.release import RELEASE_ID
from service.keys import form
from service.request.errors import CODES
from tests.support.caller import Caller
from tests.support.curl import curl
from tests.support.markdown import ROOT, blocks
from tests.support.problems import problem
from tests.support.served import FORECAST, Served
from tests.support.wire import Answer

GUIDE = ROOT / "docs/partners/test-keys.md"
GOOD = f"{FORECAST}?zip_code=36436"


@pytest.fixture(scope="module")
def tester(worker: Served, settings: Settings) -> Caller:
    return Caller(worker, settings, Terms(), test=True)


def left(answer: Answer) -> str | None:
    return answer.header("ratelimit")


def test_a_test_key_gets_the_documented_answer_and_a_header_that_says_so(tester: Caller) -> None:
    answer = tester.ask()
    assert (answer.status, answer.body) == (200, msgspec.json.encode(EXAMPLE))
    assert (answer.header("x-test-answer"), answer.header("x-data-release")) == ("true", RELEASE_ID)


def test_a_test_answer_has_the_headers_of_a_live_one(tester: Caller) -> None:
    etag = tester.ask().header("etag") or ""
    live_etag = tester.worker.ask(GOOD).header("etag") or ""
    nothing = f"{FORECAST}?zip_code=99999"
    for target, tag, live_tag in ((GOOD, "", ""), (GOOD, etag, live_etag), (nothing, "", "")):
        reported = tester.ask(target, if_none_match=tag)
        live = tester.worker.ask(target, if_none_match=live_tag)
        assert reported.status == live.status
        assert [name for name, _ in reported.headers if name != "x-test-answer"] == [name for name, _ in live.headers]


def test_live_answers_do_not_say_that_they_are_test_answers(worker: Served) -> None:
    assert worker.ask(GOOD, x_test_error="internal").header("x-test-answer") is None
    assert worker.ask(GOOD, x_test_error="internal").status == 200


def test_a_test_key_never_gets_live_data_however_hot_it_is(tester: Caller) -> None:
    live = tester.worker.ask(GOOD).json()
    example = msgspec.json.decode(msgspec.json.encode(EXAMPLE))
    assert live != example
    with tester.worker.wire() as wire:
        for _ in range(3):
            for key, body in (("", live), (tester.key, example)):
                assert wire.send(tester.worker.head(GOOD, key=key)).answer().json() == body


def test_a_test_key_knows_no_place_of_the_live_release_alone(tester: Caller) -> None:
    zip_codes = {answer["location"]["zip_code"] for answer in tester.worker.ask(GOOD).json()["zip_codes"]}
    assert "36436" in zip_codes
    assert tester.worker.ask(f"{FORECAST}?zip_code=62708").status == 200
    assert problem(tester.ask(f"{FORECAST}?zip_code=62708")) == (404, "no_matching_records")


def test_names_match_as_those_of_live_data_do(tester: Caller) -> None:
    found = tester.ask(f"{FORECAST}?city_name=springfield&state_code=il").json()
    assert [entry["location"]["zip_code"] for entry in found["zip_codes"]] == ["62701", "62702", "62703", "62704"]
    assert tester.ask(f"{FORECAST}?city_name=St.+Louis&state_code=mo").json()["total_results"] == 1
    assert tester.ask(f"{FORECAST}?city_name=Hollywood&state_code=CA").json()["total_results"] == 1
    assert (
        "city_name=Springfield&state_code=IL"
        in tester.ask(f"{FORECAST}?city_name=Springfeld&state_code=IL").json()["detail"]
    )
    empty = tester.ask(f"{FORECAST}?zip_code=09001").json()["zip_codes"][0]
    assert (empty["population"], empty["location"]["county_name"]) == ([], None)


def test_test_projects_come_in_pages(tester: Caller) -> None:
    assert tester.worker.ask(f"{PROJECTS}?zip_code=94103").status == 404
    query, found, cursor = f"{PROJECTS}?city_name=San+Francisco&state_code=CA&limit=2", [], ""
    while cursor is not None:
        page = tester.ask(query + (f"&cursor={cursor}" if cursor else "")).json()
        found += [project["project_id"] for project in page["development_projects"]]
        assert page["total_matching"] == 5
        cursor = page["next_cursor"]
    assert found == ["TEST-1", "TEST-2", "TEST-3", "TEST-4", "TEST-5"]
    assert tester.ask(f"{PROJECTS}?zip_code=94103").json()["total_matching"] == 4


def test_batches_and_regions_are_of_test_data_too(tester: Caller) -> None:
    found = tester.ask(f"{FORECAST}/batch?zip_code=36436&zip_code=62708").json()["results"]
    assert [(one["zip_code"], one["status"]) for one in found] == [("36436", 200), ("62708", 404)]
    for region in ("by-county?county_fips_code=17167", "by-state?state_code=IL"):
        page = tester.ask(f"{FORECAST}/{region}").json()
        found = [entry["location"]["zip_code"] for entry in page["zip_codes"]]
        assert found == ["62701", "62702", "62703", "62704"]


def test_the_documented_places_are_there(tester: Caller) -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    places, _, errors = guide.partition("## Errors on purpose")
    queries = re.findall(r"^\| `([a-z_]+=[^`]+)`", places, re.MULTILINE)
    assert len(queries) == 9
    for query in queries:
        assert tester.ask(f"{FORECAST}?{query.replace(' ', '+')}").status == 200
    documented = re.findall(r"^\| (00[0-9]{3}) \| ([0-9]{3}) `([a-z_]+)` \|$", errors, re.MULTILINE)
    assert documented == [(zip_code, str(CODES[code][0]), code) for zip_code, code in ERROR_ZIPS.items()]


def test_the_index_of_a_test_key_is_of_its_own_release(tester: Caller) -> None:
    body = tester.ask("/v1/").json()
    assert (body["release"]["id"], body["release"]["illustrative"]) == (RELEASE_ID, True)
    for area in body["areas"]:
        assert tester.ask(area["path"]).json()["code"] == "missing_parameter"


def test_the_description_of_a_test_key_is_of_what_it_gets(tester: Caller) -> None:
    paths = tester.ask("/v1/openapi.json").json()["paths"]
    assert not [path for path in paths if "releases" in path]
    assert all("default" in one["get"]["responses"] for one in paths.values())
    asked = [{field["name"] for field in one["get"]["parameters"]} for one in paths.values()]
    assert all("X-Test-Error" in fields for fields in asked)
    live = tester.worker.ask("/v1/openapi.json").json()["paths"]
    assert "/v1/releases" in live
    assert not [path for path, one in live.items() if "default" in one["get"]["responses"]]


def test_test_keys_pass_the_same_checks(tester: Caller, settings: Settings) -> None:
    assert problem(tester.ask(f"{FORECAST}?zip_code=1")) == (400, "invalid_parameter")
    assert problem(tester.ask(GOOD, "POST")) == (405, "method_not_allowed")
    limited = Caller(tester.worker, settings, Terms(("forecast",), Rate(1, 3600, 2)), test=True)
    assert problem(limited.ask(f"{PROJECTS}?zip_code=94103")) == (403, "not_entitled")
    assert [limited.ask().status for _ in range(3)] == [200, 200, 429]


def test_a_key_that_says_it_is_another_kind_of_key_is_none(tester: Caller) -> None:
    for key, other in ((tester.key, "phf_live"), (tester.worker.key, "phf_test")):
        body = other + key[8:].rpartition("_")[0]
        assert problem(tester.worker.ask(GOOD, key=f"{body}_{form._checksum(body)}")) == (401, "invalid_api_key")


def test_nothing_that_a_test_key_asks_for_is_counted(tester: Caller, settings: Settings) -> None:
    limited = Caller(tester.worker, settings, Terms(quota=Quota(2, "day")), test=True)
    before = tester.worker.app.telemetry.sum(REQUESTS)
    tested = tester.worker.app.telemetry.sum(TEST_REQUESTS)
    answers = [limited.ask(), limited.ask(), limited.ask(), limited.ask(x_test_error="internal")]
    assert [answer.status for answer in answers] == [200, 200, 200, 500]
    assert all((left(answer) or "").startswith('"quota";r=1;t=') for answer in answers[:3])
    assert tester.worker.app.telemetry.sum(REQUESTS) == before
    assert tester.worker.app.telemetry.sum(TEST_REQUESTS) == tested + 4
    assert limited.record.key_id not in tester.worker.app.metering.counters.waiting()
    assert limited.ask("/v1/usage").json()["limits"]["remaining"] == 2


def test_nothing_is_kept_of_a_test_key_s_errors(tester: Caller) -> None:
    assert tester.ask(f"{FORECAST}?zip_code=1").status == 400
    assert tester.ask(x_test_error="internal").status == 500
    body = tester.ask("/v1/usage/errors?limit=1").json()
    assert body["key_id"] == tester.record.key_id
    assert body["errors"] == [msgspec.to_builtins(EXAMPLES[0])]
    errors = tester.worker.app.metering.errors
    tester.worker.run(errors.flush)
    assert tester.worker.run(lambda: errors.of_key(tester.record.key_id)) == ()


@pytest.mark.parametrize("code", CODES)
def test_every_error_can_be_had_on_purpose(tester: Caller, code: str) -> None:
    for target in (GOOD, "/v1/", "/v1/usage"):
        answer = tester.ask(target, x_test_error=code)
        assert problem(answer) == (CODES[code][0], code)
        assert answer.header("x-test-answer") == "true"
    expected = {
        401: "www-authenticate",
        405: "allow",
        416: "content-range",
        429: "retry-after",
        503: "retry-after",
    }.get(answer.status)
    assert expected is None or answer.header(expected)


@pytest.mark.parametrize(("zip_code", "code"), ERROR_ZIPS.items())
def test_clients_that_send_no_header_ask_by_zip_code(tester: Caller, zip_code: str, code: str) -> None:
    for more in ("", "-1234", "&city_name=x&state_code=AL"):
        answer = tester.ask(f"{FORECAST}?zip_code={zip_code}{more}")
        assert problem(answer) == (int(zip_code), code)


def test_a_limit_on_purpose_looks_as_one_in_earnest(tester: Caller, settings: Settings) -> None:
    answer = tester.ask(x_test_error="rate_limited")
    assert answer.header("ratelimit") == '"rate";r=0;t=1'
    assert answer.header("ratelimit-policy") == '"rate";q=10;w=1'
    answer = tester.ask(x_test_error="quota_exhausted")
    wait = int(answer.header("retry-after") or 0)
    assert 1 <= wait <= 86_400
    assert left(answer) == f'"quota";r=0;t={wait}'
    assert answer.header("ratelimit-policy") == '"quota";q=1000;w=86400'
    limited = Caller(tester.worker, settings, Terms(rate=Rate(7, 60, 7)), test=True)
    for code, policy in (
        ("rate_limited", '"rate";q=7;w=60'),
        ("invalid_api_key", None),
        ("internal", '"rate";q=7;w=60'),
    ):
        found = [value for name, value in limited.ask(x_test_error=code).headers if name == "ratelimit-policy"]
        assert found == ([policy] if policy else [])


def test_the_error_that_the_guide_asks_for_is_shown_with_its_headers(tester: Caller) -> None:
    (block,) = [one for one in blocks(GUIDE, "console") if "TEST_KEY" in one]
    environment = {"PATH": os.defpath, "BASE": f"http://127.0.0.1:{tester.worker.port}", "TEST_KEY": tester.key}
    curl_here = f'curl() {{ command {shlex.join(curl())} "$@"; }}\n'
    typed = ["bash", "-c", curl_here + block.removeprefix("$ ")]
    done = subprocess.run(typed, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("HTTP/1.1 429")
    assert "retry-after: 1\n" in done.stdout


def test_an_unknown_error_is_named(tester: Caller) -> None:
    answer = tester.ask(x_test_error="teapot")
    assert problem(answer) == (400, "bad_request")
    assert "X-Test-Error" in answer.json()["detail"]


def test_an_error_that_ends_the_connection_ends_it_on_purpose_too(tester: Caller) -> None:
    assert tester.ask(x_test_error="request_timeout").header("connection") == "close"
    assert tester.ask(x_test_error="internal").header("connection") is None
