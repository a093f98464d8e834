"""The Litestar application: handlers by path, and errors in the form of contract 10."""

from collections.abc import Sequence
from typing import Any

from litestar import Litestar, Request, Response
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp

from service.request import response
from service.request.errors import failure_of
from service.request.request import request_of


def build_litestar(handlers: Sequence[BaseRouteHandler]) -> Litestar:
    """The framework's own OpenAPI, CORS, response cache and rate limiter stay off (Decision 14)."""
    return Litestar(
        handlers,
        openapi_config=None,
        exception_handlers={Exception: _answer_exception},
        logging_config=None,
    )


class FinishedResponse(Response[bytes]):
    """Litestar wants a Response from an exception handler; this one is a finished one as it stands."""

    def __init__(self, finished: response.Response) -> None:
        super().__init__(content=b"", status_code=finished.status)
        self._finished = finished

    def to_asgi_response(self, *_: Any, **__: Any) -> ASGIApp:  # type: ignore[override]
        return self._finished


def _answer_exception(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    return FinishedResponse(failure_of(error, request_of(request.scope).request_id))
