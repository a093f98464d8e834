"""GET /v1/usage/hours: what the key that asks was used for, by UTC hour and area."""

import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import msgspec
from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp
from msgspec import Meta

from service.http.openapi_headers import json_body
from service.http.own_usage.period import Period, day_parameter, read_period
from service.http.own_usage.recent import RecentUsage
from service.keys.record import ApiKey
from service.quota.names import HOURS_KEPT_DAYS
from service.quota.report import HourRow, UsageReport
from service.request.errors import ApiError

PATH = "/v1/usage/hours"

_EXAMPLE = {
    "key_id": "0B1zQmX4ktLw",
    "period": {"from": "2026-11-19", "to": "2026-11-20"},
    "hours": [
        {
            "hour": "2026-11-20T14:00:00Z",
            "area": "forecast",
            "answered": 31,
            "not_modified": 12,
            "not_found": 1,
            "rejected": 2,
            "limited": 2,
        }
    ],
}


class UsageHour(msgspec.Struct, frozen=True):
    """Counted as in `UsageDay`: a day's hours add up to it."""

    hour: Annotated[datetime, Meta(description="When it begins: RFC 3339 in UTC.")]
    area: Annotated[str, Meta(description="The data area.")]
    answered: Annotated[int, Meta(description="Answers with status 200 or 206, also to HEAD.")]
    not_modified: Annotated[int, Meta(description="Answers with status 304.")]
    not_found: Annotated[int, Meta(description="Answers with status 404.")]
    rejected: Annotated[int, Meta(description="Any other 4xx.")]
    limited: Annotated[int, Meta(description="Those of `rejected` that are 429.")]


class UsageByHour(msgspec.Struct, frozen=True):
    """Hours in which nothing was asked for are left out."""

    key_id: Annotated[str, Meta(description="Names the key, and is no secret.")]
    period: Period
    hours: Annotated[tuple[UsageHour, ...], Meta(description="Ascending by hour, then area.")]


def usage_hours_route(
    report: UsageReport, who: Callable[[Any], ApiKey], clock: Callable[[], float] = time.time
) -> HTTPRouteHandler:
    """As `usage_route`."""
    recent = RecentUsage(time.monotonic)

    @get(PATH)
    async def usage_hours(request: Request[Any, Any, Any]) -> ASGIApp:
        key = who(request.scope)
        today = datetime.fromtimestamp(clock(), UTC).date()
        period = parse_hours_period(request.scope["query_string"], today)
        last = min(period.last, today)

        async def make() -> bytes:
            rows = await report.hours_of_key(key.key_id, period.first, last)
            return msgspec.json.encode(UsageByHour(key.key_id, period, tuple(_hour(row) for row in rows)))

        days = max(0, (last - period.first).days + 1)
        return await recent.reply((key, period.first, period.last), days, make)

    return usage_hours


def parse_hours_period(query: bytes, today: date) -> Period:
    """`from` and `to`; by default until today, from the day before. Raises ApiError (400)."""
    oldest = today - timedelta(days=HOURS_KEPT_DAYS - 1)
    period = read_period(query, today, lambda last: max(oldest, last - timedelta(days=1)))
    if period.first < oldest:
        detail = f"Hours are kept for {HOURS_KEPT_DAYS} days: give {oldest} or later. /v1/usage has the days before."
        raise ApiError("invalid_parameter", detail, "from")
    return period


def usage_hours_operation() -> dict[str, Any]:
    """As `usage_operation`; its schema is that of `UsageByHour`, named ``UsageByHour``."""
    return {
        "operationId": "getUsageByHour",
        "summary": "What your key was used for, by hour",
        "description": f"By UTC hour and area, for the key that asks: today and the {HOURS_KEPT_DAYS - 1} days before; "
        "hours without requests are left out. It shows when something happened; bills are made of the days of "
        "`/v1/usage`. Figures are at most 5 s old. Asking for them is neither counted nor limited by the key's terms; "
        "only far more often than they change is a 429. An answer may be used again for two seconds.",
        "parameters": [
            day_parameter(
                "from", f"First UTC day, of the last {HOURS_KEPT_DAYS}. Default: the day before `to`.", "2026-11-19"
            ),
            day_parameter("to", "Last UTC day, included. Default: today.", "2026-11-20"),
        ],
        "responses": {
            "200": {
                "description": "No hours if the key was not used.",
                "content": json_body("UsageByHour", {"hours": _EXAMPLE}),
            }
        },
    }


def _hour(row: HourRow) -> UsageHour:
    return UsageHour(
        datetime(row.date.year, row.date.month, row.date.day, row.hour, tzinfo=UTC),
        row.area,
        row.answered + row.answered_empty,
        row.not_modified,
        row.not_found,
        row.rejected + row.limited,
        row.limited,
    )
