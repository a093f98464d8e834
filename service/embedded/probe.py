"""Checks once, when an instance or a command starts, whether the right kind of Redis answers at a URL.

So a wrong URL is an immediate error. An unreachable or loading server is not: the instance starts degraded and waits
for it.
"""

import asyncio
import os
import socket
from ssl import SSLCertVerificationError
from urllib.parse import SplitResult, parse_qs, urlsplit

from redis.asyncio import Redis
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    InvalidResponse,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from config.server_lists import server_list
from config.urls import mask_url, url_problem
from service.redis.connections import open_client
from service.redis.errors import StoreUnavailable
from service.redis.kind import Mode, ServerKind, server_kind_of, wrong_kind
from service.redis.primary import UnknownServiceError, found

_TIMEOUT_SECONDS = 1.0
# First bytes of replies in RESP2 and RESP3.
_REPLY_TYPES = b"+-:$*_#,(!=%~>|"
# Options of a rediss:// URL that name files.
_CERTIFICATES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")

# Certificate extensions that Python 3.13 and later requires, by OpenSSL's verify code (x509_vfy.h).
_LACKING = {
    85: "the server's certificate with authorityKeyIdentifier=keyid",
    86: "the authority's certificate with subjectKeyIdentifier=hash",
    89: "the authority's certificate with basicConstraints=critical,CA:TRUE",
    92: "the authority's certificate with keyUsage=critical,keyCertSign,cRLSign",
}


async def check_answers_redis(url: str, *, for_keys: bool = False) -> str | None:
    """Returns the problem of `url` in one line; None if a Redis of its kind answers, or no server does.

    Checks all listed nodes at once, because each may be unreachable.
    """
    listed = server_list(url) if url_problem(url) is None else None
    if listed is None:
        return await _check(url, "standalone", for_keys=for_keys)
    of_node = listed.server_url if listed.kind == "cluster" else listed.sentinel_url
    checks = (_check(of_node(node), listed.kind, for_keys=for_keys) for node in listed.nodes)
    problem = next(filter(None, await asyncio.gather(*checks)), None)
    if problem is not None or listed.kind == "cluster":
        return problem
    try:
        async with found(url) as primary:
            return None if primary.url is None else await _check(primary.url, None)  # its role may be changing
    except UnknownServiceError as error:
        return str(error)
    except StoreUnavailable:
        return None


async def _check(url: str, expected: Mode | None, *, for_keys: bool = False) -> str | None:
    """Returns the problem of the server at a plain `url`. It must be of the `expected` kind, unless that is None."""
    shown = mask_url(url)
    try:
        client = open_client(url, timeout=_TIMEOUT_SECONDS)
    except ValueError as error:
        return f"{shown} is not a Redis URL: {error}"
    unreadable = _unreadable_certificate(url)
    if unreadable is not None:
        return f"{shown}: {unreadable}"
    if wrong := await asyncio.to_thread(_wrong_reply, url):
        return f"{shown} {wrong}"
    try:
        async with client:
            await _ping(client)
            kind = await _read_kind(client) if expected is not None else None
    except AuthenticationError as error:
        return f"{shown} refuses the credentials: {error}"
    except (BusyLoadingError, ReadOnlyError, RedisTimeoutError):
        return None
    except InvalidResponse:
        return f"{shown} answers, but does not speak Redis's protocol"
    except RedisConnectionError as error:
        distrust = _explain_distrust(error)
        return None if distrust is None else f"{shown}: the server's certificate is not trusted: {distrust}"
    except (RedisError, UnicodeError) as error:
        return f"{shown}: {error}"
    if kind is None or expected is None:
        return None
    problem = wrong_kind(kind, expected, for_keys=for_keys)
    return None if problem is None else f"{shown} {problem}"


async def _ping(client: Redis) -> None:
    """Raises RedisError: if connecting was refused, the server's error, which the library wraps."""
    try:
        await client.ping()
    except RedisConnectionError as error:
        if isinstance(error.__cause__, RedisError):
            raise error.__cause__ from None
        raise


async def _read_kind(client: Redis) -> ServerKind | None:
    """Returns the server's kind by its HELLO; None if it is too old for that, or the user lacks the right."""
    try:
        return server_kind_of(await client.execute_command("HELLO"))  # type: ignore[no-untyped-call]
    except ResponseError:
        return None


def _unreadable_certificate(url: str) -> str | None:
    """Returns the problem of an unreadable certificate file, if any: the client would treat it as an outage."""
    for name, values in parse_qs(urlsplit(url).query).items():
        if name in _CERTIFICATES and not os.access(values[0], os.R_OK):
            return f"{name} names a file that cannot be read: {values[0]}"
    return None


def _explain_distrust(error: BaseException | None) -> str | None:
    """Returns why a server's certificate was rejected, if that caused `error`: a retry would not help."""
    while error is not None and not isinstance(error, SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    lacking = _LACKING.get(error.verify_code)
    remedy = "" if lacking is None else f". Python 3.13 and later requires it. Issue {lacking}."
    return f"{error.verify_message}{remedy}"


def _wrong_reply(url: str) -> str | None:
    """Returns the problem that the server's first reply shows, if any.

    The client reports another protocol as a timeout, and protected mode as a lost connection.
    """
    parts = urlsplit(url)
    if parts.scheme == "rediss":
        return None  # under TLS, the client's own error is clear
    try:
        with _connect(parts) as connection:
            connection.sendall(b"PING\r\n")
            first = connection.recv(64)
    except OSError:
        return None
    if first.startswith(b"-DENIED"):
        return "refuses clients of other machines (protected mode): set requirepass, and use a URL with the password"
    return "answers, but does not speak Redis's protocol" if first and first[:1] not in _REPLY_TYPES else None


def _connect(parts: SplitResult) -> socket.socket:
    if parts.scheme != "unix":
        return socket.create_connection((parts.hostname or "localhost", parts.port or 6379), timeout=_TIMEOUT_SECONDS)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_TIMEOUT_SECONDS)
    connection.connect(parts.path)
    return connection
