"""The operators' application asked without a server."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from service.base.telemetry import REQUESTS, Snapshot, Telemetry
from service.operators.access import Tokens
from service.operators.actions import Actions, Purged
from service.operators.endpoints import OperatorsApp, build_operators_app
from service.operators.state import InstanceState
from tests.support.asgi import exchange

READ = "read-token-of-the-tests"
WRITE = "write-token-of-the-tests"
JSON = {"content-type": "application/json"}


async def purge() -> Purged:
    """In place of caches."""
    return Purged(near=3, shared=4)


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def problem(self) -> tuple[int, str]:
        """Status and code, having checked the members that partners' errors have as well."""
        found = self.json()
        assert list(found) == ["type", "title", "status", "detail", "code", "request_id"]
        assert (found["type"], found["status"]) == ("about:blank", self.status)
        assert found["request_id"] == self.headers["x-request-id"]
        assert self.headers["content-type"] == "application/json"
        assert self.headers["cache-control"] == "no-store"
        return self.status, found["code"]


def operators(
    state: Callable[[], InstanceState],
    *,
    read: str | None = None,
    write: str | None = None,
    changes: Actions | None = None,
) -> OperatorsApp:
    """An application whose instance has answered one request."""
    telemetry = Telemetry()
    telemetry.count(REQUESTS, "forecast", "200", "answered")

    async def sums() -> Snapshot:
        return telemetry.snapshot()

    return build_operators_app(state, sums, Tokens(read, write), changes)


async def ask(
    app: OperatorsApp, path: str, method: str = "GET", *, token: str | None = None, body: bytes = b"", **headers: str
) -> Answer:
    """`headers` with `_` for `-`."""
    given = {"host": "a", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if token is not None:
        given["authorization"] = f"Bearer {token}"
    raw = [(name.encode(), value.encode()) for name, value in given.items()]
    start, answered = await exchange(app, path, method, body, headers=raw, client=("192.0.2.7", 4711))
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], found, answered)
