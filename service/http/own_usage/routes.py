"""The routes of a key's own usage and errors."""

import time
from collections.abc import Callable
from typing import Any

from litestar.handlers import HTTPRouteHandler

from service.http.own_usage import days, errors, hours
from service.quota.last_errors import LastErrors
from service.quota.report import UsageReport
from service.quota.usage_store import UsageStore
from service.request.request import key_of

# Counted under this name, and neither limited nor billed.
USAGE = "usage"
PATHS = dict.fromkeys((days.PATH, hours.PATH, errors.PATH), USAGE)


def usage_routes(
    report: UsageReport, store: UsageStore, last_errors: LastErrors | None, clock: Callable[[], float] = time.time
) -> dict[str, HTTPRouteHandler]:
    """By path. Without `last_errors`, those of test keys: nothing is kept of their errors. `clock` says which day it
    is, in seconds since 1970."""
    read = errors.RecentErrors(last_errors.of_key, time.monotonic).of_key if last_errors else errors.errors_for_tests
    return {
        days.PATH: days.usage_route(report, store, key_of, clock),
        hours.PATH: hours.usage_hours_route(report, key_of, clock),
        errors.PATH: errors.errors_route(read, key_of),
    }


SCHEMAS = (days.Usage, hours.UsageByHour, errors.OwnErrors)


def described() -> tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...]:
    """Path, the operation's own part, and the codes of the errors that it alone has."""
    return (
        (days.PATH, days.usage_operation(), ("rate_limited",)),
        (hours.PATH, hours.usage_hours_operation(), ("rate_limited",)),
        (errors.PATH, errors.errors_operation(), ()),
    )
