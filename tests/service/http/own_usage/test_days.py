"""GET /v1/usage: what the asking key was used for, in the contract's form."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from openapi_schema_validator import OAS31Validator

from service.base.terms import Terms, parse_quota, parse_rate
from service.http.app import build_litestar
from service.http.own_usage.days import Usage, parse_period, usage_operation, usage_route
from service.http.own_usage.period import Period
from service.keys.record import ApiKey
from service.quota.report import UsageReport
from service.request.errors import ApiError
from service.request.request import Request
from service.request.response import SCOPE_KEY
from tests.support.asgi import exchange
from tests.support.usage import UsageWorker, double

TODAY = date(2026, 11, 20)


def key_with(terms: Terms) -> ApiKey:
    return ApiKey(key_id="a", partner="acme", digest="", created_at=datetime(2026, 1, 1, tzinfo=UTC), terms=terms)


@pytest.fixture
async def usage(tmp_path: Path) -> AsyncIterator[UsageWorker]:
    client = double()
    yield UsageWorker(client, tmp_path)
    await client.aclose()


async def ask(usage: UsageWorker, query: str = "", terms: Terms = Terms()) -> tuple[Any, Any]:  # noqa: B008 - frozen
    """Status and headers; the body. The key `a` of acme asks."""
    route = usage_route(UsageReport(usage.redis), usage.store, lambda _: key_with(terms), usage.clock)
    scope: dict[str, Any] = {SCOPE_KEY: Request(0.0, b"r1")}
    start, body = await exchange(build_litestar([route]), "/v1/usage", query_string=query.encode(), **scope)
    return start, msgspec.json.decode(body)


async def counted(usage: UsageWorker) -> None:
    for key_id in ("a", "other"):
        for outcome in ("answered", "answered", "answered_empty", "not_modified", "not_found", "rejected"):
            usage.counters.count(key_id, "forecast", outcome)
    await usage.flusher.flush()


async def test_a_key_sees_its_own_usage(usage: UsageWorker) -> None:
    """Exactly the contract's members; a 200 without figures is an answer, and a 429 is among what was rejected."""
    await counted(usage)
    usage.counters.count("a", "forecast", "limited")
    await usage.flusher.flush()
    start, body = await ask(usage, terms=Terms(rate=parse_rate("500/s"), quota=parse_quota("10/month")))
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-type"] == b"application/json"
    assert dict(start["headers"])[b"cache-control"] == b"no-store"
    assert body == {
        "key_id": "a",
        "partner": "acme",
        "period": {"from": "2026-11-01", "to": "2026-11-20"},
        "limits": {"rate": "500/s", "quota": "10/month", "remaining": 6},
        "days": [
            {
                "date": "2026-11-20",
                "area": "forecast",
                "answered": 3,
                "not_modified": 1,
                "not_found": 1,
                "rejected": 2,
            }
        ],
    }


async def test_a_key_without_limits_has_none(usage: UsageWorker) -> None:
    """And without requests no days."""
    _, body = await ask(usage)
    assert body["limits"] == {"rate": None, "quota": None, "remaining": None}
    assert body["days"] == []


async def test_what_remains_is_of_the_current_period(usage: UsageWorker) -> None:
    """Of the day or of the month, whichever days were asked for, and never below zero."""
    await counted(usage)
    usage.clock.now += 86_400
    usage.counters.count("a", "forecast", "answered")
    await usage.flusher.flush()
    remaining = [
        (await ask(usage, "from=2026-01-01&to=2026-01-31", Terms(quota=parse_quota(quota))))[1]["limits"]["remaining"]
        for quota in ("10/day", "10/month", "5/month", "3/month")
    ]
    assert remaining == [9, 5, 0, 0]


async def test_a_period_can_be_asked_for(usage: UsageWorker) -> None:
    """Only its days are there."""
    await counted(usage)
    assert (await ask(usage, "from=2026-11-20&to=2026-11-20"))[1]["days"] != []
    _, body = await ask(usage, "from=2026-11-01&to=2026-11-19")
    assert (body["period"], body["days"]) == ({"from": "2026-11-01", "to": "2026-11-19"}, [])


async def test_while_the_store_is_away_nothing_is_known(usage: UsageWorker) -> None:
    """503 with Retry-After; so it is where the figures are damaged, and no other figures are shown instead."""
    usage.redis.away = True
    start, body = await ask(usage)
    assert (start["status"], body["code"]) == (503, "unavailable")
    assert dict(start["headers"])[b"retry-after"] == b"1"
    usage.redis.away = False
    await usage.client.hset("u:{a}:2026-11", "20:forecast:answered", "many")
    start, body = await ask(usage)
    assert (start["status"], body["code"]) == (503, "unavailable")
    assert "many" not in str(body)


@pytest.mark.parametrize(
    ("query", "period"),
    [
        (b"", ("2026-11-01", "2026-11-20")),
        (b"from=&to=", ("2026-11-01", "2026-11-20")),
        (b"from=2026-10-15", ("2026-10-15", "2026-11-20")),
        (b"to=2026-10-15", ("2026-10-01", "2026-10-15")),
        (b"from=2026-11-20&to=2026-11-20", ("2026-11-20", "2026-11-20")),
        (b"from=2023-12-01&to=2024-11-30", ("2023-12-01", "2024-11-30")),
        (b"to=2030-01-05", ("2030-01-01", "2030-01-05")),
    ],
)
def test_the_period_that_a_query_means(query: bytes, period: tuple[str, str]) -> None:
    """The current month so far by default; what is empty counts for nothing."""
    first, last = (date.fromisoformat(day) for day in period)
    assert parse_period(query, TODAY) == Period(first, last)


@pytest.mark.parametrize(
    ("query", "code", "parameter", "said"),
    [
        (b"from=20261101", "invalid_parameter", "from", "Did you mean 2026-11-01?"),
        (b"from=2026-W47-1", "invalid_parameter", "from", "like 2026-11-01"),
        (b"to=2026-02-30", "invalid_parameter", "to", "like 2026-11-01"),
        (b"to=2026-11-01T00:00:00Z", "invalid_parameter", "to", "Did you mean 2026-11-01?"),
        (b"to=%ff", "invalid_parameter", "to", "UTF-8"),
        (b"from=2026-11-21", "invalid_parameter", "from", "after today, 2026-11-20"),
        (b"from=2026-11-02&to=2026-11-01", "invalid_parameter", "from", "after to"),
        (b"from=2023-12-01&to=2024-12-01", "invalid_parameter", "from", "366 days"),
        (b"to=2026-11-01&month=11", "unknown_parameter", "month", "from, to"),
        (b"from=2026-11-01&from=2026-11-01", "duplicate_parameter", "from", "twice"),
    ],
)
def test_what_is_no_period_is_refused(query: bytes, code: str, parameter: str, said: str) -> None:
    """With the parameter at fault, and what to write."""
    with pytest.raises(ApiError) as refused:
        parse_period(query, TODAY)
    assert (refused.value.code, refused.value.parameter) == (code, parameter)
    assert said in (refused.value.detail or "")


async def test_the_description_is_true(usage: UsageWorker) -> None:
    """Its example and an answer have the shape of its schema, and the example is in today's form."""
    (_,), components = msgspec.json.schema_components((Usage,), ref_template="#/components/schemas/{name}")
    operation = usage_operation()
    content = operation["responses"]["200"]["content"]["application/json"]
    assert content["schema"]["$ref"].rpartition("/")[2] in components
    schema = {**content["schema"], "components": {"schemas": components}}
    example = content["examples"]["month"]["value"]
    await counted(usage)
    _, body = await ask(usage, terms=Terms(quota=parse_quota("10/day")))
    for value in (example, body):
        OAS31Validator(schema).validate(value)
        assert msgspec.json.decode(msgspec.json.encode(msgspec.convert(value, Usage))) == value
    assert [parameter["name"] for parameter in operation["parameters"]] == ["from", "to"]
