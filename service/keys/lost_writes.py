"""Changes that a key store lost, as in a failover: workers keep the newest revision that they have seen.

The newest record that a worker has seen of a key stays valid, and so does any revocation, until an operator decides
otherwise (an import, or adopting the store).
"""

import logging

import msgspec

from service.keys.record import ApiKey

log = logging.getLogger("forecast.keys")

# Most keys that are named in the log, and revoked again.
_MOST_KEYS = 10_000

MEND_LOSS = (
    "import the newest backup (`forecast keys import`), and repeat the changes since then; or accept the loss with "
    "`forecast keys adopt-store`"
)


class LostWrites:
    """Changes that a store lost, as noticed by one worker's KeyVerifier.

    `revoked`: ids of keys that the worker saw revoked, and that the store has as not revoked.
    """

    def __init__(self) -> None:
        self.revoked: set[str] = set()
        self._lost: set[str] = set()
        self._suspected: set[str] = set()

    @property
    def problem(self) -> str | None:
        if not self._lost:
            return None
        keys = "a key" if len(self._lost) == 1 else f"{len(self._lost):,} keys"
        return f"the key store went back: changes of {keys} that workers have seen are no longer in it; {MEND_LOSS}"

    def newest(self, seen: ApiKey, found: ApiKey, *, decided: bool) -> ApiKey:
        """Returns the valid record of a key last `seen` so, and now `found` so.

        `decided`: by an operator in between.
        """
        revived = seen.revoked_at is not None and found.revoked_at is None
        if not revived and (decided or found.revision >= seen.revision):
            self.settled(seen.key_id)
            return found
        self._note(seen.key_id, revived=revived)
        if found.revision > seen.revision:
            return msgspec.structs.replace(found, revoked_at=seen.revoked_at)
        return seen

    def vanished(self, seen: ApiKey) -> None:
        """Notes that the store lacks a key, although keys are never deleted."""
        self._note(seen.key_id, revived=False)
        self._note(seen.key_id, revived=False)

    def settled(self, key_id: str) -> None:
        """Notes that the store has the last seen record of the key."""
        if key_id in self._suspected:
            for ids in (self.revoked, self._lost, self._suspected):
                ids.discard(key_id)

    def decided(self) -> None:
        """Notes that an operator accepted the store's current content, except for revocations."""
        self._lost &= self.revoked
        self._suspected &= self.revoked

    def _note(self, key_id: str, *, revived: bool) -> None:
        """Notes one look-up. Two look-ups may finish out of order, so the next one decides."""
        if key_id not in self._suspected:
            self._suspected.add(key_id)
            return
        if len(self._lost) >= _MOST_KEYS or (key_id in self._lost and not revived):
            return
        if key_id not in self._lost:
            log.error("the key store went back: a change of key %s that was seen is no longer in it", key_id)
        self._lost.add(key_id)
        if revived:
            self.revoked.add(key_id)
