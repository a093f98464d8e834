"""Follows the audit trail while an instance runs: reports changes of keys, and notices a key store that lost some.

A failover can lose changes that no replica had. Keys that were seen revoked are then revoked again, if the instance's
user has the rights of a write token.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime

from service.base.whoami import INSTANCE
from service.keys import audit
from service.keys.errors import ForeignStoreError, KeyStoreError, NoSuchKeyError
from service.keys.lost_writes import MEND_LOSS
from service.keys.store import KeyStore
from service.operators.overview import EventKind
from service.redis.errors import StoreRefused, StoreUnavailable

log = logging.getLogger("forecast.stores")

_LOOK_SECONDS = 5.0
# An id that precedes all others in the audit trail.
_BEFORE_ALL = "0-0"
# Number of the newest revocations that are remembered: a failover loses those of a few seconds.
_MOST_REVOKED = 10_000
_BY = f"{INSTANCE} (seen revoked before the key store went back)"


class TrailWatch:
    """Part of one StoreChecks. `changed` is set after a change of a key; `problem` says that the store lost changes."""

    def __init__(self, store: KeyStore, happened: Callable[[EventKind, str], None]) -> None:
        self.changed = asyncio.Event()
        self.problem: str | None = None
        self._store = store
        self._happened = happened
        self._newest: str | None = None  # the id of the newest line that was read
        self._since: datetime | None = None
        self._revoked: dict[str, None] = {}  # ids of keys that were seen revoked, oldest first
        self._again: set[str] = set()  # ids of keys to revoke again if the store lost the revocation
        self._refused: set[str] = set()  # ids of keys that this instance may not revoke

    def revoke_again(self, key_ids: Iterable[str]) -> None:
        """Revokes keys that workers saw revoked and that the store shows as not revoked."""
        self._again.update(key_ids)

    async def look(self) -> float:
        """Reads the new lines, and revokes keys again; returns the seconds until the next call."""
        with suppress(StoreUnavailable, ForeignStoreError):
            await self._follow(decided=await self._was_decided())
        for key_id in list(self._again):
            await self._revoke(key_id)
        return _LOOK_SECONDS

    async def _was_decided(self) -> bool:
        """Returns whether an operator has accepted the store's losses since the last call."""
        control = await self._store.identity()
        before, self._since = self._since, self._since if control is None else control.since
        if before is None or before == self._since:
            return False
        self.problem = None
        self._again.update(self._revoked)  # lost revocations are never accepted
        return True

    async def _follow(self, *, decided: bool) -> None:
        if self._newest is None:
            self._newest = await audit.last_id(self._store.redis) or _BEFORE_ALL
        elif self._newest != _BEFORE_ALL and not await audit.has(self._store.redis, self._newest):
            if not decided:
                self._report_loss()
            last = await audit.last_id(self._store.redis) or _BEFORE_ALL
            self._newest = min(self._newest, last, key=audit.order_of)
        async for line in audit.oldest_first(self._store.redis, self._newest):
            self._newest = line.id
            if line.change is not None and line.change.what in (audit.PURGED, *audit.OF_RELEASES):
                continue  # each instance notices these by itself
            self.changed.set()
            if line.change is None:
                continue
            if line.change.what == "revoked" and line.change.key_id is not None:
                self._remember(line.change.key_id)
            self._happened("key", audit.describe_change(line.change))

    def _report_loss(self) -> None:
        self.problem = (
            "the key store went back: the newest change that was seen is missing from the audit trail, as after a "
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
                await self._store.acting_for(_BY).revoke(key_id)
                log.warning("key %s was revoked again: the key store had lost its revocation", key_id)
        except NoSuchKeyError:
            log.warning("key %s, which was seen revoked, is no longer in the key store", key_id)
        except StoreRefused as error:
            if key_id not in self._refused:
                log.error("key %s is no longer revoked: revoke it again: %s", key_id, error)
            self._refused.add(key_id)
        except (KeyStoreError, StoreUnavailable) as error:
            log.debug("key %s could not be revoked again; will retry: %s", key_id, error)
            return
        self._again.discard(key_id)
