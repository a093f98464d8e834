"""The operators' listener: their application on its socket, in the supervisor."""

import asyncio
import ipaddress
import logging
import socket
from typing import cast

from config.settings import Settings
from service.connection.connection import Connection
from service.connection.door import Door
from service.connection.server import ListenerServer
from service.http.openapi import about_of
from service.keys import audit
from service.operators.access import Access, Right
from service.operators.actions import Actions
from service.operators.app import OperatorsApp, build_operators_app
from service.operators.controllers import WatchedInstance
from service.operators.origins import Hosts
from service.operators.problems import refusal_response
from service.request.response import Response

log = logging.getLogger("forecast.operators")

# Enough for balancers, scrapers and people. Another connection replaces the one that has been idle longest.
MOST_CONNECTIONS = 100
_KEEP_ALIVE_SECONDS = 5.0


class OperatorsDoor(Door):
    """The door of the operators' listener.

    Above the limit it drops the connection that was idle longest, not the newest, which may be a balancer's: callers
    without a token must not lock out health checks.
    """

    def __init__(self, app: OperatorsApp) -> None:
        super().__init__(app, MOST_CONNECTIONS, keep_alive=_KEEP_ALIVE_SECONDS, linger=0.0)
        self._warned: set[str] = set()

    def make_room(self, newest: object) -> bool:
        connections = cast("set[Connection]", self.state.connections)
        others = [other for other in connections if other is not newest]
        if others:
            min(others, key=_worth).channel.reset()
        return True

    def rejected(self, code: str) -> None:
        """Logs at debug level, so that clients cannot fill the log."""
        log.debug("refused: %s", code)

    def refusal(self, code: str, request_id: bytes, address: str, detail: str | None = None) -> Response:  # noqa: ARG002
        """Logs each detail once: the refused request may be a balancer's health check, which repeats."""
        if detail is not None and detail not in self._warned:
            self._warned.add(detail)
            log.warning("a request to the operators' listener was refused: %s", detail)
        return refusal_response(code, detail)


def _worth(connection: Connection) -> tuple[bool, float]:
    """Ranks connections that wait for an answer and read it above others, then by their last request."""
    return connection.is_waited_for, connection.began_at


class OperatorsListener:
    """Serves operators on the socket `bound`, from `start` to `stop`. The supervisor owns it; it owns `changes`."""

    def __init__(self, settings: Settings, bound: socket.socket, changes: Actions) -> None:
        self._settings = settings
        self._bound = bound
        self._changes = changes
        is_loopback = ipaddress.ip_address(bound.getsockname()[0]).is_loopback
        # beyond loopback, the valid names are unknown, and the token keeps out pages of other sites
        names = (settings.operator_host, *settings.operator_allowed_hosts)
        self._access = Access(
            settings.operator_read_token,
            settings.operator_write_token,
            settings.operator_keys_token,
            open_to_all=is_loopback,
            hosts=Hosts(names) if is_loopback else None,
        )

    def start(self, instance: WatchedInstance) -> None:
        if not self._access.can_grant(Right.READ):
            log.warning(
                "metrics and the reasons of health cannot be read: FORECAST_OPERATOR_HOST (%s) lets other machines in, "
                "and no token is set. Set FORECAST_OPERATOR_READ_TOKEN_FILE, or FORECAST_OPERATOR_HOST=127.0.0.1",
                self._settings.operator_host,
            )
        if self._access.can_grant(Right.WRITE | Right.KEYS):
            audit.log.setLevel(logging.INFO)  # key changes are logged at every log level, as commands do
        self._broadcast = instance.broadcast
        app = build_operators_app(instance, self._access, self._changes, about_of(self._settings))
        self._server = ListenerServer(OperatorsDoor(app))
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._bound]), name="operators")

    async def stop(self, seconds: float) -> None:
        """Finishes requests under way for at most `seconds`, then drops the rest."""
        self._server.should_exit = True
        self._broadcast.close()
        await asyncio.wait([self._serving], timeout=seconds)
        self.stop_at_once()
        await asyncio.gather(self._serving, return_exceptions=True)
        await self._changes.backend.stop()

    def stop_at_once(self) -> None:
        """Resets every connection. Call it before or during `stop`."""
        self._server.should_exit = self._server.force_exit = True
        for connection in cast("list[Connection]", list(self._server.server_state.connections)):
            connection.channel.reset()
