"""Removes entries from the shared cache: those of unneeded releases, or all of them on an operator's order.

The key store is unchanged, even on the same Redis.
"""

import math
import time
from collections.abc import Callable, Collection

from config.text import first_line
from service.cache.key import EVERY_NAME, is_trial, release_of
from service.redis.errors import StoreUnavailable
from service.redis.opening import opened

_REPLY_SECONDS = 1.0
# Names that one command visits. It blocks Redis meanwhile, for some 0.2 ms.
_STEP = 500


async def purge_shared(url: str) -> int:
    """Removes the entries of all releases. Returns how many there were. Entries stored meanwhile may stay.

    Raises:
        StoreUnavailable: if not all could be removed.
    """
    return await _remove(url, lambda name: not is_trial(name), math.inf)


async def remove_entries(url: str, releases: Collection[str], seconds: float) -> int:
    """Removes the entries of `releases`, of every format, within `seconds`. Returns how many there were.

    Removing one that is still requested costs a look-up, never a wrong answer. Remaining entries leave by their TTL, or
    when the cache is full.

    Raises:
        StoreUnavailable: if not all could be removed.
    """
    wanted = {release.encode() for release in releases}
    return await _remove(url, lambda name: release_of(name) in wanted, seconds)


async def _remove(url: str, is_wanted: Callable[[bytes], bool], seconds: float) -> int:
    deadline, removed = time.monotonic() + seconds, 0
    failed: StoreUnavailable | None = None
    async with opened("shared cache", url, _REPLY_SECONDS) as store:
        for server in store.servers:
            try:
                async for names in server.scan(EVERY_NAME, _STEP):
                    if time.monotonic() >= deadline:
                        raise StoreUnavailable(f"it took longer than {seconds:g} s; {removed:,} answers are removed")
                    wanted = [name for name in names if is_wanted(name)]
                    removed += await store.unlink(wanted) if wanted else 0
            except StoreUnavailable as error:
                failed = error  # other nodes of a cluster may reply
    if failed is not None:
        raise StoreUnavailable(f"the cache removed {removed:,} answers, then: {first_line(failed)}")
    return removed
