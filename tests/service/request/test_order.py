"""What every request meets over HTTP: checks, methods, paths; and what every answer carries."""

from collections.abc import Callable

import pytest

from tests.support.problems import problem
from tests.support.served import FORECAST, Served
from tests.support.wire import Answer

GOOD = f"{FORECAST}?zip_code=36436"


@pytest.mark.parametrize("path", [GOOD, "/v1/", "/v1/openapi.json", "/nowhere"])
def test_every_path_and_method_needs_a_key(worker: Served, path: str) -> None:
    """Without a key, no caller learns which paths exist."""
    for method in ("GET", "POST", "FOO"):
        for key in (None, "  "):
            assert problem(worker.ask(path, method, key=key)) == (401, "missing_api_key")


def test_the_parameters_come_before_the_match(worker: Served) -> None:
    assert problem(worker.ask(f"{FORECAST}?zip_code=99999&state_code=1")) == (400, "invalid_parameter")


@pytest.mark.parametrize("path", [GOOD, f"{FORECAST}?zip_code=99999", f"{FORECAST}?zip_code=1", "/v1/", "/nowhere"])
def test_head_answers_as_get_without_the_body(worker: Served, path: str) -> None:
    varying = ("date", "x-request-id", "cache-status")
    with worker.wire() as wire:
        full = wire.send(worker.head(path)).answer()
        bare = wire.send(worker.head(path, "HEAD")).answer(head_only=True)
        assert bare.status == full.status
        assert [pair for pair in bare.headers if pair[0] not in varying] == [
            pair for pair in full.headers if pair[0] not in varying
        ]
        assert wire.send(worker.head(path)).answer().status == full.status


@pytest.mark.parametrize(
    "path", ["/v1/population-housing-forecast/?zip_code=36436", "/v1", "/v1/", "/v1/openapi.json/"]
)
def test_a_trailing_slash_answers_the_same(worker: Served, path: str) -> None:
    without = worker.ask(path.replace("/?", "?").rstrip("/"))
    answer = worker.ask(path)
    assert (answer.status, answer.body) == (200, without.body)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/releases/current%2fforecast.parquet", "/v1/releases/current%2Fchanges?area=forecast", "/v1%2Freleases",
        "/v1/population-housing-forecast%2f?zip_code=36436", "/v1/population-housing-forecast%2Fbatch?zip_code=36436",
        "/v1%2Fpopulation-housing-forecast?zip_code=36436", "%2Fv1/releases", "/v1/releases/%2e%2e/releases",
        "/v1/%2e/releases", "/v1//releases", "//v1/releases", "/v1/releases//",
        "/v1/releases%00", "/v1/releases/current%00/forecast.parquet", "/v1/releases/current/forecast.parquet%00",
        "/v1/releases/current/forecast.parquet%2500", "/v1/releases;a=b", "/v1/releases/current;a/forecast.parquet",
        "/v1/population-housing-forecast;zip_code=36436", "/v1/population-housing-forecast;?zip_code=36436",
        "/v1/population-housing-forecast%3Fzip_code=36436", "/v1/population-housing-forecast%23?zip_code=36436",
        "/v1/releases/current%252fforecast.parquet", "/v1/%2572eleases", "/v1/releases/c%2575rrent/forecast.parquet",
        "/v1/releases/%2e%2e%2fcurrent/forecast.parquet", "/v1/releases/current/..%2fcurrent/forecast.parquet",
        "/v1/releases/current/%66orecast%2eparquet%2f", "/v1/releases%5Ccurrent%5Cforecast.parquet",
        "/v1/releases/current/forecast.parquet%20", "/v1/releases/current/forecast.parquet%0a",
        "/docs%2f", "/V1/releases", "/v1/population-housing-forecast/%20?zip_code=36436",
    ],
)  # fmt: skip
@pytest.mark.parametrize("ask", [Served.ask, Served.ask_by_wire], ids=["application", "connection"])
def test_an_encoded_separator_is_none(worker: Served, ask: Callable[[Served, str], Answer], path: str) -> None:
    for _ in range(3):
        answer = ask(worker, path)
        assert (answer.status, answer.json()["code"]) in {(404, "not_found"), (400, "bad_request")}


def test_dots_lead_nowhere(worker: Served) -> None:
    """Clients of HTTP resolve them before they send a request."""
    assert problem(worker.ask_by_wire("/v1/releases/../releases")) == (404, "not_found")


@pytest.mark.parametrize("path", ["/%761/releases", "/v1/population%2Dhousing-forecast?zip_code=36436"])
def test_an_encoded_letter_is_that_letter(worker: Served, path: str) -> None:
    assert [worker.ask(path).status for _ in range(3)] == [200] * 3


@pytest.mark.parametrize(
    ("sent", "is_usable"),
    [
        *((usable, True) for usable in ("a", "A.b_c-9", "x" * 64)),
        *((unusable, False) for unusable in ("", "x" * 65, "a b", "a,b", "<script>", "é")),
    ],
)
def test_a_usable_request_id_is_echoed_and_any_other_is_replaced(worker: Served, sent: str, is_usable: bool) -> None:
    for path in (GOOD, "/nowhere"):
        answer = worker.ask(path, X_Request_Id=sent)
        given = answer.header("x-request-id") or ""
        assert (given == sent) is is_usable
        assert is_usable or len(given) == 32
        assert answer.status == 200 or answer.json()["request_id"] == given


def test_no_answer_names_its_server(worker: Served) -> None:
    answers = [worker.ask(GOOD), worker.ask("/nowhere"), worker.ask(GOOD, key=None), worker.ask("http://x/")]
    assert all(answer.header("server") is None for answer in answers)
