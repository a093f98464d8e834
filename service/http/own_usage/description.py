"""The OpenAPI description of these endpoints; errors and headers that all share are added by that (http/openapi.py)."""

from typing import Any

from service.http.own_usage import days, errors, hours

SCHEMAS = (days.Usage, hours.UsageByHour, errors.OwnErrors)


def described() -> tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...]:
    """Path, the operation's own part, and the codes of the errors that it alone has."""
    return (
        (days.PATH, days.usage_operation(), ("rate_limited",)),
        (hours.PATH, hours.usage_hours_operation(), ("rate_limited",)),
        (errors.PATH, errors.errors_operation(), ()),
    )
