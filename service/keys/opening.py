"""Opens the key store for an operator's command, which waits rather than asking the operator to try again."""

from pathlib import Path

from service.keys.store import KeyStore
from service.redis.primary import Primary, open_store

# More than the server has for confirming that a change is on disk (durable.py).
_TIMEOUT_SECONDS = 3.0


def open_key_store(primary: Primary, secret: bytes, data: Path, replicas: int = 0) -> KeyStore:
    """A store, not connected yet. Call `redis.stop()` at the end, and first `redis.start()` if it lives long.

    `replicas` must have a change before it counts as durable.
    """
    store = open_store("key store", primary, timeout=_TIMEOUT_SECONDS, retries=1)
    return KeyStore(store, secret, data, replicas)
