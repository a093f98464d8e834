"""The library's connections, with timeouts that a busy event loop cannot trip (base/timeouts.py).

The library's own timeouts end a call whose reply arrived while the loop was busy, and its timeout for sending makes a
task of each command.

Names are resolved here too: the event loop cannot abandon its own look-up, so one that hangs would delay the end of the
process.
"""

import asyncio
import socket
from collections.abc import Iterable
from concurrent.futures import Future
from threading import Thread
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.maint_notifications import MaintNotificationsConfig

from service.base.timeouts import within

_MAX_CONNECTIONS = 256


class _PatientConnection(AbstractConnection):
    """`limit`, in seconds, is for each step: connecting, sending, a reply. It is the pool's `socket_timeout`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.limit: float = options["socket_timeout"]
        self.socket_timeout = self.socket_connect_timeout = None

    async def _connect(self) -> None:
        await within(self.limit, super()._connect())  # type: ignore[safe-super, no-untyped-call]  # of the other base class

    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        try:
            await within(self.limit, super().send_packed_command(command, check_health))
        except TimeoutError:
            raise RedisTimeoutError("Timeout writing to the server") from None

    async def read_response(
        self,
        disable_decoding: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - as in the library
        **options: Any,
    ) -> Any:
        if timeout is not None:  # a limit of this call alone
            return await super().read_response(disable_decoding, timeout, **options)
        try:
            return await within(self.limit, super().read_response(disable_decoding, **options))
        except TimeoutError:
            raise RedisTimeoutError("Timeout reading from the server") from None


class _ByName(Connection):
    """Tries the addresses of its host in turn."""

    async def _connect(self) -> None:
        error = OSError(f"{self.host} has no address")
        for address in await _resolve(self.host):
            self._address = address
            try:
                await super()._connect()  # type: ignore[no-untyped-call]
            except OSError as failed:
                error = failed
            else:
                return
        raise error

    def _connection_arguments(self) -> dict[str, Any]:
        arguments = {**super()._connection_arguments(), "host": self._address}
        return {**arguments, "server_hostname": self.host} if "ssl" in arguments else arguments


_look_ups: dict[str, Future[list[str]]] = {}


async def _resolve(host: str) -> list[str]:
    """Returns the addresses of `host`; raises OSError. One thread looks it up, however many callers wait or give up."""
    look_up = _look_ups.get(host)
    if look_up is None:
        look_up = _look_ups[host] = Future()
        look_up.set_running_or_notify_cancel()  # a caller that gives up must not cancel it
        Thread(target=_look_up, args=(host, look_up), daemon=True).start()
    return await asyncio.wrap_future(look_up)


def _look_up(host: str, found: Future[list[str]]) -> None:
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        found.set_result([str(address[0]) for *_, address in infos])
    except Exception as error:
        found.set_exception(error)
    finally:
        del _look_ups[host]


class _PatientTcp(_PatientConnection, _ByName):
    """Over TCP."""


class _PatientTls(_PatientConnection, _ByName, SSLConnection):
    """Over TLS."""


class _PatientSocket(_PatientConnection, UnixDomainSocketConnection):
    """Over a Unix socket."""


# The class with these limits, by the library's class.
_PATIENT: dict[type[AbstractConnection], type[_PatientConnection]] = {
    Connection: _PatientTcp,
    SSLConnection: _PatientTls,
    UnixDomainSocketConnection: _PatientSocket,
}


def open_client(url: str, *, timeout: float, retries: int = 0, protocol: int = 2) -> Redis:
    """Returns a client whose tries each fail within about `timeout` seconds; the library's defaults take seconds.
    `protocol` is the version of RESP.

    Raises:
        ValueError: if `url` is no Redis URL.
    """
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=_MAX_CONNECTIONS,
        timeout=timeout,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), retries),
        maint_notifications_config=MaintNotificationsConfig(enabled=False),  # of one vendor's servers
    )
    pool.connection_kwargs["protocol"] = protocol  # whatever the URL says
    pool.connection_class = _PATIENT[pool.connection_class]
    return Redis.from_pool(pool)
