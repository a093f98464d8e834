"""Before the router: the order of checks, keys, methods, paths, and what every answer carries."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from service.base.seen import LoggedRequest
from service.base.telemetry import REQUESTS, Telemetry
from service.http.sandbox.app import Sandbox
from service.keys.record import ApiKey
from service.keys.verdict import Accepted, KeyVerdict
from service.keys.verifier import KeyVerifier
from service.request.authenticate import Checks
from service.request.pipeline import Gate, GatedApplication
from service.request.response import JSON, Reply
from service.request.sampling import RequestWatch
from tests.support.asgi import exchange
from tests.support.problems import problem
from tests.support.served import FORECAST, Served
from tests.support.watching import Logged

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
    answer = worker.ask(path, method)
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
        "/v1/%2e/releases", "/v1/releases/../releases", "/v1//releases", "//v1/releases", "/v1/releases//",
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
def test_an_encoded_separator_is_none(worker: Served, path: str) -> None:
    """Each of these names no endpoint, however often it was asked for, and whichever way answers."""
    for _ in range(3):
        answer = worker.ask(path)
        assert (answer.status, answer.json()["code"]) in {(404, "not_found"), (400, "bad_request")}


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


# --- in isolation ------------------------------------------------------------------------------------------------


class _Nobody(KeyVerifier):
    def __init__(self) -> None:
        """Never asked: the paths in these tests need no key."""


class _Somebody(KeyVerifier):
    def __init__(self, test: bool) -> None:
        """Knows one key, whatever is presented."""
        self._key = ApiKey(
            key_id="a", partner="acme", digest="", created_at=datetime(2026, 1, 1, tzinfo=UTC), test=test
        )

    def judge(self, presented: str) -> KeyVerdict:
        return Accepted(self._key)


def _gate(
    app: GatedApplication,
    watch: RequestWatch | None = None,
    telemetry: Telemetry | None = None,
    routes: dict[str, str] | None = None,
    public: tuple[str, ...] = (),
) -> Gate:
    """One for requests without a key."""
    counted = telemetry or Telemetry()
    return Gate(app, Checks(routes or {}, _Nobody(), counted, public=public), counted, watch or Logged())


async def _broken(scope: object, receive: object, send: object) -> None:
    raise RuntimeError("secret of the inside")


async def test_an_exception_is_a_500_that_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The caller gets the request's id, the log gets the rest."""
    gate = _gate(_broken, public=("/open",))
    start, body = await exchange(gate, "/open")
    assert start["status"] == 500
    assert b"secret of the inside" not in body
    assert "secret of the inside" in caplog.text


async def test_a_draining_gate_makes_every_answer_the_last_of_its_connection() -> None:
    """So that clients come back on a connection to somebody else."""
    gate = _gate(Reply(200, (JSON,), b"{}", "answered"), public=("/open",))
    assert (b"connection", b"close") not in (await exchange(gate, "/open"))[0]["headers"]
    gate.draining = True
    assert (b"connection", b"close") in (await exchange(gate, "/open"))[0]["headers"]


async def test_answers_are_counted_by_area_status_and_outcome() -> None:
    """A path that there is not never becomes a label of its own."""
    telemetry = Telemetry()
    answer = Reply(200, (JSON,), b"{}", "answered")
    gate = _gate(answer, telemetry=telemetry, routes={"/open": "index"}, public=("/open", "/x"))
    for path in ("/open", "/open/", "/x"):
        await exchange(gate, path)
    await exchange(gate, "/open", "POST")
    counted = {labels: value for name, labels, value in telemetry.snapshot().counters if name == "forecast_requests"}
    assert counted == {
        ("index", "200", "answered"): 2,
        ("none", "200", "answered"): 1,
        ("index", "405", "method_not_allowed"): 1,
    }


async def test_every_request_is_looked_at_and_a_key_in_its_address_is_masked() -> None:
    """Somebody who puts a key into the query must not find it in the log."""
    watch = Logged(share=1.0)
    gate = _gate(Reply(200, (), b"", "answered"), watch, public=("/x",))
    await exchange(gate, "/x", query_string=b"api_key=phf_live_abc_def")
    (line,) = watch.lines
    assert (line.status, line.method, line.path, line.outcome) == (200, "GET", "/x", "answered")
    assert line.query == "api_key=phf_live_********"


@pytest.mark.parametrize("query", [b"key=phf%5flive_abc_def", b"key=ph%66_live_abc_def", b"%70hf_live_abc_def"])
async def test_a_key_that_shows_when_it_is_decoded_is_masked_too(query: bytes) -> None:
    """Whoever reads the log could decode it."""
    watch = Logged(share=1.0)
    gate = _gate(Reply(200, (), b"", "answered"), watch, public=("/x",))
    await exchange(gate, "/x", query_string=query)
    assert watch.lines[0].query is not None
    assert watch.lines[0].query.endswith("phf_live_********")


async def test_a_line_is_short_whatever_was_asked() -> None:
    """Thousands are remembered: strangers must not fill the memory with long addresses."""
    watch = Logged()
    gate = _gate(Reply(200, (), b"", "answered"), watch)
    await exchange(gate, "/" + "é" * 7000, query_string=b"x" * 7000)
    (line,) = watch.lines
    assert len(msgspec.json.encode(line)) < 1000


async def test_what_is_refused_at_the_connection_is_counted_and_logged_as_other_requests_are() -> None:
    """With its own status and where it came from."""
    watch, telemetry = Logged(), Telemetry()
    gate = _gate(Reply(200, (), b"", "answered"), watch, telemetry=telemetry)
    assert gate.refusal("uri_too_long", "r1", "192.0.2.1").status == 414
    (line,) = watch.lines
    assert (line.status, line.outcome, line.request_id, line.address) == (414, "uri_too_long", "r1", "192.0.2.1")
    assert telemetry.sum(REQUESTS, status="414") == 1


@pytest.mark.parametrize(("test", "kept"), [(False, [400, 429, 500, 503]), (True, [])])
async def test_whatever_ends_with_an_error_is_kept_for_a_good_key(test: bool, kept: list[int]) -> None:
    """Whoever is at fault; of test keys, and without a good key, nothing."""
    errors: list[LoggedRequest] = []
    answers = {str(status): Reply(status, (), b"", "x") for status in (200, 304, 400, 429, 500, 503)}

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await answers[scope["path"][1:]](scope, receive, send)

    sandbox = Sandbox(answer, frozenset(f"/{status}" for status in answers))
    routes = {f"/{status}": "index" for status in answers}
    checks = Checks(routes, _Somebody(test), Telemetry(), sandbox=sandbox)
    gate = Gate(
        answer, checks, Telemetry(), Logged(), sandbox=sandbox, keep_error=lambda _, make: errors.append(make())
    )
    for path in routes:
        await exchange(gate, path, headers=[(b"host", b"a"), (b"x-api-key", b"k")])
        await exchange(gate, path)
    assert [(error.status, error.key_id) for error in errors] == [(status, "a") for status in kept]
