"""Opens the key store for an operator's command, which waits rather than asking the operator to try again."""

from pathlib import Path

from service.keys.store import KeyStore
from service.redis.client import RedisStore, open_client

# More than the server has for confirming that a change is on disk (durable.py).
_TIMEOUT_SECONDS = 3.0


def open_key_store(url: str, secret: bytes, data: Path) -> KeyStore:
    """A store, not connected yet. Call `redis.stop()` at the end, and first `redis.start()` if it lives long.

    Raises:
        ValueError: if `url` is no Redis URL.
    """
    client = open_client(url, timeout=_TIMEOUT_SECONDS, retries=1)
    return KeyStore(RedisStore("key store", url, client), secret, data)
