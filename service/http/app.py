"""The Litestar application: handlers, their dependencies, and errors in the form of contract 10."""

from collections.abc import Sequence
from typing import Any

from litestar import Litestar, Request, Response
from litestar.di import NamedDependency, Provide
from litestar.params import SkipValidation
from litestar.types import ASGIApp, ControllerRouterHandler, Scope

from service.request import request, response
from service.request.errors import failure_of
from service.request.request import request_of

OPENAPI_PATH = "/v1/openapi.json"
# Only if the documentation is enabled.
GUIDE_PATH = "/docs/"

# The request, as checked by the pipeline. Every handler may take it.
Checked = NamedDependency[SkipValidation[request.Request]]


def build_litestar(handlers: Sequence[ControllerRouterHandler], **dependencies: object) -> Litestar:
    """Returns an application whose handlers take `dependencies` by their names.

    The framework's own OpenAPI, CORS, response cache and rate limiter stay off (Decision 14).
    """
    return Litestar(
        handlers,
        dependencies={
            "checked": Provide(_checked, sync_to_thread=False),
            **{name: provide(value) for name, value in dependencies.items()},
        },
        openapi_config=None,
        exception_handlers={Exception: _answer_exception},
        logging_config=None,
    )


def provide(value: object) -> Provide:
    """Provides the same object to every request."""
    return Provide(lambda: value, sync_to_thread=False)


def _checked(scope: Scope) -> request.Request:
    return request_of(scope)


class FinishedResponse(Response[bytes]):
    """A finished response, in the form that Litestar expects of an exception handler."""

    def __init__(self, finished: response.Response) -> None:
        super().__init__(content=b"", status_code=finished.status)
        self._finished = finished

    def to_asgi_response(self, *_: Any, **__: Any) -> ASGIApp:  # type: ignore[override]
        return self._finished


def _answer_exception(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    return FinishedResponse(failure_of(error, request_of(request.scope).request_id))
