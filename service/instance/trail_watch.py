"""Follows the audit trail while an instance runs: tells of changes, and notices a key store that lost some.

A failover can lose what the old primary had confirmed alone. What was seen revoked is revoked again, where the
instance's user has the rights that a write token needs.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime

from service.keys import audit
from service.keys.errors import ForeignStoreError, KeyStoreError, NoSuchKeyError
from service.keys.lost_writes import MEND_LOSS
from service.keys.store import KeyStore
from service.operators.overview import EventKind
from service.redis.errors import StoreRefused, StoreUnavailable

log = logging.getLogger("forecast.stores")

_LOOK_SECONDS = 5.0
# An id of the audit trail that precedes all others.
_BEFORE_ALL = "0-0"
# Revocations that are remembered, the newest: a failover loses those of seconds.
_MOST_REVOKED = 10_000
_BY = "forecast (seen revoked before the key store went back)"


class TrailWatch:
    """Part of one StoreChecks. `changed` is set when a key was changed. `problem`: that the store lost changes."""

    def __init__(self, store: KeyStore, happened: Callable[[EventKind, str], None]) -> None:
        self.changed = asyncio.Event()
        self.problem: str | None = None
        self._store = store
        self._happened = happened
        self._told: str | None = None  # the newest line that was told
        self._since: datetime | None = None
        self._revoked: dict[str, None] = {}  # ids of keys, as they were seen revoked
        self._again: set[str] = set()  # to be looked at, and revoked if they are not
        self._refused: set[str] = set()  # that could not be

    def revoke_again(self, key_ids: Iterable[str]) -> None:
        """Workers saw these keys revoked, and the store has them as not revoked."""
        self._again.update(key_ids)

    async def look(self) -> float:
        """Returns the seconds until the next look."""
        with suppress(StoreUnavailable, ForeignStoreError):
            await self._follow(decided=await self._was_decided())
        for key_id in list(self._again):
            await self._revoke(key_id)
        return _LOOK_SECONDS

    async def _was_decided(self) -> bool:
        """Whether an operator has accepted the store as it is since the last look: what it lost, it may have lost."""
        control = await self._store.identity()
        before, self._since = self._since, self._since if control is None else control.since
        if before is None or before == self._since:
            return False
        self.problem = None
        self._again.update(self._revoked)  # but for revocations
        return True

    async def _follow(self, *, decided: bool) -> None:
        if self._told is None:
            self._told = await audit.last_id(self._store.redis) or _BEFORE_ALL
        elif self._told != _BEFORE_ALL and not await audit.has(self._store.redis, self._told):
            if not decided:
                self._tell_loss()
            newest = await audit.last_id(self._store.redis) or _BEFORE_ALL
            self._told = min(self._told, newest, key=audit.order_of)
        async for line in audit.oldest_first(self._store.redis, self._told):
            self._told = line.id
            self.changed.set()
            if line.change is None or line.change.what == audit.PURGED:  # which caches tell themselves
                continue
            if line.change.what == "revoked" and line.change.key_id is not None:
                self._remember(line.change.key_id)
            self._happened("key", audit.said(line.change))

    def _tell_loss(self) -> None:
        self.problem = (
            "the key store went back: the audit trail no longer has the newest change that was seen, as after a "
            f"failover; {MEND_LOSS}"
        )
        log.error("%s", self.problem)
        self._happened("store", "the key store lost changes that were seen")
        self._again.update(self._revoked)

    def _remember(self, key_id: str) -> None:
        self._revoked[key_id] = None
        if len(self._revoked) > _MOST_REVOKED:
            del self._revoked[next(iter(self._revoked))]

    async def _revoke(self, key_id: str) -> None:
        try:
            _, before = await self._store.read(key_id)
            if before.revoked_at is None:
                await self._store.revoke(key_id, by=_BY)
                log.warning("key %s was revoked again: the key store had lost its revocation", key_id)
        except NoSuchKeyError:
            log.warning("key %s, which was seen revoked, is no longer in the key store", key_id)
        except StoreRefused as error:
            if key_id not in self._refused:
                log.error("key %s was seen revoked, and is not any more: revoke it again: %s", key_id, error)
            self._refused.add(key_id)
        except (KeyStoreError, StoreUnavailable) as error:
            log.debug("key %s is not revoked again yet: %s", key_id, error)
            return
        self._again.discard(key_id)
