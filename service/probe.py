"""Is there a Redis at this URL? Asked once when an instance starts, so that a wrong URL is told at once.

A server that is away, or loading, is no mistake: the instance starts degraded and waits for it.
"""

import socket
from urllib.parse import SplitResult, urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, BusyLoadingError, InvalidResponse, ReadOnlyError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from config.urls import mask_url

_SECONDS = 1.0
# RESP2 and RESP3
_REPLY_TYPES = b"+-:$*_#,(!=%~>|"


def check_answers_redis(url: str) -> str | None:
    """What is wrong with `url`, in one line; None if Redis answers there, or nobody does at the moment."""
    shown = mask_url(url)
    try:
        client = Redis.from_url(
            url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS, retry=Retry(NoBackoff(), 0), protocol=2
        )
    except ValueError as error:
        return f"{shown} is no Redis URL: {error}"
    if _speaks_otherwise(url):
        return f"{shown} answers, but does not speak Redis's protocol"
    try:
        with client:
            client.ping()
    except AuthenticationError as error:
        return f"{shown} refuses the credentials: {error}"
    except (BusyLoadingError, ReadOnlyError, RedisTimeoutError):
        return None
    except InvalidResponse:
        return f"{shown} answers, but does not speak Redis's protocol"
    except RedisConnectionError:
        return None
    except (RedisError, UnicodeError) as error:
        return f"{shown}: {error}"
    return None


def _speaks_otherwise(url: str) -> bool:
    """Whether the first byte that comes back belongs to another protocol; the client tells that from silence badly."""
    parts = urlsplit(url)
    if parts.scheme == "rediss":
        return False  # under TLS: the client says what is wrong
    try:
        with _connected(parts) as connection:
            connection.sendall(b"PING\r\n")
            first = connection.recv(1)
    except OSError:
        return False
    return bool(first) and first not in _REPLY_TYPES


def _connected(parts: SplitResult) -> socket.socket:
    if parts.scheme != "unix":
        return socket.create_connection((parts.hostname or "localhost", parts.port or 6379), timeout=_SECONDS)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_SECONDS)
    connection.connect(parts.path)
    return connection
