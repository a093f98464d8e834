"""The operators' application asked without a server."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from config.settings import Settings
from service.base.ipc import AccessLogEntry
from service.base.telemetry import REQUESTS, Snapshot, Telemetry
from service.operators.access import Access
from service.operators.actions import Actions, Purged
from service.operators.app import OperatorsApp, build_operators_app
from service.operators.history import Span
from service.operators.keys.backend import KeyBackend
from service.operators.live import Broadcast
from service.operators.observer import Observer
from service.operators.origins import Hosts
from service.operators.overview import History, Overview
from service.operators.state import InstanceState
from service.request.request import decode_path
from tests.support.asgi import exchange
from tests.support.key_store import PEPPER

READ = "read-token-of-the-tests"
WRITE = "write-token-of-the-tests"
KEYS = "keys-token-of-the-tests"
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


class Watched:
    """An instance that has answered one request, in state `state`."""

    def __init__(self, state: Callable[[], InstanceState], clock: Callable[[], float] = time.time) -> None:
        self.telemetry = Telemetry()
        self.telemetry.count(REQUESTS, "forecast", "200", "answered")
        self.observer = Observer("3f9c20d1", "/data", clock)
        self.events = self.observer.events
        self.broadcast = Broadcast(self.overview)
        self.logged: list[AccessLogEntry] = []
        self.shares: list[float] = []
        self.state = state
        self.look()

    def look(self) -> None:
        self.observer.look(self.state(), self.telemetry.snapshot())
        self.broadcast.publish()

    async def look_at_disk(self) -> None:
        """There is no key store here."""

    async def sums(self) -> Snapshot:
        return self.telemetry.snapshot()

    def overview(self) -> Overview | None:
        return self.observer.overview()

    async def overview_now(self) -> Overview | None:
        return self.overview()

    def history(self, span: Span) -> History:
        return self.observer.history(span)

    def partner_totals(self) -> list[tuple[str, Mapping[int, int]]]:
        return self.observer.board.totals(50)

    async def find(self, request_id: str) -> list[AccessLogEntry]:
        return [request for request in self.logged if request.request_id == request_id]

    def sample(self, share: float) -> None:
        self.shares.append(share)


def actions(settings: Settings, keys_url: str, cache_url: str = "unix:///nowhere") -> Actions:
    """Changes to an instance without caches, with the keys at `keys_url`."""
    return Actions(settings, KeyBackend(settings, keys_url, cache_url, PEPPER), purge)


def renew(made: Actions, settings: Settings, keys_url: str, cache_url: str) -> None:
    """Makes `made` as new, with these settings. Building another application takes longer than most tests."""
    fresh = actions(settings, keys_url, cache_url)
    vars(made.backend).update(vars(fresh.backend))
    vars(made).update(vars(fresh), backend=made.backend)


def operators(
    state: Callable[[], InstanceState],
    *,
    read: str | None = None,
    write: str | None = None,
    keys: str | None = None,
    changes: Actions | None = None,
    hosts: Hosts | None = None,
    open_to_all: bool = True,
) -> OperatorsApp:
    """An application whose instance has answered one request."""
    access = Access(read, write, keys, open_to_all=open_to_all, hosts=hosts)
    return build_operators_app(Watched(state), access, changes)


async def ask(
    app: OperatorsApp,
    path: str,
    method: str = "GET",
    *,
    token: str | None = None,
    body: bytes = b"",
    query: str = "",
    **headers: str,
) -> Answer:
    """`headers` with `_` for `-`."""
    given = {"host": "a", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body:
        given["content-length"] = str(len(body))
    if token is not None:
        given["authorization"] = f"Bearer {token}"
    raw = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
    scope: dict[str, Any] = {"headers": raw, "client": ("192.0.2.7", 4711), "query_string": query.encode()}
    start, answered = await exchange(app, decode_path(quote(path, safe="/%").encode()), method, body, **scope)
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], found, answered)
