"""What audit trails know that a record does not. Pure.

A record from a backup may be older than the trail that survived, and than the trail in the same file.
"""

from datetime import datetime

import msgspec

from service.keys.audit import Line
from service.keys.record import ApiKey, State


class Replay:
    """Collects, for one import, the last state of every key that was changed, and every revocation."""

    def __init__(self) -> None:
        self.revoked: dict[str, datetime] = {}
        self._states: dict[str, tuple[int, State]] = {}

    def note(self, line: Line) -> None:
        change = line.change
        if change is None or change.key_id is None or change.after is None:
            return
        if change.after.revoked_at is not None:
            self.revoked.setdefault(change.key_id, change.after.revoked_at)
        # issued and imported keys are in records as they were; keeping these too would take the whole store
        if change.what not in ("issued", "imported"):
            revision, _ = self._states.get(change.key_id, (0, None))
            if change.revision > revision:
                self._states[change.key_id] = change.revision, change.after

    def brought_up(self, key: ApiKey) -> ApiKey:
        """`key` with the changes since it was written. A revocation is never undone."""
        revision, state = self._states.get(key.key_id, (0, None))
        if state is not None and revision > key.revision:
            key = msgspec.structs.replace(
                key,
                expires_at=state.expires_at,
                # it is no longer known whether a rotation or an operator changed the end
                unrotated=key.unrotated if state.expires_at == key.expires_at else None,
                terms=state.terms,
                revoked_at=key.revoked_at or state.revoked_at,
                revision=revision,
            )
        return _revoked(key, self.revoked.get(key.key_id))


def merged(existing: ApiKey | None, imported: ApiKey) -> ApiKey:
    """The newer of two records of a key; revoked if either is."""
    if existing is None:
        return imported
    if existing.revision >= imported.revision:
        return _revoked(existing, imported.revoked_at)
    return _revoked(imported, existing.revoked_at)


def _revoked(key: ApiKey, revoked_at: datetime | None) -> ApiKey:
    if revoked_at is None or key.revoked_at is not None:
        return key
    return msgspec.structs.replace(key, revoked_at=revoked_at, revision=key.revision + 1)
