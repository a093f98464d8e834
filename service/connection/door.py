"""State shared by the connections of one listener: the application, its limits, and its refusals."""

from abc import ABC, abstractmethod
from typing import Any

from uvicorn.server import ServerState

from service.connection.learned_heads import Fields
from service.request.pipeline import Pipeline
from service.request.resolve import Resolver
from service.request.response import Response


class Door(ABC):
    """The configuration of a listener's connections; each listener has a class of its own.

    Connections refuse with `bad_request`, `uri_too_long`, `headers_too_large`, `request_timeout` and `unavailable`.
    `keep_alive`: seconds after the last answer in which the next request may come. `linger`: the same when the server
    stops: the request may be arriving already. `connection_age`: seconds after which a connection closes with its next
    answer; 0: never.
    """

    pipeline: Pipeline | None = None  # that answers plain requests
    resolver: Resolver

    def __init__(
        self, app: Any, most_connections: int, *, keep_alive: float, linger: float = 1.0, connection_age: float = 0.0
    ) -> None:
        self.app = app
        self.most_connections = most_connections
        self.keep_alive = keep_alive
        self.linger = linger
        self.connection_age = connection_age
        self.fields = Fields()
        self.state = ServerState()  # the server's own, once there is one
        self.address: tuple[str, int] = ("", 0)  # its listening address
        self.dates = b""  # the server's own header lines, new ones each second

    @abstractmethod
    def rejected(self, code: str) -> None:
        """Counts a request that never reached the application."""

    @abstractmethod
    def refusal(self, code: str, request_id: bytes, address: str, detail: str | None = None) -> Response:
        """Returns the answer to such a request from `address`."""

    def make_room(self, newest: object) -> bool:  # noqa: ARG002 - other doors end another one for it
        """Called when there is one connection too many. Returns whether the newest may stay."""
        return False


class PartnersDoor(Door):
    """The door of a worker. Plain requests go to the `pipeline`, all others to the application."""

    pipeline: Pipeline

    def __init__(
        self, app: Any, pipeline: Pipeline, resolver: Resolver, most_connections: int, **limits: float
    ) -> None:
        super().__init__(app, most_connections, **limits)
        self.pipeline = pipeline
        self.resolver = resolver

    def rejected(self, code: str) -> None:
        self.pipeline.recorder.rejected(code)

    def refusal(self, code: str, request_id: bytes, address: str, detail: str | None = None) -> Response:
        return self.pipeline.recorder.refusal(code, request_id, address, detail)
