"""The operators' application: a Litestar app that shows the instance and, with a write token, accepts changes.

It runs in the supervisor.
"""

import logging
import time
from typing import Any

from litestar import Controller, Litestar, Request, Response, Router
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components

from service.http.app import FinishedResponse, provide
from service.http.documentation.site import Site
from service.http.openapi import About
from service.keys.errors import KeyStoreError
from service.operators.access import Access, Right
from service.operators.actions import Actions
from service.operators.controllers import (
    ChangesController,
    FiguresController,
    HealthController,
    WatchedInstance,
    scrapes_of,
)
from service.operators.guards import TOKEN, WITH_TOKEN, needing, provide_caller, refuse_unclear
from service.operators.keys.backend import api_error, provide_acting, provide_listed
from service.operators.keys.controller import KeysController, RevocationController
from service.operators.keys.handover import HandoverController
from service.operators.keys.named import PartnersController, PlansController
from service.operators.page_files import PageController, read_page_files
from service.operators.problems import refusal_response
from service.redis.errors import StoreUnavailable
from service.request.errors import ApiError
from service.request.request import read_scope, request_of
from service.request.response import NO_STORE, SCOPE_KEY, Send

log = logging.getLogger("forecast.operators")

_MOST_BODY_BYTES = 4096
# Error codes of requests that Litestar itself refuses.
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}
# The end of Litestar's error for a connection that closed before the body was complete. Its answer is never read.
_CUT_OFF = "client disconnected prematurely"


class OperatorsApp:
    """Adapts `litestar` to the connections of this listener. The `OperatorsListener` owns it."""

    def __init__(self, litestar: Litestar) -> None:
        self._litestar = litestar

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        scope[SCOPE_KEY] = read_scope(scope, time.monotonic())
        if scope["path"][:1] != "/":  # OPTIONS * or CONNECT
            allow = (b"allow", b"GET, HEAD, POST")
            await refusal_response("method_not_allowed", headers=(allow,))(scope, receive, send)
            return
        # Litestar reads two slashes as one; the rules of a proxy in front of it may not.
        scope["path"] = scope["path"].replace("//", "/%2F")
        await self._litestar(scope, receive, send)


def build_operators_app(
    instance: WatchedInstance,
    access: Access | None = None,
    changes: Actions | None = None,
    about: About | None = None,
) -> OperatorsApp:
    """Returns the application. The endpoints of changes and of keys exist only if there is a token for them."""
    access = access or Access()
    scrapes, page = scrapes_of(instance), read_page_files()
    documentation = Site("all", about or About())
    objects = {
        "instance": instance,
        "scrapes": scrapes,
        "page": page,
        "changes": changes,
        "backend": changes.backend if changes is not None else None,
        "documentation": documentation,
    }
    strict: list[type[Controller]] = []
    if changes is not None and access.can_grant(Right.WRITE):
        strict.append(ChangesController)
    if changes is not None and access.can_grant(Right.KEYS):
        strict += [KeysController, PlansController, PartnersController, HandoverController]
    if changes is not None and access.can_grant(Right.WRITE | Right.KEYS):
        strict.append(RevocationController)
    return OperatorsApp(
        Litestar(
            [
                PageController,
                HealthController,
                FiguresController,
                Router(
                    "/",
                    route_handlers=strict,
                    before_request=refuse_unclear,
                    security=WITH_TOKEN,
                    dependencies={
                        "by": Provide(provide_caller),
                        "listed": Provide(provide_listed),
                        "acting": Provide(provide_acting),
                    },
                ),
            ],
            dependencies={name: provide(value) for name, value in objects.items()},
            exception_handlers={Exception: _answer_exception},
            before_send=[_add_headers],
            openapi_config=OpenAPIConfig(
                title="Population and housing forecasts, for operators",
                version="1",
                components=Components(security_schemes={"token": TOKEN}),
                use_handler_docstrings=True,
                render_plugins=[JsonRenderPlugin()],  # other plugins load scripts from other sites
                openapi_router=Router(
                    "/schema", route_handlers=[], guards=[needing(Right.READ)], include_in_schema=False
                ),
            ),
            request_max_body_size=_MOST_BODY_BYTES,
            state=State({"access": access}),
            logging_config=None,
        )
    )


async def _add_headers(message: Any, scope: Any) -> None:
    """Adds the request id to every answer, and `no-store` unless the answer has its own Cache-Control."""
    if message["type"] == "http.response.start":
        headers = message["headers"] = list(message["headers"])
        headers.append((b"x-request-id", request_of(scope).request_id))
        if not any(name == NO_STORE[0] for name, _ in headers):
            headers.append(NO_STORE)


def _answer_exception(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    request_id = request_of(request.scope).request_id
    known = error if isinstance(error, ApiError) else _api_error(error)
    if known is None:  # logged without the path: it may contain a key by mistake
        log.error("request failed", exc_info=error, extra={"request_id": request_id.decode()})
        known = ApiError("internal")
    return FinishedResponse(refusal_response(known.code, known.detail, known.headers, known.parameter))


def _api_error(error: Exception) -> ApiError | None:
    """Returns this listener's error for a request that Litestar or the key store refused; None for a defect."""
    if isinstance(error, KeyStoreError | StoreUnavailable):
        return api_error(error)
    if isinstance(error, ValidationException):
        faults: Any = error.extra or ()
        if any(fault["message"] == "'data'" for fault in faults):  # Litestar's own words for no body at all
            return ApiError("invalid_body", "This endpoint needs a body: a JSON object.")
        described = "; ".join(f"{fault['key']}: {fault['message']}" for fault in faults)
        if any(fault.get("source") != "body" for fault in faults):
            return ApiError("invalid_parameter", f"{described}.")
        return ApiError("invalid_body", f"This endpoint does not accept the body: {described}.")
    if isinstance(error, UnicodeDecodeError | RecursionError) or str(error).endswith(_CUT_OFF):
        return ApiError("invalid_body")
    if not isinstance(error, HTTPException) or error.status_code >= 500:
        return None
    allowed = sorted((error.headers or {}).get("allow", "").split(", "))
    headers = ((b"allow", ", ".join(allowed).encode()),) if error.status_code == 405 else ()
    return ApiError(_CODES.get(error.status_code, "bad_request"), headers=headers)
