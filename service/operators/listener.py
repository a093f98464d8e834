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
from service.keys import audit
from service.operators.access import Access, Tokens
from service.operators.actions import Actions
from service.operators.app import OperatorsApp, build_operators_app
from service.operators.controllers import WatchedInstance
from service.operators.origins import Hosts
from service.operators.problems import refusal_response
from service.request.response import Response

log = logging.getLogger("forecast.operators")

# Enough for balancers, scrapers and people. One more replaces the connection that has been idle longest.
MOST_CONNECTIONS = 100
_KEEP_ALIVE_SECONDS = 5.0


class OperatorsDoor(Door):
    """The operators' listener's. Where there are too many connections, the one that was idle longest goes, and not the
    newest: that may be a balancer's, and nobody without a token shall keep a health check out.
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
        """Logged at debug, so that strangers cannot fill the log."""
        log.debug("refused: %s", code)

    def refusal(self, code: str, request_id: bytes, address: str, detail: str | None = None) -> Response:  # noqa: ARG002
        """Logs each detail once: a balancer's health check may be what is refused."""
        if detail is not None and detail not in self._warned:
            self._warned.add(detail)
            log.warning("a request to the operators' listener was refused: %s", detail)
        return refusal_response(code, detail)


def _worth(connection: Connection) -> tuple[bool, float]:
    """A connection that waits for an answer, and reads it, is worth more than one that does not; then the one that
    asked last."""
    return connection.is_waited_for, connection.asked_at


class OperatorsListener:
    """Serves operators on the socket `bound`, from `start` to `stop`. The supervisor owns it; it owns `changes`."""

    def __init__(self, settings: Settings, bound: socket.socket, changes: Actions) -> None:
        self._settings = settings
        self._bound = bound
        self._changes = changes
        self._loopback = ipaddress.ip_address(bound.getsockname()[0]).is_loopback
        self._tokens = Tokens(settings.operator_read_token, settings.operator_write_token, open_to_all=self._loopback)

    def start(self, instance: WatchedInstance) -> None:
        if not self._tokens.readable:
            log.warning(
                "nobody can read metrics or the reasons of health: FORECAST_OPERATOR_HOST (%s) lets other machines in, "
                "and there is no token. Set FORECAST_OPERATOR_READ_TOKEN_FILE, or FORECAST_OPERATOR_HOST=127.0.0.1",
                self._settings.operator_host,
            )
        if self._tokens.writable:  # changes of keys are logged at every log level, as commands do
            audit.log.setLevel(logging.INFO)
        self._broadcast = instance.broadcast
        # beyond loopback, names are not known, and the token keeps pages of other sites out
        hosts = Hosts((self._settings.operator_host, *self._settings.operator_allowed_hosts))
        access = Access(self._tokens, hosts if self._loopback else None)
        app = build_operators_app(instance, access, self._changes)
        self._server = ListenerServer(OperatorsDoor(app))
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._bound]), name="operators")

    async def stop(self, seconds: float) -> None:
        """Finishes requests under way for at most so many seconds, then drops the rest."""
        self._server.should_exit = True
        self._broadcast.close()
        await asyncio.wait([self._serving], timeout=seconds)
        self.stop_at_once()
        await asyncio.gather(self._serving, return_exceptions=True)
        await self._changes.stop()

    def stop_at_once(self) -> None:
        """Resets every connection. Call before `stop`, or while it runs."""
        self._server.should_exit = self._server.force_exit = True
        for connection in cast("list[Connection]", list(self._server.server_state.connections)):
            connection.channel.reset()
