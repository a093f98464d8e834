"""The UTC days that reports of usage are asked for."""

from collections.abc import Callable
from datetime import date
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from service.http.openapi_headers import parameter
from service.http.query import read_day, read_strictly
from service.request.errors import ApiError


class Period(msgspec.Struct, frozen=True):
    """UTC days; `to` is included."""

    first: Annotated[date, Meta(description="The first day.")] = msgspec.field(name="from")
    last: Annotated[date, Meta(description="The last day.")] = msgspec.field(name="to")


def read_period(query: bytes, today: date, first_by: Callable[[date], date]) -> Period:
    """`from` and `to`; by default until today, from the day that `first_by` gives for `to`. Raises ApiError (400)."""
    values = read_strictly(query, ("from", "to"))
    last = read_day("to", values["to"]) if "to" in values else today
    first = read_day("from", values["from"]) if "from" in values else first_by(last)
    if first > last:
        after = "to. Exchange them" if "to" in values else f"today, {today} in UTC. Give an earlier day"
        detail = f"from is after {after}."
        raise ApiError("invalid_parameter", detail, "from")
    return Period(first, last)


def day_parameter(name: str, description: str, example: str) -> dict[str, Any]:
    return parameter(name, description, {"type": "string", "format": "date"}, example)
