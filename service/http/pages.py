"""Answers in pages: their `limit` and `cursor`, and the description of both."""

import msgspec

from service.http.area import Parameter
from service.request.errors import ApiError
from warehouse.areas import paging
from warehouse.areas.paging import CursorError, Cursors, Page


class PageQuery(msgspec.Struct, frozen=True):
    """`cursor` is not decoded yet: it is bound to the matches of the location."""

    limit: int
    cursor: str | None


def read_page(values: dict[str, str]) -> PageQuery:
    """Returns the page that a query's `values` name. Raises ApiError (400)."""
    return PageQuery(read_limit(values.get("limit")), values.get("cursor"))


def read_limit(text: str | None, most: int = paging.MAX_PAGE_SIZE, default: int = paging.DEFAULT_PAGE_SIZE) -> int:
    """Returns the size of a page. Raises ApiError (400)."""
    if text is None:
        return default
    if text.isascii() and text.isdigit() and 1 <= int(text) <= most:
        return int(text)
    raise ApiError(
        "invalid_parameter",
        f"limit is not a whole number from 1 to {most}. Without it, a page has {default}.",
        "limit",
    )


def page_of(scope: str, wanted: PageQuery, cursors: Cursors) -> Page:
    """Returns the requested page; `scope` is what its cursor must be bound to. Raises ApiError (400)."""
    if wanted.cursor is None:
        return Page(wanted.limit)
    try:
        return Page(wanted.limit, cursors.decode(scope, wanted.cursor))
    except CursorError:
        raise ApiError("invalid_cursor", parameter="cursor") from None


def page_parameters(records: str) -> tuple[Parameter, Parameter]:
    """Returns the parameters of a page of `records`. The cursor has no example: a made-up one gets a 400."""
    return (
        Parameter(
            "limit",
            f"The most {records} in one answer.",
            {"type": "integer", "minimum": 1, "maximum": paging.MAX_PAGE_SIZE, "default": paging.DEFAULT_PAGE_SIZE},
            paging.DEFAULT_PAGE_SIZE,
        ),
        Parameter(
            "cursor",
            "next_cursor of the previous answer, for the same query.",
            {"type": "string", "maxLength": paging.MAX_CURSOR_CHARACTERS},
            None,
        ),
    )
