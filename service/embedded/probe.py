"""Checks once, when an instance or a command starts, whether the right kind of Redis answers at a URL.

So a wrong URL is an immediate error. An unreachable or loading server is not: the instance starts degraded and waits
for it.
"""

import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ssl import SSLCertVerificationError
from urllib.parse import SplitResult, parse_qs, urlsplit

from redis import Redis
from redis.backoff import NoBackoff
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
from redis.retry import Retry

from config.server_lists import Node, ServerList, server_list
from config.urls import mask_url, url_problem
from service.redis.errors import StoreUnavailable
from service.redis.kind import Mode, ServerKind, server_kind_of, wrong_kind
from service.redis.sentinels import UnknownServiceError, find_primary

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


def check_answers_redis(url: str, *, for_keys: bool = False) -> str | None:
    """Returns the problem of `url` in one line; None if a Redis of its kind answers, or no server does."""
    listed = server_list(url) if url_problem(url) is None else None
    if listed is None:
        return _check(url, "standalone", for_keys=for_keys)
    if listed.kind == "cluster":
        return _check_all(listed.nodes, lambda node: _check(listed.server_url(node), "cluster", for_keys=for_keys))
    problem = _check_all(listed.nodes, lambda node: _check(listed.sentinel_url(node), "sentinel", for_keys=for_keys))
    return problem or _check_primary(listed)


def _check_primary(listed: ServerList) -> str | None:
    """Returns the problem of the primary that most Sentinels name. Ignores its role, which may be changing."""
    try:
        primary = find_primary(listed, _TIMEOUT_SECONDS)
    except UnknownServiceError as error:
        return f"{listed.address}: {error}"
    except StoreUnavailable:
        return None
    return _check(listed.server_url(primary), None)


def _check_all(nodes: tuple[Node, ...], check: Callable[[Node], str | None]) -> str | None:
    """Returns the first problem of any node. Checks all at once, because each may be unreachable."""
    with ThreadPoolExecutor(len(nodes)) as threads:
        return next((problem for problem in threads.map(check, nodes) if problem is not None), None)


def _check(url: str, expected: Mode | None, *, for_keys: bool = False) -> str | None:
    """Returns the problem of the server at a plain `url`. It must be of the `expected` kind, unless that is None."""
    shown = mask_url(url)
    try:
        client = Redis.from_url(
            url,
            socket_timeout=_TIMEOUT_SECONDS,
            socket_connect_timeout=_TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
    except ValueError as error:
        return f"{shown} is not a Redis URL: {error}"
    unreadable = _unreadable_certificate(url)
    if unreadable is not None:
        return f"{shown}: {unreadable}"
    if wrong := _wrong_reply(url):
        return f"{shown} {wrong}"
    try:
        with client:
            client.ping()
            kind = _read_kind(client) if expected is not None else None
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


def _read_kind(client: Redis) -> ServerKind | None:
    """Returns the server's kind by its HELLO; None if it is too old for that, or the user lacks the right."""
    try:
        return server_kind_of(client.execute_command("HELLO"))  # type: ignore[no-untyped-call]
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
