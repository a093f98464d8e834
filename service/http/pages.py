"""The parameters of an answer in pages."""

from service.http.area import Parameter
from service.http.query import PageQuery
from service.request.errors import ApiError
from warehouse.areas import paging
from warehouse.areas.paging import CursorError, Cursors, Page


def page_of(scope: str, asked: PageQuery, cursors: Cursors) -> Page:
    """The page that is asked for; `scope` is what its cursor must be bound to. Raises ApiError (400)."""
    if asked.cursor is None:
        return Page(asked.limit)
    try:
        return Page(asked.limit, cursors.decode(scope, asked.cursor))
    except CursorError:
        raise ApiError("invalid_cursor", parameter="cursor") from None


def page_parameters(records: str) -> tuple[Parameter, Parameter]:
    """`records` are what a page has. The cursor has no example: whoever sent it would be answered 400."""
    return (
        Parameter(
            "limit",
            f"The most {records} in one answer.",
            {"type": "integer", "minimum": 1, "maximum": paging.MAX_PAGE_SIZE, "default": paging.DEFAULT_PAGE_SIZE},
            paging.DEFAULT_PAGE_SIZE,
        ),
        Parameter(
            "cursor",
            "next_cursor of the answer before, for the same query.",
            {"type": "string", "maxLength": paging.MAX_CURSOR_CHARACTERS},
            None,
        ),
    )
