"""The OpenAPI description of these endpoints; http/openapi.py adds the errors and headers that all endpoints share."""

from datetime import UTC, date, datetime
from typing import Any

import msgspec

from service.http.openapi_headers import Document, json_body, parameter
from service.http.own_usage.controller import ERRORS_PATH, HOURS_PATH, PATH
from service.http.own_usage.errors import DEFAULT_LIMIT, EXAMPLES, OwnErrors
from service.http.own_usage.usage import (
    MOST_DAYS,
    AllKeys,
    KeyDays,
    Limits,
    Period,
    Usage,
    UsageByHour,
    UsageDay,
    UsageHour,
)
from service.quota.last_errors import MOST_KEPT
from service.quota.names import HOURS_KEPT_DAYS

SCHEMAS = (Usage, UsageByHour, OwnErrors)
_FREE = (
    "Figures are at most 5 s old. These requests are neither counted nor limited by the key's terms, but many in one "
    "second get a 429. The service reuses an answer for two seconds."
)
_DAYS = Usage(
    "0B1zQmX4ktLw",
    "acme",
    Period(date(2026, 11, 1), date(2026, 11, 20)),
    Limits("500/s", "5000000/month", 4999577, "basic"),
    (UsageDay(date(2026, 11, 20), "forecast", answered=311, not_modified=112, not_found=7, rejected=2),),
)
_OTHER = UsageDay(date(2026, 11, 20), "projects", answered=40, not_modified=0, not_found=1, rejected=0)
_SHARED = Limits("2000/s", "20000000/month", 19999537)
_ALL = msgspec.structs.replace(
    _DAYS,
    shared_limits=_SHARED,
    all_keys=AllKeys(
        _SHARED,
        (*_DAYS.days, _OTHER),
        (KeyDays("0B1zQmX4ktLw", _DAYS.days), KeyDays("3nTq8vWcY2dR", (_OTHER,))),
    ),
)
_HOURS = UsageByHour(
    "0B1zQmX4ktLw",
    Period(date(2026, 11, 19), date(2026, 11, 20)),
    (
        UsageHour(
            datetime(2026, 11, 20, 14, tzinfo=UTC),
            "forecast",
            answered=31,
            not_modified=12,
            not_found=1,
            rejected=2,
            limited=2,
        ),
    ),
)


def describe_usage() -> tuple[tuple[str, Document, tuple[str, ...]], ...]:
    """Returns for each path its operation's own part, and the codes of its own errors."""
    return (
        (PATH, _by_day(), ("rate_limited",)),
        (HOURS_PATH, _by_hour(), ("rate_limited",)),
        (ERRORS_PATH, _errors(), ()),
    )


def _by_day() -> Document:
    return _operation(
        "getUsage",
        "Usage of your key",
        "By UTC day and area, for the key that asks; days without requests are left out. Billable are answered (200, "
        "206) and not_modified (304), also to HEAD; not_found is 404, rejected any other 4xx. A key whose areas name "
        f"partner-usage also gets all_keys: the usage of all keys of its partner, once in four seconds. {_FREE}",
        [
            _day("from", "First UTC day. Default: the first of the month of `to`."),
            _day("to", f"Last UTC day, included; at most {MOST_DAYS} days. Default: today."),
        ],
        "remaining is what is left of the quota in its current period; limits are null where the key has none.",
        json_body("Usage", {"month": _DAYS, "all keys": _ALL}),
    )


def _by_hour() -> Document:
    return _operation(
        "getUsageByHour",
        "Usage of your key, by hour",
        f"By UTC hour and area, for the key that asks: today and the {HOURS_KEPT_DAYS - 1} days before; hours without "
        "requests are left out. It shows when something happened; bills are made of the days of `/v1/usage`. "
        f"{_FREE}",
        [
            _day("from", f"First UTC day, of the last {HOURS_KEPT_DAYS}. Default: the day before `to`."),
            _day("to", "Last UTC day, included. Default: today."),
        ],
        "No hours if the key was not used.",
        json_body("UsageByHour", {"hours": _HOURS}),
    )


def _errors() -> Document:
    example = OwnErrors("0B1zQmX4ktLw", len(EXAMPLES), EXAMPLES)
    schema = {"type": "integer", "minimum": 1, "maximum": MOST_KEPT, "default": DEFAULT_LIMIT}
    return _operation(
        "getOwnErrors",
        "The last errors of your key",
        "Answers with status 400 and above to the key that asks, newest first, also 429 and 5xx: the "
        f"last {MOST_KEPT} at most, until seven days pass without a new one, about a second after they were sent. They "
        "help to find a mistake, and are not a record: some may be missing. Errors before the key check (401, 408, "
        "414, 431, bad_request, body_not_allowed) are not listed, and a batch only if it failed as a whole. These "
        "requests are neither counted nor limited by the key's terms.",
        [parameter("limit", "The maximum number.", schema, DEFAULT_LIMIT)],
        "Empty if there were none, or none are kept any more.",
        json_body("OwnErrors", {"errors": example}),
    )


def _operation(
    operation: str, summary: str, description: str, parameters: list[Document], answer: str, content: Document
) -> Document:
    return {
        "operationId": operation,
        "summary": summary,
        "description": description,
        "parameters": parameters,
        "responses": {"200": {"description": answer, "content": content}},
    }


def _day(name: str, description: str) -> dict[str, Any]:
    """Returns a parameter without an example, which would soon be too old."""
    return parameter(name, description, {"type": "string", "format": "date"})
