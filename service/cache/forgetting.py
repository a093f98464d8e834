"""Removes the entries of releases that nobody needs warm any more, so that they take no memory until their TTL ends."""

import time
from collections.abc import Collection, Iterator

from redis import Redis
from redis.exceptions import RedisError

from config.first_line import first_line
from service.cache.key import EVERY_NAME, release_of
from service.redis.blocking import open_blocking_store
from service.redis.errors import StoreUnavailable

# Names that one command looks at. Redis serves nobody else meanwhile: some 0.2 ms.
_STEP = 500
_REPLY_SECONDS = 1.0


class ForgetError(Exception):
    """The cache was away, refused, or took too long. What is left goes by its TTL, or when the cache is full."""


def forget(url: str, releases: Collection[str], seconds: float) -> int:
    """Removes the entries of `releases`, of every format, within `seconds`. Returns how many there were.

    Removing one that is still asked for costs a look-up, never a wrong answer.

    Raises:
        ForgetError: if not all could be removed.
    """
    deadline = time.monotonic() + seconds
    wanted = {release.encode() for release in releases}
    gone = 0
    away: Exception | None = None
    try:
        with open_blocking_store(url, _REPLY_SECONDS) as store:
            for server in store.servers:
                try:
                    for names in _names(server):
                        if time.monotonic() >= deadline:
                            raise ForgetError(f"it took longer than {seconds:g} s; {gone:,} answers are gone")
                        theirs = [name for name in names if release_of(name) in wanted]
                        gone += store.unlink(theirs) if theirs else 0
                except (RedisError, OSError) as error:
                    away = error  # other nodes of a cluster may be there
    except (RedisError, StoreUnavailable, OSError) as error:
        away = error
    if away is not None:
        raise ForgetError(f"the cache gave up {gone:,} answers, then: {first_line(away)}")
    return gone


def _names(server: Redis) -> Iterator[list[bytes]]:
    """Step by step, between which Redis serves others."""
    cursor = 0
    while True:
        cursor, names = server.scan(cursor, match=EVERY_NAME, count=_STEP)
        yield [name for name in names if isinstance(name, bytes)]
        if not cursor:
            return
