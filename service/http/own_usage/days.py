"""GET /v1/usage: what the key that asks was used for, by UTC day and area, and what is left of its quota."""

import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Annotated, Any

import msgspec
from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp
from msgspec import Meta

from service.base.terms import Quota
from service.http.openapi_headers import json_body
from service.http.own_usage.period import Period, day_parameter, read_period
from service.http.own_usage.recent import RecentUsage
from service.keys.record import ApiKey
from service.quota.names import day_of
from service.quota.report import UsageReport, UsageRow
from service.quota.usage_store import UsageStore
from service.request.errors import ApiError

PATH = "/v1/usage"
# As many as a leap year has: one request reads at most 13 records.
MOST_DAYS = 366

_EXAMPLE = {
    "key_id": "0B1zQmX4ktLw",
    "partner": "acme",
    "period": {"from": "2026-11-01", "to": "2026-11-20"},
    "limits": {"rate": "500/s", "quota": "5000000/month", "remaining": 4999577},
    "days": [
        {
            "date": "2026-11-20",
            "area": "forecast",
            "answered": 311,
            "not_modified": 112,
            "not_found": 7,
            "rejected": 2,
        }
    ],
}


class Limits(msgspec.Struct, frozen=True):
    """As in ``500/s``, ``5000000/month``; `remaining` is of the quota's current period, whichever was asked for."""

    rate: Annotated[str | None, Meta(description="Requests in a period; null without a limit.")]
    quota: Annotated[str | None, Meta(description="Requests in a UTC day or month; null without one.")]
    remaining: Annotated[int | None, Meta(description="What is left of the quota; null without one.")]


class UsageDay(msgspec.Struct, frozen=True):
    """`answered` are 200, with or without figures; billable are these and `not_modified`."""

    date: Annotated[date, Meta(description="In UTC.")]
    area: Annotated[str, Meta(description="The data area.")]
    answered: Annotated[int, Meta(description="Answers with status 200 or 206, also to HEAD.")]
    not_modified: Annotated[int, Meta(description="Answers with status 304.")]
    not_found: Annotated[int, Meta(description="Answers with status 404.")]
    rejected: Annotated[int, Meta(description="Any other 4xx.")]


class Usage(msgspec.Struct, frozen=True):
    """Days on which nothing was asked for are left out."""

    key_id: Annotated[str, Meta(description="Names the key, and is no secret.")]
    partner: Annotated[str, Meta(description="Whose key it is.")]
    period: Period
    limits: Limits
    days: Annotated[tuple[UsageDay, ...], Meta(description="Ascending by day, then area.")]


def usage_route(
    report: UsageReport,
    store: UsageStore,
    who: Callable[[Any], ApiKey],
    clock: Callable[[], float] = time.time,
) -> HTTPRouteHandler:
    """`who` gives the key of an ASGI scope (`request.key_of`).

    Figures are those of the key store. Every worker adds what it counted there each half second while it can reach the
    store, and an answer is used again for two seconds, so they are younger than 5 s; while the store cannot be read,
    the answer is a 503.
    """
    recent = RecentUsage(time.monotonic)

    @get(PATH)
    async def usage(request: Request[Any, Any, Any]) -> ASGIApp:
        key = who(request.scope)
        today = datetime.fromtimestamp(clock(), UTC).date()
        period = parse_period(request.scope["query_string"], today)

        async def make() -> bytes:
            rows = await report.of_key(key.key_id, period.first, period.last)
            remaining = await _remaining(store, key.key_id, key.terms.quota, day_of(today))
            return msgspec.json.encode(_usage(key, period, remaining, rows))

        months = (period.last.year - period.first.year) * 12 + period.last.month - period.first.month
        return await recent.reply((key, period.first, period.last), months + 1, make)

    return usage


def _usage(key: ApiKey, period: Period, remaining: int | None, rows: list[UsageRow]) -> Usage:
    rate, quota = key.terms.rate, key.terms.quota
    limits = Limits(str(rate) if rate else None, str(quota) if quota else None, remaining)
    return Usage(key.key_id, key.partner, period, limits, tuple(_day(row) for row in rows))


def parse_period(query: bytes, today: date) -> Period:
    """`from` and `to`; by default until today, from the first of that month. Raises ApiError (400)."""
    period = read_period(query, today, lambda last: last.replace(day=1))
    if day_of(period.last) - day_of(period.first) >= MOST_DAYS:
        raise ApiError("invalid_parameter", f"That is more than {MOST_DAYS} days. Ask for fewer at a time.", "from")
    return period


def usage_operation() -> dict[str, Any]:
    """The operation's own part of the OpenAPI description; errors and headers that all share are added by that.

    Its schema is that of `Usage`, named ``Usage``; its own errors are `invalid_parameter` and `duplicate_parameter`.
    """
    return {
        "operationId": "getUsage",
        "summary": "What your key was used for",
        "description": "By UTC day and area, for the key that asks; days without requests are left out. Billable are "
        "answered (200, 206) and not_modified (304), also to HEAD; not_found is 404, rejected any other 4xx. "
        "Figures are at most 5 s old. "
        "Asking for them is neither counted nor limited by the key's terms; only far more often than they change is a "
        "429. An answer may be used again for two seconds.",
        "parameters": [
            day_parameter("from", "First UTC day. Default: the first of the month of `to`.", "2026-11-01"),
            day_parameter("to", f"Last UTC day, included; at most {MOST_DAYS} days. Default: today.", "2026-11-20"),
        ],
        "responses": {
            "200": {
                "description": "remaining is what is left of the quota in its current period; limits are null where "
                "the key has none.",
                "content": json_body("Usage", {"month": _EXAMPLE}),
            }
        },
    }


async def _remaining(store: UsageStore, key_id: str, quota: Quota | None, today: int) -> int | None:
    if quota is None:
        return None
    totals = await store.totals(key_id, today)
    return max(0, quota.requests - (totals.of_day if quota.period == "day" else totals.of_month))


def _day(row: UsageRow) -> UsageDay:
    answered = row.answered + row.answered_empty
    return UsageDay(row.date, row.area, answered, row.not_modified, row.not_found, row.rejected + row.limited)
