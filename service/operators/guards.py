"""Shared by the controllers: guards, strict requests, the caller, and errors for the OpenAPI description."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal, cast

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import SecurityRequirement, SecurityScheme
from litestar.params import HeaderParameter, QueryParameter
from litestar.types import Guard

from config.text import printable
from service.base.masking import storable
from service.base.whoami import COMMAND_AGENT, Way, caller
from service.keys import form
from service.operators.access import Access, Right
from service.operators.problems import OPERATOR_CODES
from service.request.errors import ApiError, Problem
from service.request.response import Header

# For the OpenAPI description.
WITH_TOKEN: Sequence[SecurityRequirement] = ({"token": []},)
TOKEN = SecurityScheme("http", scheme="bearer", description="An operators' token. Each tag needs another one.")

READ: tuple[Literal["GET"], Literal["HEAD"]] = ("GET", "HEAD")
AnyRequest = Request[Any, Any, Any]
AnyConnection = ASGIConnection[Any, Any, Any, Any]

# Litestar takes the first of several.
_ONCE = ("x-actor", "if-match", "if-none-match", "idempotency-key")
_Actor = Annotated[
    str,
    HeaderParameter(name="X-Actor", description="The name of the person or program, for the audit trail."),
]


class _NoOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request that takes no parameters."""


def errors(*statuses: int) -> dict[int, ResponseSpec]:
    """Returns these errors by status, for the OpenAPI description."""

    def error(status: int) -> ResponseSpec:
        codes = ", ".join(code for code, (its, _) in OPERATOR_CODES.items() if its == status)
        return ResponseSpec(Problem, generate_examples=False, description=f"code: {codes}")

    return {status: error(status) for status in statuses}


def headers_of(connection: AnyConnection) -> list[Header]:
    return list(connection.scope["headers"])


def has_right(connection: AnyConnection, needed: Right) -> bool:
    return _refusal(connection, needed) is None


def _refusal(connection: AnyConnection, needed: Right) -> str | None:
    access = cast("Access", connection.app.state["access"])
    return access.refusal(needed, headers_of(connection))


def needing(needed: Right) -> Guard:
    """Returns a guard that raises ApiError unless a request has one of the rights `needed`, and its body is JSON."""

    # A coroutine, because Litestar runs a function in a thread, which may not start without memory.
    async def guard(connection: AnyConnection, _: BaseRouteHandler) -> None:
        refusal = _refusal(connection, needed)
        if refusal is not None:
            raise ApiError(refusal)
        headers = connection.headers
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        # A form on another site cannot declare JSON.
        declared = [value.partition(";")[0].strip().lower() for value in headers.getall("content-type", [])]
        if has_body and declared != ["application/json"]:
            raise ApiError("not_json")

    return guard


async def refuse_unclear(request: AnyRequest) -> None:
    """Raises ApiError for a malformed key id, unknown and repeated parameters, and a body that is not exactly of the
    declared type.

    Litestar ignores unknown parameters, takes one of two values or members, and converts "true" to true.
    """
    for name in _ONCE:
        if len(request.headers.getall(name, [])) > 1:
            raise ApiError("bad_request", f"{name} was given twice. Give it once.")
    if "key_id" in request.path_params:
        _check_id(request.path_params["key_id"])
    handler = request.route_handler
    known = [
        field.kwarg_definition.name or name
        for name, field in handler.parsed_fn_signature.parameters.items()
        if isinstance(field.kwarg_definition, QueryParameter)
    ]
    given = [name for name, _ in request.query_params.multi_items()]
    for name in given:
        if name not in known:
            accepted = f"Known here: {', '.join(known)}." if known else "This endpoint has none."
            raise ApiError("unknown_parameter", f"There is no parameter {printable(name, 40)}. {accepted}")
        if given.count(name) > 1:
            raise ApiError("duplicate_parameter", f"{name} was given twice. Give it once.")
    body = handler.parsed_data_field
    if sent := await request.body():
        try:
            msgspec.json.decode(sent, type=_NoOrder if body is None else body.annotation)
            json.loads(sent, object_pairs_hook=_refuse_twice)
        except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ApiError("invalid_body", f"This endpoint does not accept the body: {error}.") from None


def _refuse_twice(members: list[tuple[str, object]]) -> None:
    names = [name for name, _ in members]
    for name in names:
        if names.count(name) > 1:
            raise msgspec.ValidationError(f"{name} was given twice")


def _check_id(key_id: str) -> None:
    """Raises ApiError if `key_id` is not an id. The message does not repeat `key_id`: it may be a valid key."""
    whole = form.parse(key_id)
    if whole is not None:
        raise ApiError(
            "invalid_key_id",
            f"This is a whole key, and logs may contain it now. Revoke it by its id, {whole.key_id}.",
        )
    if not form.is_key_id(key_id):
        raise ApiError("invalid_key_id")


async def provide_caller(request: AnyRequest, x_actor: _Actor = "") -> str:
    """Provides the caller for the audit trail: the name in X-Actor, the way, and the address.

    Raises ApiError if the name cannot be stored.
    """
    with suppress(UnicodeError):  # from a browser, which sends Latin-1
        x_actor = x_actor.encode("latin-1").decode()
    try:
        name = storable("X-Actor", x_actor)
    except ValueError as error:
        raise ApiError("bad_request", f"{error}.") from None
    way: Way = "command" if request.headers.get("user-agent") == COMMAND_AGENT else "http"
    if request.headers.get("sec-fetch-site") == "same-origin":  # from browsers; scripts in pages cannot set it
        way = "page"
    return caller(address_of(request), name, way)


By = NamedDependency[str]


def address_of(request: AnyRequest) -> str:
    return request.client.host if request.client is not None else "unknown"
