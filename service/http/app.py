"""The Litestar application: handlers by path, and errors in the form of contract 10."""

import logging
from collections.abc import Sequence
from typing import Any

from litestar import Litestar, Request, Response
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp

from service.http.errors import ApiError, of_exception
from service.http.head import head_of
from service.http.reply import Reply

log = logging.getLogger("forecast.http")


def build_litestar(handlers: Sequence[BaseRouteHandler]) -> Litestar:
    """The framework's own OpenAPI, CORS, response cache and rate limiter stay off (Decision 14)."""
    return Litestar(
        handlers,
        openapi_config=None,
        exception_handlers={Exception: _answer_exception},
        logging_config=None,
    )


class _ReplyResponse(Response[bytes]):
    """Litestar wants a Response from an exception handler; this one is a Reply as it stands."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(content=b"", status_code=reply.status)
        self._reply = reply

    def to_asgi_response(self, *_: Any, **__: Any) -> ASGIApp:  # type: ignore[override]
        return self._reply


def _answer_exception(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    head = head_of(request.scope)
    if not isinstance(error, ApiError):
        log.error("handler failed", exc_info=error, extra={"request_id": head.request_id})
    elif error.__cause__ is not None:
        log.warning("%s: %s", error.code, error.__cause__, extra={"request_id": head.request_id})
    return _ReplyResponse(of_exception(error, head.request_id))
