"""The Litestar application: handlers by path, and errors in the form of contract 10."""

from collections.abc import Sequence
from typing import Any

from litestar import Litestar, Request, Response
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp

from service.http.errors import of_failed
from service.http.head import head_of
from service.http.reply import Reply


def build_litestar(handlers: Sequence[BaseRouteHandler]) -> Litestar:
    """The framework's own OpenAPI, CORS, response cache and rate limiter stay off (Decision 14)."""
    return Litestar(
        handlers,
        openapi_config=None,
        exception_handlers={Exception: _answer_exception},
        logging_config=None,
    )


class ReplyResponse(Response[bytes]):
    """Litestar wants a Response from an exception handler; this one is a Reply as it stands."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(content=b"", status_code=reply.status)
        self._reply = reply

    def to_asgi_response(self, *_: Any, **__: Any) -> ASGIApp:  # type: ignore[override]
        return self._reply


def _answer_exception(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    return ReplyResponse(of_failed(error, head_of(request.scope).request_id))
