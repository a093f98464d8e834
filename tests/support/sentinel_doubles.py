"""Sentinels without a server: they name whom a test wants, or say nothing."""

import asyncio
from contextlib import suppress

from config.server_lists import Node

_HOST = "127.0.0.1"


class SentinelDouble:
    """Answers every command with the address of `primary`; None: it knows no such service. `silent`: with nothing."""

    def __init__(self, primary: Node | None) -> None:
        self.primary = primary
        self.silent = False
        self.asked = 0
        self.node = Node(_HOST, 0)
        self._server: asyncio.Server | None = None

    async def start(self) -> "SentinelDouble":
        self._server = await asyncio.start_server(self._serve, _HOST, 0)
        self.node = Node(_HOST, self._server.sockets[0].getsockname()[1])
        return self

    def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while words := await _command(reader):
                if words[0].upper() == b"SENTINEL":
                    self.asked += 1
                if not self.silent:
                    writer.write(self._reply(words))
        writer.close()

    def _reply(self, words: list[bytes]) -> bytes:
        if words[0].upper() != b"SENTINEL":
            return b"+OK\r\n"
        if self.primary is None:
            return b"*-1\r\n"
        host, port = self.primary.host, str(self.primary.port)
        return f"*2\r\n${len(host)}\r\n{host}\r\n${len(port)}\r\n{port}\r\n".encode()


async def _command(reader: asyncio.StreamReader) -> list[bytes]:
    head = await reader.readline()
    words = []
    for _ in range(int(head[1:] or 0)):
        length = int((await reader.readline())[1:])
        words.append((await reader.readexactly(length + 2))[:-2])
    return words
