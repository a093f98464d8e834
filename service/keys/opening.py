"""The key store as an operator's command uses it, which waits rather than telling the operator to try again."""

from pathlib import Path

from service.keys.store import KeyStore
from service.redis.client import RedisStore, open_client

# More than what the server is given to confirm that a change is on disk (durable.py).
_TIMEOUT_SECONDS = 3.0


def open_key_store(url: str, secret: bytes, data: Path) -> KeyStore:
    """Not connected yet; whoever opens it ends with `redis.stop()`, and calls `redis.start()` if it lives for long.

    Raises:
        ValueError: if `url` is no Redis URL.
    """
    client = open_client(url, timeout=_TIMEOUT_SECONDS, retries=1)
    return KeyStore(RedisStore("key store", url, client), secret, data)
