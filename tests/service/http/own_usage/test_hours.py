"""GET /v1/usage/hours: when the asking key was used, as far back as hours are kept."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from openapi_schema_validator import OAS31Validator

from service.http.app import build_litestar
from service.http.own_usage.hours import UsageByHour, parse_hours_period, usage_hours_operation, usage_hours_route
from service.http.own_usage.period import Period
from service.keys.record import ApiKey
from service.quota.report import UsageReport
from service.request.errors import ApiError
from service.request.request import Request
from service.request.response import SCOPE_KEY
from tests.support.asgi import exchange
from tests.support.usage import UsageWorker, double

TODAY = date(2026, 11, 20)
KEY = ApiKey(key_id="a", partner="acme", digest="", created_at=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
async def usage(tmp_path: Path) -> AsyncIterator[UsageWorker]:
    client = double()
    yield UsageWorker(client, tmp_path)
    await client.aclose()


async def ask(usage: UsageWorker, query: str = "") -> tuple[Any, Any]:
    """Status and headers; the body. The key `a` asks."""
    route = usage_hours_route(UsageReport(usage.redis), lambda _: KEY, usage.clock)
    scope: dict[str, Any] = {SCOPE_KEY: Request(0.0, b"r1")}
    start, body = await exchange(build_litestar([route]), "/v1/usage/hours", query_string=query.encode(), **scope)
    return start, msgspec.json.decode(body)


async def test_a_key_sees_its_own_hours(usage: UsageWorker) -> None:
    """Of today and the day before; a 200 without figures is an answer, a 429 is told apart and counts as rejected."""
    for hours, outcomes in ((-13, ("not_modified",)), (0, ("answered", "answered_empty", "limited", "rejected"))):
        usage.clock.now += hours * 3600
        for outcome in outcomes:
            usage.counters.count("a", "forecast", outcome)  # type: ignore[arg-type]  # each is one
            usage.counters.count("other", "forecast", outcome)  # type: ignore[arg-type]
        usage.clock.now -= hours * 3600
    usage.counters.count("a", "projects", "not_found")
    await usage.flusher.flush()
    start, body = await ask(usage)
    assert start["status"] == 200
    assert dict(start["headers"])[b"cache-control"] == b"no-store"
    nothing = {"answered": 0, "not_modified": 0, "not_found": 0, "rejected": 0, "limited": 0}
    assert body == {
        "key_id": "a",
        "period": {"from": "2026-11-19", "to": "2026-11-20"},
        "hours": [
            {"hour": "2026-11-19T23:00:00Z", "area": "forecast", **nothing, "not_modified": 1},
            {"hour": "2026-11-20T12:00:00Z", "area": "forecast", **nothing, "answered": 2, "rejected": 2, "limited": 1},
            {"hour": "2026-11-20T12:00:00Z", "area": "projects", **nothing, "not_found": 1},
        ],
    }


async def test_days_to_come_have_no_hours(usage: UsageWorker) -> None:
    usage.counters.count("a", "forecast", "answered")
    await usage.flusher.flush()
    _, body = await ask(usage, "from=2026-11-20&to=2030-01-01")
    assert [one["hour"] for one in body["hours"]] == ["2026-11-20T12:00:00Z"]
    _, body = await ask(usage, "from=2029-01-01&to=2030-01-01")
    assert body["hours"] == []


async def test_while_the_store_is_away_it_is_unavailable(usage: UsageWorker) -> None:
    usage.redis.away = True
    start, body = await ask(usage)
    assert (start["status"], body["code"]) == (503, "unavailable")


def test_hours_are_kept_for_eight_days() -> None:
    assert parse_hours_period(b"", TODAY) == Period(date(2026, 11, 19), TODAY)
    assert parse_hours_period(b"from=2026-11-13", TODAY) == Period(date(2026, 11, 13), TODAY)
    assert parse_hours_period(b"to=2026-11-13", TODAY) == Period(date(2026, 11, 13), date(2026, 11, 13))
    with pytest.raises(ApiError) as refused:
        parse_hours_period(b"from=2026-11-12", TODAY)
    assert (refused.value.code, refused.value.parameter) == ("invalid_parameter", "from")
    assert refused.value.detail == (
        "Hours are kept for 8 days: give 2026-11-13 or later. /v1/usage has the days before."
    )
    with pytest.raises(ApiError, match=r"from is after today, 2026-11-20 in UTC"):
        parse_hours_period(b"from=2026-11-21", TODAY)


def test_the_example_is_of_the_described_form() -> None:
    [example] = usage_hours_operation()["responses"]["200"]["content"]["application/json"]["examples"].values()
    _, schemas = msgspec.json.schema_components((UsageByHour,), ref_template="#/$defs/{name}")
    OAS31Validator({"$ref": "#/$defs/UsageByHour", "$defs": schemas}).validate(example["value"])
