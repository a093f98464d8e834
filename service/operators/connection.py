"""A connection of the operators' listener: the partners' limits, and room for whoever comes next."""

from time import monotonic
from typing import Any, cast

from service.base.closing import LingeringClose, reset
from service.edge.connection.protocol import LimitedProtocol


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
