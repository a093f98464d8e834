"""The service as an ASGI application: the pipeline's checks, then Litestar's handlers, then the record.

It wraps Litestar, because application middleware does not run for unknown paths and methods, which need a key too.
"""

import asyncio
import logging
import time
from typing import Any
from urllib.parse import parse_qs

import msgspec
from litestar.types import ASGIApp

from service.base import tracing
from service.http.areas import PARAMETERS
from service.http.forecast import FORECAST
from service.http.sandbox.app import Sandbox
from service.http.suggestions import zip_in
from service.request.errors import problem, problem_of
from service.request.parameters import as_query, nearest_parameter
from service.request.pipeline import Pipeline
from service.request.request import Request, read_scope
from service.request.respond import CLOSE, fields_behind
from service.request.response import SCOPE_KEY, Response, Send
from service.request.route import advise_get
from warehouse.places.names import nearest_state

log = logging.getLogger("forecast.access")
_LONGEST_BODY, _BODY_SECONDS = 2_000, 1.0
_READERS = {"zip_code": zip_in, "state_code": nearest_state}


class Entry:
    """The application that a worker serves, under our own server or any other.

    `live` answers live keys, and `sandbox` test keys.
    """

    def __init__(self, pipeline: Pipeline, live: ASGIApp, sandbox: Sandbox) -> None:
        self.pipeline = pipeline
        self._live = live
        self._sandbox = sandbox

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self._live(scope, receive, send)
            return
        request: Request | None = scope.get(SCOPE_KEY)
        if request is None:
            request = read_scope(scope, time.monotonic())
            self.pipeline.begin(request)
        tracing.enter(request.trace)
        # the server's own scope keeps HEAD, so that the server leaves the body out
        path = request.path
        inner = dict(scope, method="GET", path=path, raw_path=path.encode(), **{SCOPE_KEY: request})
        answer = _Answer(self.pipeline, request, send)
        try:
            refusal = None if request.is_checked else await self.pipeline.check(request)
            if refusal is not None:
                if refusal.outcome == "method_not_allowed" and not request.query:
                    refusal = await _with_body(request, receive) or refusal
                await refusal(inner, receive, answer)
                return
            app: Any = self._sandbox.app if request.is_test else self._live
            await app(inner, receive, answer)
        except Exception as error:
            if answer.begun:
                raise  # the server closes the connection: a partial answer must not look complete
            extra = {"request_id": request.request_id.decode(), "path": request.sent_path}
            log.exception("request failed", extra=extra)
            await problem_of(error)(inner, receive, answer)
        finally:
            self.pipeline.admission.end(request)


class _Answer:
    """The ASGI `send` of one request: adds the header fields of every answer, and records the request when its answer
    is complete.
    """

    def __init__(self, pipeline: Pipeline, request: Request, send: Send) -> None:
        self.begun = False
        self._pipeline = pipeline
        self._request = request
        self._send = send
        self._status = 0
        self._seconds = 0.0  # until the answer began: the rest depends on its reader

    async def __call__(self, message: Any) -> None:
        request = self._request
        if message["type"] == "http.response.start":
            self.begun = True
            self._seconds = time.monotonic() - request.began
            self._status = message["status"]
            message["headers"] = [*message["headers"], *fields_behind(request, self._status)]
            if self._pipeline.draining:
                message["headers"].append(CLOSE)
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._pipeline.recorder.record(request, self._status, request.outcome, self._seconds)


async def _with_body(request: Request, receive: Any) -> Response | None:
    """Returns the 405 for parameters in a body, JSON or a form: it names the GET. None for any other body."""
    headers = dict(request.headers)
    length = headers.get(b"content-length", b"")
    if not length.isdigit() or int(length) > _LONGEST_BODY or b"expect" in headers:
        return None
    body, more = b"", True
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while more:
                message = await receive()
                body, more = body + message.get("body", b""), message.get("more_body", False)
    except TimeoutError:
        return None
    query = _query_in(body)
    is_batch = query.count("zip_code=") > 1 and request.path.startswith(FORECAST.path)
    advice = advise_get(request, query, "/batch" if is_batch else "")
    return problem("method_not_allowed", advice) if advice is not None else None


def _query_in(body: bytes) -> str:
    """Returns the query with the parameters of a body."""
    try:
        sent = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        sent = parse_qs(body.decode("latin-1"))
    found = []
    for name, value in sent.items() if isinstance(sent, dict) else ():
        parameter = nearest_parameter(name, PARAMETERS) or name
        values = value if isinstance(value, list) else [value]
        texts = [str(one) for one in values if parameter != "cursor" or name == parameter]  # a page is no cursor
        found += [as_query({parameter: _READERS.get(parameter, str)(text) or text}) for text in texts]
    return "&".join(found)
