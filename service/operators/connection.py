"""A connection of the operators' listener: the partners' limits, and room for whoever comes next."""

import asyncio
from time import monotonic
from typing import cast

from service.edge.connection.deadlines import reset
from service.edge.connection.protocol import LimitedProtocol


class OperatorsProtocol(LimitedProtocol):
    """One connection.

    Where there are too many, the one that was idle longest goes, and not the newest: that may be a balancer's, and
    nobody without a token shall keep a health check out.
    """

    idle_linger_seconds = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._active_at = monotonic()
        super().connection_made(transport)

    def on_message_begin(self) -> None:
        self._active_at = monotonic()
        super().on_message_begin()

    def _make_room(self, over: int) -> None:  # noqa: ARG002 - one goes for each that comes
        others = (cast("OperatorsProtocol", other) for other in self.connections if other is not self)
        there = [other for other in others if not other.transport.is_closing()]
        if there:
            reset(min(there, key=OperatorsProtocol.worth).transport)

    def worth(self) -> tuple[bool, float]:
        """Who waits for an answer, and reads it, is worth more than who does not; then who asked last."""
        return not self._is_idle() and not self.flow.write_paused, self._active_at
