"""The operators' listener: their application on its socket, in the supervisor."""

import asyncio
import ipaddress
import logging
import socket
from time import monotonic
from typing import Any, cast

from config.settings import Settings
from service.base.closing import LingeringClose, reset
from service.base.server import ListenerServer, plain_config
from service.connection.protocol import LimitedProtocol
from service.keys import audit
from service.operators.access import Access, Tokens
from service.operators.actions import Actions
from service.operators.app import build_operators_app
from service.operators.controllers import WatchedInstance
from service.operators.origins import Hosts


class OperatorsProtocol(LimitedProtocol):
    """One connection of an operator; the listener's server makes it. It ends with its transport.

    Where there are too many, the one that was idle longest goes, and not the newest: that may be a balancer's, and
    nobody without a token shall keep a health check out.
    """

    idle_linger_seconds = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._asked_at = monotonic()  # when it was made, or its last request began

    def on_message_begin(self) -> None:
        self._asked_at = monotonic()
        super().on_message_begin()

    def _make_room(self, over: int) -> None:  # noqa: ARG002 - one goes for each that comes
        others = (cast("OperatorsProtocol | LingeringClose", other) for other in self.connections if other is not self)
        there = [other for other in others if not other.transport.is_closing()]
        if there:
            reset(min(there, key=_worth).transport)

    def worth(self) -> tuple[bool, float]:
        """A connection that waits for an answer, and reads it, is worth more than one that does not; then the one that
        asked last."""
        return not self._is_idle() and not self.flow.write_paused, self._asked_at


def _worth(connection: OperatorsProtocol | LingeringClose) -> tuple[bool, float]:
    """Of one that lingers: nothing."""
    return connection.worth() if isinstance(connection, OperatorsProtocol) else (False, 0.0)


log = logging.getLogger("forecast.operators")


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
        self._server = ListenerServer(plain_config(app, OperatorsProtocol))
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
        for connection in list(self._server.server_state.connections):
            reset(connection.transport)
