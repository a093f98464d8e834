"""Requests of which every tenth is cut off by its client at a random byte: no answer may belong to another request.

A cut-off request is sent alone, or in one piece with a whole one before it, and its connection closed or reset. Every
answer has to be a 200 with the request's own id and ZIP code.
"""

import os
import random
import select
import socket
import struct
from collections.abc import Sequence

import msgspec

from tests.bench.client import answer_length, connect
from tests.bench.contenders import start_tiers
from tests.bench.load import Endpoint, request_heads
from tests.bench.stage import CLIENT_CORE, HOT_ZIP_CODES, console, stage
from tests.bench.verify import warm

_CONNECTIONS = 64
_RESET = struct.pack("ii", 1, 0)
_PATIENCE_SECONDS = 10
_CHUNK = 65_536


class Cut(msgspec.Struct):
    """`cut`: requests that were cut off. `foreign`: answers of another request. `wrong`: not 200, or none at all."""

    requests: int = 0
    cut: int = 0
    answered: int = 0
    foreign: int = 0
    wrong: int = 0


class Asked(msgspec.Struct):
    """A connection, and what its whole request asked for. `leaves`: half a request went behind it."""

    connection: socket.socket
    zip_code: bytes = b""
    request_id: bytes = b""
    data: bytes = b""
    leaves: bool = False


class CutOff:
    """Sends `total` requests over some connections; `seed` makes a run repeatable."""

    def __init__(self, endpoint: Endpoint, zips: Sequence[str], total: int, seed: int) -> None:
        self._endpoint = endpoint
        self._asks = list(zip(zips, request_heads(endpoint, zips), strict=True))
        self._total = total
        self._random = random.Random(seed)
        self._poll = select.epoll()
        self._waiting: dict[int, Asked] = {}
        self.found = Cut()

    def run(self) -> Cut:
        for _ in range(_CONNECTIONS):
            self._ask(self._opened())
        while self._waiting:
            events = self._poll.poll(_PATIENCE_SECONDS)
            if not events:
                self.found.wrong += len(self._waiting)
                break
            for number, _ in events:
                self._receive(self._waiting[number])
        self._poll.close()
        return self.found

    def _opened(self) -> Asked:
        asked = Asked(connect(self._endpoint))
        self._poll.register(asked.connection, select.EPOLLIN)
        self._waiting[asked.connection.fileno()] = asked
        return asked

    def _ask(self, asked: Asked) -> None:
        """Sends the next request; those that are cut off alone take their connection with them."""
        while self.found.requests < self._total:
            self.found.requests += 1
            zip_code, request_id, request = self._request(self.found.requests)
            is_cut = self.found.requests % 10 == 0
            if is_cut and self._random.random() < 0.5:
                self.found.cut += 1
                self._send(asked, request[: self._random.randint(1, len(request))])
                self._leave(asked)
                asked = self._opened()
                continue
            if is_cut:
                self.found.cut += 1
                self.found.requests += 1
                _, _, behind = self._request(self.found.requests)
                request += behind[: self._random.randint(1, len(behind) - 1)]
            asked.zip_code, asked.request_id, asked.leaves = zip_code, request_id, is_cut
            self._send(asked, request)
            return
        self._leave(asked)

    def _request(self, number: int) -> tuple[bytes, bytes, bytes]:
        zip_code, head = self._random.choice(self._asks)
        request_id = b"cut-%d" % number
        return zip_code.encode(), request_id, b"%bx-request-id: %b\r\n\r\n" % (head, request_id)

    def _send(self, asked: Asked, data: bytes) -> None:
        asked.connection.sendall(data)

    def _receive(self, asked: Asked) -> None:
        try:
            more = asked.connection.recv(_CHUNK)
        except OSError:
            more = b""
        asked.data += more
        if more and not answer_length(asked.data):
            return
        self._judge(asked)
        asked.data = b""
        if asked.leaves or not more:
            self._leave(asked)
            asked = self._opened()
        self._ask(asked)

    def _judge(self, asked: Asked) -> None:
        head, _, body = asked.data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200") or len(asked.data) != answer_length(asked.data):
            self.found.wrong += 1
        elif (
            b"\r\nx-request-id: %b\r\n" % asked.request_id in head.lower() + b"\r\n"
            and b'"zip_code":"%b"' % asked.zip_code in body
        ):
            self.found.answered += 1
        else:
            self.found.foreign += 1

    def _leave(self, asked: Asked) -> None:
        """Closes, or resets as a client that dies does."""
        del self._waiting[asked.connection.fileno()]
        self._poll.unregister(asked.connection)
        if self._random.random() < 0.5:
            asked.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        asked.connection.close()


def cutoff(total: int, seed: int) -> dict[str, Cut]:
    """Runs through each tier that answers hits."""
    found = {}
    with stage() as set_up:
        console.print("publishing, starting the service")
        set_up.publish()
        zips = set_up.zip_codes()[:HOT_ZIP_CODES]
        tiers = [one for one in start_tiers(set_up) if one.group == "hit"]
        os.sched_setaffinity(0, {CLIENT_CORE})
        for tier in tiers:
            warm(tier, zips)
            found[tier.name] = CutOff(tier.endpoint, zips, total // len(tiers), seed).run()
    return found
