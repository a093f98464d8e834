"""To go."""

from service.connection.light import LightConnection, LightServer


class SingleRequests:
    def __init__(self, server: LightServer) -> None:
        self._server = server

    def __call__(self, data: bytes, address: str) -> bytes | LightConnection:
        return LightConnection(self._server, address, data)
