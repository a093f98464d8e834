"""Requests that come on a connection each, as from a balancer left at its defaults, answered without a protocol.

Most connections of HTTP/1.0, or with `Connection: close`, have sent their request when they are accepted. If it is hot,
its answer is all that the connection needs.
"""

from collections.abc import Callable
from time import monotonic

from uvicorn.server import ServerState

from service.edge.connection.direct import DirectProtocol
from service.edge.hot.answers import HotAnswers
from service.edge.hot.heads import HeadReader
from service.edge.hot.remembered import Caller

# What tells that a request is the last of its connection. In other spellings, its connection gets a protocol first.
_LAST = (b" HTTP/1.0\r\n", b"\r\nConnection: close\r\n", b"\r\nconnection: close\r\n")
# So many requests share what their heads have in common; then it is learned anew, as callers change.
_LEARNED_FOR = 1_000


class SingleRequests:
    """Looks at what each connection of a worker sends first; its server calls it, and owns it.

    `make` makes the protocol of a connection, where one is needed.
    """

    def __init__(self, hot: HotAnswers, make: Callable[[], DirectProtocol], state: ServerState) -> None:
        self._hot = hot
        self._make = make
        self._state = state
        self._asked = 0
        self._reader = HeadReader(hot.fields)
        self._caller = Caller(self._reader)

    def __call__(self, data: bytes, address: str) -> bytes | DirectProtocol:
        """The answer to the connection's only request, or the protocol that goes on with `data`."""
        if any(sign in data for sign in _LAST):
            answer = self._hot.answer(data, self._caller_at(address), self._state.default_headers, monotonic())
            if isinstance(answer, bytes):
                return answer
        protocol = self._make()
        protocol.sent_first = data
        return protocol

    def _caller_at(self, address: str) -> Caller:
        """The same one again, if the address is: it probably sends the same key."""
        self._asked += 1
        if self._asked > _LEARNED_FOR:
            self._asked, self._reader = 0, HeadReader(self._hot.fields)
        if address != self._caller.address or not self._asked:
            self._caller = Caller(self._reader)
            self._caller.address = address
        return self._caller
