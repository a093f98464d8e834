"""Checks that the key store is the one with our keys. Replies of any other store are not trusted."""

import logging
from collections.abc import Callable
from datetime import datetime

from service.keys.errors import DamagedRecordError, ForeignStoreError
from service.keys.reader import Found, FoundKey
from service.keys.record import ApiKey, StoreIdentity
from service.keys.store import KeyStore
from service.redis.errors import StoreRefused, StoreUnavailable

log = logging.getLogger("forecast.keys")

# Most damaged keys that are logged.
_MOST_DAMAGED = 1_000


class StoreWatch:
    """The state of the key store, as seen by one KeyVerifier, which owns it.

    `problem`: why no key can be judged although the store replies; None while keys can be. `decided` is called when an
    operator has accepted the store as it is.
    """

    def __init__(self, store: KeyStore, decided: Callable[[], None]) -> None:
        self.problem: str | None = None
        self.is_ours = False
        self._store = store
        self._decided = decided
        self._since: datetime | None = None  # when the store became ours, by its identity
        self._damaged: set[str] = set()

    async def look(self) -> None:
        """Looks at the store, so that a loss is reported before a partner meets it."""
        try:
            self._check_identity(await self._store.identity())
        except ForeignStoreError as error:
            self._alarm(str(error))
        except StoreRefused as error:  # it is reachable, but no key can be judged
            self._alarm(f"{error}; no key can be judged until it may be read")
        except StoreUnavailable as error:
            log.debug("the key store was not checked: %s", error)

    def trusted_record(self, key_id: str, found: Found) -> ApiKey | StoreUnavailable | None:
        """Returns the record that was found, or why the key's state is unknown."""
        try:
            if isinstance(found, FoundKey):
                self._check_identity(found.identity)
            elif isinstance(found, ForeignStoreError):
                raise found
        except ForeignStoreError as error:
            self._alarm(str(error))
            return StoreUnavailable("key store: not the one that holds our keys")
        if isinstance(found, DamagedRecordError):
            if key_id not in self._damaged and len(self._damaged) < _MOST_DAMAGED:
                log.error("key %s cannot be judged: %s; `forecast keys import` restores it", key_id, found)
                self._damaged.add(key_id)
            return found
        if isinstance(found, StoreUnavailable):
            return found
        self._damaged.discard(key_id)
        return found.key

    def _check_identity(self, identity: StoreIdentity | None) -> None:
        """Raises ForeignStoreError if the store with this identity is not ours."""
        self._store.check_identity(identity)
        if identity is not None and identity.since != self._since:
            if self._since is not None:
                self._decided()
            self._since = identity.since
        if self.problem is not None:
            log.info("the key store is the one that holds our keys again")
        self.problem, self.is_ours = None, True

    def _alarm(self, problem: str) -> None:
        if self.problem != problem:
            log.error("%s", problem)
        self.problem, self.is_ours = problem, False
