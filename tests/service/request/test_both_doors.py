"""A request has the same answer through both doors, and counts the same: on a connection, and under an ASGI server."""

import re
from typing import Any

import httptools
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.base.telemetry import ANSWERS, KEY_CHECKS, REQUESTS
from service.base.terms import Quota, Terms
from service.request.request import decode_path
from tests.support.doors import TARGETS, Doors, facts_of, request
from tests.support.served import FORECAST
from tests.support.waiting import until

ERRORS = (f"{FORECAST}?zip_code=99999", f"{FORECAST}?zip_code=1", f"{FORECAST}?zip_code=36436&zip_code=1", "/nowhere")
OTHERS = (
    *("/v1/", "/v1", "/v1/openapi.json", "/v1/usage/hours", "/v1/releases"),
    "/v1/releases/current/changes?area=forecast",
    f"{FORECAST}/batch?zip_code=36436&zip_code=99999",
    f"{FORECAST}/by-state?state_code=IL&limit=1",
    f"{FORECAST}/?zip_code=36436",
    f"{FORECAST}?city_name=New%20York%20City&state_code=NY",
    *("/v1%2freleases", f"{FORECAST}%2F?zip_code=36436", "/v1/releases/current/forecast.parquet"),
)
LINES = (
    *("Accept-Encoding: gzip", "accept-encoding: gzip;q=0.5, *;q=0", "If-None-Match: *", 'If-None-Match: "x", W/"y"'),
    *("If-Match: *", 'If-Match: "x"', "If-Match:", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"),
    *("X-Request-Id: a.b-c_d", "X-Request-Id: a b", "Content-Length: 0", "Content-Length: 4", "Host: x", "Cookie: a=b"),
    *("traceparent: 00-1-1-01", "x-api-key: nobody", "X-Test-Error: rate_limited", "Range: bytes=0-9"),
)
KEYS = ("free", "limited", "metered", "other", "slow", "used up", "revoked", "expired", "unknown", "malformed",
        "missing", "test")  # fmt: skip
# May differ from one request to the next.
VARYING = {b"date", b"x-request-id", b"cache-status", b"ratelimit", b"retry-after", b"connection", b"last-modified"}
IDS = re.compile(rb'"request_id":"[^"]*"')
_FAMILIES = {family.name for family in (ANSWERS, KEY_CHECKS, REQUESTS)}

Answer = tuple[int, list[tuple[bytes, bytes]], bytes]
SENT = st.tuples(
    st.sampled_from(["GET", "GET", "GET", "HEAD", "POST", "FETCH"]),
    st.sampled_from([*TARGETS, *TARGETS, *ERRORS, *OTHERS]),
    st.sampled_from(["1.1", "1.1", "1.0"]),
    st.sampled_from(KEYS),
    st.lists(st.sampled_from(LINES), max_size=3, unique=True),
)


class _Head:
    """What httptools reads of a head, as servers do."""

    def __init__(self, data: bytes) -> None:
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        parser = httptools.HttpRequestParser(self)
        parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))


def scope_of(data: bytes, method: str, version: str) -> dict[str, Any]:
    known = data if method in ("GET", "HEAD", "POST") else data.replace(method.encode(), b"OPTIONS", 1)
    head = _Head(known)
    path, _, query = head.url.partition(b"?")
    return {
        "path": decode_path(path),
        "raw_path": path,
        "method": method,
        "query_string": query,
        "headers": head.headers,
        "http_version": version,
    }


def parted(answer: bytes) -> Answer:
    """Status, headers and body of an answer on a connection."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.split(b"\r\n")
    headers = [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
    return int(status.split()[1]), headers, body


def comparable(answer: Answer, method: str) -> Answer:
    status, headers, body = answer
    kept = [(name, value) for name, value in headers if name not in VARYING]
    return status, kept, b"" if method == "HEAD" else IDS.sub(b'"request_id":"I"', body)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(sent=SENT)
def test_whatever_is_sent_both_doors_answer_the_same(doors: Doors, sent: tuple[str, str, str, str, list[str]]) -> None:
    method, target, version, key, lines = sent
    data = request(target, doors.keys[key], *lines, method=method, version=version)
    if target.startswith("/v1/releases/current/forecast.parquet") and method == "GET":
        return  # one is at work as long as its reader takes
    if sum(line.startswith("Content-Length") for line in lines) > 1:
        return  # which no server hands on
    doors.send([data])  # from now on, what is looked up is near
    for _ in range(2):
        before = facts_of(doors, _FAMILIES)
        connection = comparable(parted(doors.send([data])), method)
        between = facts_of(doors, _FAMILIES)
        asgi = comparable(doors.call(scope_of(data, method, version)), method)
        after = facts_of(doors, _FAMILIES)
        assert connection == asgi
        counted = [
            {name: value - earlier.get(name, 0) for name, value in later.items() if value != earlier.get(name, 0)}
            for earlier, later in ((before, between), (between, after))
        ]
        assert counted[0] == counted[1]


@pytest.mark.parametrize("through", ["connection", "asgi"])
@pytest.mark.parametrize("target", [TARGETS[0], ERRORS[0]])
def test_usage_counts_the_same_through_each_door(doors: Doors, through: str, target: str) -> None:
    key = doors.issue(Terms(quota=Quota(1_000, "day")))
    data = request(target, key)
    for _ in range(3):
        if through == "connection":
            doors.send([data])
        else:
            doors.call(scope_of(data, "GET", "1.1"))

    async def is_stored() -> bool:
        return key.split("_")[2] not in doors.running.app.metering.counters.waiting()

    until(lambda: doors.running.run(is_stored))
    (day,) = doors.running.ask("/v1/usage", key=key).json()["days"]
    assert sum(number for number in day.values() if isinstance(number, int)) == 3


def test_an_answer_under_another_server_carries_what_ours_carries(doors: Doors) -> None:
    status, headers, body = doors.call(scope_of(request(TARGETS[0], doors.keys["metered"]), "GET", "1.1"))
    names = [name for name, _ in headers]
    assert status == 200
    assert msgspec.json.decode(body)["total_results"] == 1
    assert {b"x-request-id", b"ratelimit", b"ratelimit-policy", b"etag", b"content-length"} <= set(names)
    _, headers, _ = doors.call(scope_of(request(TARGETS[0], doors.keys["test"]), "GET", "1.1"))
    assert (b"x-test-answer", b"true") in headers
