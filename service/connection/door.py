"""What the connections of one worker have in common: the application, its pipeline, and its limits."""

from typing import Any

from service.connection.heads import Fields
from service.request.pipeline import Pipeline
from service.request.resolve import Resolver
from service.request.response import Header, Response, Send, lines_of


class Door:
    """The application that a worker's server has. The worker owns it.

    Plain requests go to the `pipeline`, all others to `app`. `connection_age`, in seconds: after it a connection closes
    with its next answer; 0: never.
    """

    def __init__(
        self, app: Any, pipeline: Pipeline, resolver: Resolver, most_connections: int, connection_age: float = 0.0
    ) -> None:
        self.pipeline = pipeline
        self.resolver = resolver
        self.most_connections = most_connections
        self.connection_age = connection_age
        self.fields = Fields()
        self._app = app
        self._dates: list[Header] = []
        self._date_lines = b""

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        await self._app(scope, receive, send)

    @property
    def draining(self) -> bool:
        return self.pipeline.draining

    def date_lines(self, dates: list[Header]) -> bytes:
        """Returns the server's own headers as they travel: the server has new ones once a second."""
        if dates is not self._dates:
            self._dates, self._date_lines = dates, lines_of(tuple(dates))
        return self._date_lines

    def rejected(self, code: str) -> None:
        """Counts a request that never reached the pipeline."""
        self.pipeline.recorder.rejected(code)

    def refusal(self, code: str, request_id: bytes, address: str | None, detail: str | None = None) -> Response:
        """Returns the answer to such a request."""
        return self.pipeline.recorder.refusal(code, request_id, address, detail)
