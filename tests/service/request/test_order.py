"""What every request meets in the same order, over HTTP: checks, methods, paths; and what every answer carries."""

from collections.abc import Callable

import pytest

from tests.support.problems import problem
from tests.support.served import FORECAST, Served
from tests.support.wire import Answer

GOOD = f"{FORECAST}?zip_code=36436"
METHODS = ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get", "Head", "FOO", "M-SEARCH"]


# --- order of checks ---------------------------------------------------------------------------------------------


def test_syntax_comes_before_the_key(worker: Served) -> None:
    """A body is a 400 also without a key."""
    with worker.wire() as wire:
        head = worker.head(GOOD, key=None, Content_Length="1")
        assert problem(wire.send(head + "x").answer()) == (400, "body_not_allowed")


def test_the_key_comes_before_path_method_and_parameters(worker: Served) -> None:
    """Without a key nobody learns which paths there are."""
    for method in ("GET", "POST", "FOO"):
        assert problem(worker.ask("/nowhere", method, key=None)) == (401, "missing_api_key")
        assert problem(worker.ask(FORECAST, method, key=None)) == (401, "missing_api_key")


def test_the_path_comes_before_the_method(worker: Served) -> None:
    """There is no method to be wrong where there is nothing."""
    assert problem(worker.ask("/nowhere", "POST")) == (404, "not_found")


def test_the_method_comes_before_the_parameters(worker: Served) -> None:
    """A POST with a bad query is a 405."""
    assert problem(worker.ask(f"{FORECAST}?zip_code=1", "POST")) == (405, "method_not_allowed")


def test_the_parameters_come_before_the_match(worker: Served) -> None:
    """A ZIP code that matches nothing beside a malformed state is a 400."""
    assert problem(worker.ask(f"{FORECAST}?zip_code=99999&state_code=1")) == (400, "invalid_parameter")


# --- methods and paths -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", [GOOD, "/v1/", "/v1/openapi.json"])
def test_other_methods_are_405_with_allow(worker: Served, method: str, path: str) -> None:
    """Also those that frameworks answer on their own, and those that no parser knows."""
    answer = worker.ask_by_wire(path, method)
    assert problem(answer) == (405, "method_not_allowed")
    assert answer.header("allow") == "GET, HEAD"


def test_a_post_with_a_body_is_told_that_its_method_is_wrong(worker: Served) -> None:
    """The body is not what its sender must change; the connection goes on behind it."""
    with worker.wire() as wire:
        wire.send(worker.head(GOOD, "POST", Content_Type="application/json", Content_Length="2") + "{}")
        assert problem(wire.answer()) == (405, "method_not_allowed")
        assert wire.send(worker.head(GOOD)).answer().status == 200


@pytest.mark.parametrize("path", [GOOD, f"{FORECAST}?zip_code=99999", f"{FORECAST}?zip_code=1", "/v1/", "/nowhere"])
def test_head_answers_as_get_without_the_body(worker: Served, path: str) -> None:
    """Same status, same headers, Content-Length included; the connection stays in step."""
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
    """Never a redirect."""
    without = worker.ask(path.replace("/?", "?").rstrip("/"))
    answer = worker.ask(path)
    assert (answer.status, answer.body) == (200, without.body)


@pytest.mark.parametrize("path", ["/", "/v1//", "//v1", "/v2", "/v1/population-housing-forecast/x", "/docs", "/V1/"])
def test_other_paths_are_404_and_name_the_index(worker: Served, path: str) -> None:
    """With a good key, the detail says where to look."""
    answer = worker.ask(path)
    assert problem(answer) == (404, "not_found")
    assert "/v1/" in answer.json()["detail"]


# --- what every answer carries -----------------------------------------------------------------------------------


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
    """Each of these names no endpoint, however often it was asked for."""
    for _ in range(3):
        answer = ask(worker, path)
        assert (answer.status, answer.json()["code"]) in {(404, "not_found"), (400, "bad_request")}


def test_dots_lead_nowhere(worker: Served) -> None:
    """Clients of HTTP resolve them before they send a request."""
    assert problem(worker.ask_by_wire("/v1/releases/../releases")) == (404, "not_found")


@pytest.mark.parametrize("path", ["/%761/releases", "/v1/population%2Dhousing-forecast?zip_code=36436"])
def test_an_encoded_letter_is_that_letter(worker: Served, path: str) -> None:
    assert [worker.ask(path).status for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("sent", ["a", "A.b_c-9", "x" * 64])
def test_a_usable_request_id_is_echoed(worker: Served, sent: str) -> None:
    """In the header, and in the body of an error."""
    assert worker.ask(GOOD, X_Request_Id=sent).header("x-request-id") == sent
    assert worker.ask("/nowhere", X_Request_Id=sent).json()["request_id"] == sent


@pytest.mark.parametrize("sent", ["", "x" * 65, "a b", "a,b", "<script>", "é"])
def test_an_unusable_request_id_is_replaced(worker: Served, sent: str) -> None:
    """What could not be logged or searched for safely gets one of ours."""
    given = worker.ask(GOOD, X_Request_Id=sent).header("x-request-id")
    assert given is not None
    assert given != sent
    assert len(given) == 32


def test_two_request_ids_are_none(worker: Served) -> None:
    """Which one counts must never be a question."""
    with worker.wire() as wire:
        head = (
            f"GET {GOOD} HTTP/1.1\r\nHost: a\r\nx-api-key: {worker.key}\r\nX-Request-Id: a\r\nX-Request-Id: b\r\n\r\n"
        )
        assert wire.send(head).answer().header("x-request-id") not in ("a", "b", "a,b")


def test_no_answer_names_its_server(worker: Served) -> None:
    """Neither ours nor the parser's."""
    answers = [worker.ask(GOOD), worker.ask("/nowhere"), worker.ask(GOOD, key=None), worker.ask("http://x/")]
    assert all(answer.header("server") is None for answer in answers)
