"""Shared by the controllers: guards, the caller, and errors for the OpenAPI description."""

from typing import Any, cast

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.openapi import ResponseSpec
from litestar.types import Guard

from service.base.masking import storable
from service.base.whoami import caller
from service.operators.access import Access, Right
from service.operators.problems import OPERATOR_CODES
from service.request.errors import ApiError, Problem
from service.request.response import Header

AnyRequest = Request[Any, Any, Any]
AnyConnection = ASGIConnection[Any, Any, Any, Any]

# Header with the name of the person or program, for the audit trail.
_ACTOR = "x-actor"


class NoOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request that takes no parameters."""


def errors(*statuses: int) -> dict[int, ResponseSpec]:
    """Returns these errors by status, for the OpenAPI description."""
    codes = {
        status: ", ".join(code for code, (its, _) in OPERATOR_CODES.items() if its == status) for status in statuses
    }
    return {
        status: ResponseSpec(Problem, generate_examples=False, description=f"code: {named}")
        for status, named in codes.items()
    }


def headers_of(connection: AnyConnection) -> list[Header]:
    return list(connection.scope["headers"])


def has_right(connection: AnyConnection, needed: Right) -> bool:
    return access_of(connection).refusal(needed, headers_of(connection)) is None


def access_of(connection: AnyConnection) -> Access:
    return cast("Access", connection.app.state["access"])


def needing(needed: Right) -> Guard:
    """Returns a guard that raises ApiError unless a request has one of the rights `needed`, and its body is JSON."""

    # A coroutine, because Litestar runs a function in a thread, which may not start without memory.
    async def guard(connection: AnyConnection, _: BaseRouteHandler) -> None:
        access_of(connection).require(needed, headers_of(connection))
        headers = connection.headers
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        # A form on another site cannot declare JSON.
        declared = [value.partition(";")[0].strip().lower() for value in headers.getall("content-type", [])]
        if has_body and declared != ["application/json"]:
            raise ApiError("not_json")

    return guard


def caller_of(request: AnyRequest) -> str:
    """Returns the caller for the audit trail: the name in X-Actor, the way, and the address.

    Raises ApiError if the name cannot be stored.
    """
    try:
        name = storable(_ACTOR, request.headers.get(_ACTOR, ""))
    except ValueError as error:
        raise ApiError("bad_request", f"{error}.") from None
    # browsers send it, and scripts in pages cannot set it
    return caller(address_of(request), name, in_page=request.headers.get("sec-fetch-site") == "same-origin")


def address_of(request: AnyRequest) -> str:
    return request.client.host if request.client is not None else "unknown"
