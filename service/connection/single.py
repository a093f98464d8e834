"""Requests that come on a connection each, as from a balancer left at its defaults, answered without a protocol.

Most connections of HTTP/1.0, or with `Connection: close`, have sent their request when they are accepted. If it is hot,
its answer is all that the connection needs.
"""

from time import monotonic

from service.edge.connection.light import LightConnection, LightServer
from service.edge.hot.heads import HeadReader
from service.edge.hot.remembered import Caller

# What tells that a request is the last of its connection. In other spellings, its connection gets a protocol first.
_LAST = (b" HTTP/1.0\r\n", b"\r\nConnection: close\r\n", b"\r\nconnection: close\r\n")
# So many requests are read as the first ones taught; then what they have in common may be learned again.
_LEARNED_FOR = 1_000


class SingleRequests:
    """Looks at what each connection of a worker sends first; its server calls it, and owns it."""

    def __init__(self, server: LightServer) -> None:
        self._server = server
        self._hot = server.hot
        self._caller = self._caller_at("")
        self._asked = 0  # of that caller

    def __call__(self, data: bytes, address: str) -> bytes | LightConnection:
        """The answer to the connection's only request, or the protocol that goes on with `data`, which may be empty."""
        if any(sign in data for sign in _LAST):
            self._asked += 1
            if address != self._caller.address or self._asked > _LEARNED_FOR:  # else it probably sends the same key
                self._caller, self._asked = self._caller_at(address), 0
            now = monotonic()
            answer = self._hot.answer(data, self._caller, self._server.state.default_headers, now, now)
            if isinstance(answer, bytes):
                return answer
            self._caller.found_out = None  # the light connection finds it out again
        return LightConnection(self._server, address, data)

    def _caller_at(self, address: str) -> Caller:
        caller = Caller(HeadReader(self._hot.fields, address), address)
        caller.closes = True  # also where the sign is in the value of a header: the answer says what happens
        return caller
