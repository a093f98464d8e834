"""Removes the entries of releases that nobody needs warm any more, so that they take no memory until their TTL ends."""

import time
from collections.abc import Collection

from redis.exceptions import RedisError

from config.first_line import first_line
from service.cache.key import EVERY_NAME, release_of
from service.redis.errors import StoreUnavailable
from service.redis.sentinels import open_blocking

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
    cursor = gone = 0
    try:
        with open_blocking(url, _REPLY_SECONDS) as client:
            while time.monotonic() < deadline:
                cursor, names = client.scan(cursor, match=EVERY_NAME, count=_STEP)
                theirs = [name for name in names if release_of(name) in wanted]
                gone += client.unlink(*theirs) if theirs else 0
                if not cursor:
                    return gone
    except (RedisError, StoreUnavailable, OSError) as error:
        raise ForgetError(f"the cache gave up {gone:,} answers, then: {first_line(error)}") from None
    raise ForgetError(f"it took longer than {seconds:g} s; {gone:,} answers are gone")
