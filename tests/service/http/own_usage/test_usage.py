"""GET /v1/usage and /v1/usage/hours: what a key was used for, and how often that is read from the store."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from openapi_schema_validator import OAS31Validator

from service.base.terms import PARTNER_USAGE, Terms, parse_quota, parse_rate
from service.http.own_usage.description import describe_usage
from service.http.own_usage.usage import (
    BURST_RECORDS,
    RECORDS_A_SECOND,
    OwnUsage,
    Period,
    Usage,
    UsageByHour,
    read_days,
    read_recent_days,
)
from service.keys.named import list_of_keys
from service.keys.record import ApiKey, MoreOfKey, Partner
from service.quota.names import partner_id
from service.quota.report import UsageReport
from service.request.errors import ApiError
from tests.support.key_store import Clock
from tests.support.served import Served
from tests.support.usage import UsageWorker, double

TODAY = date(2026, 11, 20)


def key_with(terms: Terms = Terms(), key_id: str = "a") -> ApiKey:  # noqa: B008 - frozen
    return ApiKey(key_id=key_id, partner="acme", digest="", created_at=datetime(2026, 1, 1, tzinfo=UTC), terms=terms)


KEY = key_with()


@pytest.fixture
async def usage(tmp_path: Path) -> AsyncIterator[UsageWorker]:
    client = double()
    yield UsageWorker(client, tmp_path)
    await client.aclose()


def own(usage: UsageWorker) -> OwnUsage:
    return OwnUsage(UsageReport(usage.redis), usage.store, usage.clock)


async def by_day(usage: UsageWorker, query: str = "", terms: Terms = Terms()) -> Any:  # noqa: B008 - frozen
    return msgspec.json.decode(await own(usage).by_day(key_with(terms), query.encode()))


async def by_hour(usage: UsageWorker, query: str = "") -> Any:
    return msgspec.json.decode(await own(usage).by_hour(KEY, query.encode()))


async def counted(usage: UsageWorker) -> None:
    for key_id in ("a", "other"):
        for outcome in ("answered", "answered", "answered_empty", "not_modified", "not_found", "rejected"):
            usage.counters.count(key_id, "forecast", outcome)
    await usage.flusher.flush()


@pytest.mark.parametrize("path", ["/v1/usage", "/v1/usage/hours"])
def test_an_answer_is_json_that_no_cache_keeps(worker: Served, path: str) -> None:
    answer = worker.ask(path)
    assert (answer.status, answer.header("content-type")) == (200, "application/json")
    assert answer.header("cache-control") == "no-store"


async def test_a_key_sees_its_own_usage(usage: UsageWorker) -> None:
    await counted(usage)
    usage.counters.count("a", "forecast", "limited")
    await usage.flusher.flush()
    assert await by_day(usage, terms=Terms(rate=parse_rate("500/s"), quota=parse_quota("10/month"))) == {
        "key_id": "a",
        "partner": "acme",
        "period": {"from": "2026-11-01", "to": "2026-11-20"},
        "limits": {"rate": "500/s", "quota": "10/month", "remaining": 6},
        "days": [
            {"date": "2026-11-20", "area": "forecast", "answered": 3, "not_modified": 1, "not_found": 1, "rejected": 2}
        ],
    }


def partners_key(key: ApiKey, *, listed: bool = True, plan: str | None = None) -> ApiKey:
    shared = Partner(name="acme", terms=Terms(quota=parse_quota("1000/month"))) if listed else None
    return msgspec.structs.replace(key, more=MoreOfKey(plan=plan), shared=shared)


ALL = key_with(Terms(areas=("forecast", PARTNER_USAGE)))


async def test_a_key_with_partner_usage_sees_all_keys_of_its_partner(usage: UsageWorker) -> None:
    await counted(usage)
    usage.counters.count("other", "forecast", "limited", 7)
    usage.counters.count("another", "projects", "answered", 5)
    usage.counters.count("stranger", "projects", "answered", 5)
    usage.counters.count(partner_id("acme"), "forecast", "answered", 13)
    await usage.flusher.flush()
    await usage.client.hset(list_of_keys("acme"), mapping=dict.fromkeys(("a", "other", "another", "unused"), ""))
    ours = {"answered": 3, "not_modified": 1, "not_found": 1, "rejected": 1}
    day = {"date": "2026-11-20", "area": "forecast"}
    projects = {
        "date": "2026-11-20",
        "area": "projects",
        "answered": 5,
        "not_modified": 0,
        "not_found": 0,
        "rejected": 0,
    }
    body = msgspec.json.decode(await own(usage).by_day(partners_key(ALL), b""))
    assert body["days"] == [day | ours]
    assert body["shared_limits"] == {"rate": None, "quota": "1000/month", "remaining": 987}
    assert body["all_keys"] == {
        "limits": body["shared_limits"],
        "days": [day | {"answered": 6, "not_modified": 2, "not_found": 2, "rejected": 9}, projects],
        "keys": [
            {"key_id": "a", "days": [day | ours]},
            {"key_id": "another", "days": [projects]},
            {"key_id": "other", "days": [day | ours | {"rejected": 8}]},
        ],
    }


@pytest.mark.parametrize(
    "key",
    [
        partners_key(KEY),
        partners_key(key_with(Terms(areas=("forecast",)))),
        partners_key(ALL, listed=False),
    ],
    ids=["all areas", "an area", "a lost partner"],
)
async def test_any_other_key_sees_its_own_usage_only(usage: UsageWorker, key: ApiKey) -> None:
    await usage.client.hset(list_of_keys("acme"), mapping={"other": ""})
    body = msgspec.json.decode(await own(usage).by_day(key, b""))
    assert body.keys() - {"shared_limits"} == {"key_id", "partner", "period", "limits", "days"}
    assert ("shared_limits" in body) == (key.shared is not None)


async def test_all_keys_are_read_once_in_four_seconds(usage: UsageWorker) -> None:
    clock, key = Clock(), partners_key(ALL)
    reader = OwnUsage(UsageReport(usage.redis), usage.store, usage.clock, clock)
    await reader.by_day(key, b"")
    with pytest.raises(ApiError) as refused:
        await reader.by_day(key, b"to=2026-11-19")
    assert (refused.value.code, refused.value.headers) == ("rate_limited", ((b"retry-after", b"3"),))
    await reader.by_hour(key, b"")
    clock.now += 4
    await reader.by_day(key, b"to=2026-11-19")


async def test_a_damaged_list_of_keys_makes_usage_unavailable(usage: UsageWorker) -> None:
    await usage.client.set(list_of_keys("acme"), "damaged")
    with pytest.raises(ApiError) as refused:
        await own(usage).by_day(partners_key(ALL), b"")
    assert refused.value.code == "unavailable"


async def test_a_key_sees_the_plan_that_it_has_now(usage: UsageWorker) -> None:
    body = msgspec.json.decode(await own(usage).by_day(partners_key(KEY, plan="basic"), b""))
    assert body["limits"]["plan"] == "basic"


async def test_a_key_without_limits_has_none(usage: UsageWorker) -> None:
    body = await by_day(usage)
    assert body["limits"] == {"rate": None, "quota": None, "remaining": None}
    assert body["days"] == []


async def test_what_remains_is_of_the_current_period(usage: UsageWorker) -> None:
    await counted(usage)
    usage.clock.now += 86_400
    usage.counters.count("a", "forecast", "answered")
    await usage.flusher.flush()
    remaining = [
        (await by_day(usage, "from=2026-01-01&to=2026-01-31", Terms(quota=parse_quota(quota))))["limits"]["remaining"]
        for quota in ("10/day", "10/month", "5/month", "3/month")
    ]
    assert remaining == [9, 5, 0, 0]


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
    first, last = (date.fromisoformat(day) for day in period)
    assert read_days(query, TODAY) == Period(first, last)


@pytest.mark.parametrize(
    ("query", "code", "parameter", "said"),
    [
        (b"from=20261101", "invalid_parameter", "from", "Did you mean 2026-11-01?"),
        (b"from=2026-W47-1", "invalid_parameter", "from", "like 2026-11-01"),
        (b"to=2026-02-30", "invalid_parameter", "to", "like 2026-11-01"),
        (b"to=%ff", "invalid_parameter", "to", "UTF-8"),
        (b"from=2026-11-21", "invalid_parameter", "from", "after today, 2026-11-20"),
        (b"from=2026-11-02&to=2026-11-01", "invalid_parameter", "from", "after to"),
        (b"from=2023-12-01&to=2024-12-01", "invalid_parameter", "from", "366 days"),
        (b"to=2026-11-01&month=11", "unknown_parameter", "month", "from, to"),
        (b"from=2026-11-01&from=2026-11-01", "duplicate_parameter", "from", "twice"),
    ],
)
def test_an_error_names_the_parameter_and_what_to_write(query: bytes, code: str, parameter: str, said: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_days(query, TODAY)
    assert (refused.value.code, refused.value.parameter) == (code, parameter)
    assert said in (refused.value.detail or "")


async def test_a_key_sees_its_own_hours(usage: UsageWorker) -> None:
    for hours, outcomes in ((-13, ("not_modified",)), (0, ("answered", "answered_empty", "limited", "rejected"))):
        usage.clock.now += hours * 3600
        for outcome in outcomes:
            usage.counters.count("a", "forecast", outcome)  # type: ignore[arg-type]  # each is one
            usage.counters.count("other", "forecast", outcome)  # type: ignore[arg-type]
        usage.clock.now -= hours * 3600
    usage.counters.count("a", "projects", "not_found")
    await usage.flusher.flush()
    nothing = {"answered": 0, "not_modified": 0, "not_found": 0, "rejected": 0, "limited": 0}
    assert await by_hour(usage) == {
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
    body = await by_hour(usage, "from=2026-11-20&to=2030-01-01")
    assert [one["hour"] for one in body["hours"]] == ["2026-11-20T12:00:00Z"]
    assert (await by_hour(usage, "from=2029-01-01&to=2030-01-01"))["hours"] == []


def test_hours_are_kept_for_eight_days() -> None:
    assert read_recent_days(b"", TODAY) == Period(date(2026, 11, 19), TODAY)
    assert read_recent_days(b"from=2026-11-13", TODAY) == Period(date(2026, 11, 13), TODAY)
    assert read_recent_days(b"to=2026-11-13", TODAY) == Period(date(2026, 11, 13), date(2026, 11, 13))
    with pytest.raises(ApiError) as refused:
        read_recent_days(b"from=2026-11-12", TODAY)
    assert (refused.value.code, refused.value.parameter) == ("invalid_parameter", "from")
    assert refused.value.detail == (
        "Hours are kept for 8 days: give 2026-11-13 or later. /v1/usage has the days before."
    )
    with pytest.raises(ApiError, match=r"from is after today, 2026-11-20 in UTC"):
        read_recent_days(b"from=2026-11-21", TODAY)


async def test_the_description_is_true(usage: UsageWorker) -> None:
    _, schemas = msgspec.json.schema_components((Usage, UsageByHour), ref_template="#/components/schemas/{name}")
    await counted(usage)
    answers = (await by_day(usage, terms=Terms(quota=parse_quota("10/day"))), await by_hour(usage))
    for (_, operation, _), kind, body in zip(describe_usage(), (Usage, UsageByHour), answers, strict=False):
        content = operation["responses"]["200"]["content"]["application/json"]
        for value in (*(example["value"] for example in content["examples"].values()), body):
            OAS31Validator({**content["schema"], "components": {"schemas": schemas}}).validate(value)
            assert msgspec.json.decode(msgspec.json.encode(msgspec.convert(value, kind))) == value
        assert [parameter["name"] for parameter in operation["parameters"]] == ["from", "to"]


async def test_while_the_store_is_unreachable_or_damaged_usage_is_unavailable(usage: UsageWorker) -> None:
    reader = own(usage)
    usage.redis.away = True
    for read in (reader.by_day, reader.by_hour):
        with pytest.raises(ApiError) as refused:
            await read(KEY, b"")
        assert refused.value.code == "unavailable"
    usage.redis.away = False
    await usage.client.hset("u:{a}:2026-11", "20:forecast:answered", "many")
    with pytest.raises(ApiError) as refused:
        await reader.by_day(KEY, b"")
    assert (refused.value.code, refused.value.detail) == ("unavailable", None)
    await usage.client.delete("u:{a}:2026-11")
    assert msgspec.json.decode(await reader.by_day(KEY, b""))["days"] == []


async def test_many_requests_for_the_same_days_share_one_read(usage: UsageWorker) -> None:
    reader = own(usage)
    before = usage.redis.calls
    first, *others = [asyncio.create_task(reader.by_day(KEY, b"")) for _ in range(50)]
    await asyncio.sleep(0)
    first.cancel()
    assert len(set(await asyncio.gather(*others))) == 1
    reads = usage.redis.calls - before
    await counted(usage)
    at = usage.redis.calls
    assert msgspec.json.decode(await reader.by_day(KEY, b""))["days"] == []
    assert usage.redis.calls == at
    for key, query in ((KEY, b"to=2026-11-19"), (key_with(Terms(rate=parse_rate("5/s"))), b"")):
        at = usage.redis.calls
        await reader.by_day(key, query)
        assert usage.redis.calls == at + reads


async def test_a_key_that_reads_too_much_passes_again_after_retry_after(usage: UsageWorker) -> None:
    clock = Clock()
    reader = OwnUsage(UsageReport(usage.redis), usage.store, usage.clock, clock)
    queries = [f"from=2025-{month:02}-02&to=2026-{month:02}-02".encode() for month in range(1, 12)]
    *allowed, over = queries
    assert len(allowed) == BURST_RECORDS // 13
    for query in allowed:
        await reader.by_day(KEY, query)
    with pytest.raises(ApiError) as refused:
        await reader.by_day(KEY, over)
    assert (refused.value.code, refused.value.headers) == ("rate_limited", ((b"retry-after", b"1"),))
    await reader.by_day(KEY, allowed[-1])
    await reader.by_day(key_with(key_id="b"), over)
    clock.now += 13 / RECORDS_A_SECOND
    await reader.by_day(KEY, over)
