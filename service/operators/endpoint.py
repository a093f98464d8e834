"""What an endpoint of the operators' listener is."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from service.http.errors import NO_STORE
from service.http.reply import JSON, Header, Reply, Send
from service.operators.access import Right


class EndpointCall(msgspec.Struct, frozen=True, kw_only=True):
    """One request as an endpoint gets it; it lives until the answer."""

    part: str  # the varying part of the path, empty if there is none
    query: str = ""  # what follows the question mark
    headers: list[Header]
    body: bytes
    remote: str  # address of the caller
    may_read: bool
    may_write: bool


# A finished reply, or an ASGI application that sends one bit by bit.
Answer = Reply | Callable[[Any, Any, Send], Awaitable[None]]


class Endpoint(msgspec.Struct, frozen=True):
    """One endpoint; it lives as long as the application. If it needs the right to write it is a POST, else a GET."""

    path: re.Pattern[str]  # its group, at most one, is the varying part
    needs: Right
    answer: Callable[[EndpointCall], Awaitable[Answer]]

    @property
    def methods(self) -> tuple[str, ...]:
        return ("POST",) if self.needs is Right.WRITE else ("GET", "HEAD")


def json_reply(body: object, status: int = 200) -> Reply:
    return Reply(status, (JSON, NO_STORE), msgspec.json.encode(body), "answered")
