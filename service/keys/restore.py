"""Imports a backup into a key store: newer records stay, and keys revoked anywhere stay revoked.

A suspended key stays so unless it was resumed later.

Every step is idempotent, so an interrupted import is simply run again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from datetime import datetime

import msgspec
from redis.asyncio import Redis

from service.base.batched import batched
from service.keys import audit, backup, named
from service.keys.audit import AUDIT, LINE, Change, Edit, TrailLine
from service.keys.backup import BackupHead, KeyItem, LineItem, PartnerItem, PlanItem
from service.keys.edits import RawKey, edits_of, readable
from service.keys.errors import DamagedRecordError, KeyStoreError
from service.keys.record import (
    IDENTITY,
    ApiKey,
    DamagedKey,
    KeyState,
    MoreOfKey,
    Named,
)
from service.keys.store import KeyStore

# Records or lines; few enough that the server serves other clients in between.
_BATCH = 200
_TRIES = 10
# Sorts after every id.
_LAST = (1 << 64, 0)


class Replay:
    """Collects, for one import, the last state of every key that was changed, and every revocation.

    A record from a backup may be older than the trail that survived, and than the trail in the same file.
    """

    def __init__(self) -> None:
        self.revoked: dict[str, datetime] = {}
        self._states: dict[str, tuple[int, KeyState]] = {}

    def note(self, line: TrailLine) -> None:
        change = line.change
        if change is None or change.key_id is None or change.after is None:
            return
        if change.after.revoked_at is not None:
            self.revoked.setdefault(change.key_id, change.after.revoked_at)
        # issued and imported keys are in the records; keeping these too would need as much memory as the store
        if change.what not in ("issued", "imported"):
            revision, _ = self._states.get(change.key_id, (0, None))
            if change.revision > revision:
                self._states[change.key_id] = change.revision, change.after

    def bring_up_to_date(self, key: ApiKey) -> ApiKey:
        """Returns `key` with the changes since it was written. A revocation is never undone."""
        revision, state = self._states.get(key.key_id, (0, None))
        if state is not None and revision > key.revision:
            key = msgspec.structs.replace(
                key,
                expires_at=state.expires_at,
                # it is unknown whether a rotation or an operator changed the end
                unrotated=key.unrotated if state.expires_at == key.expires_at else None,
                terms=state.terms,
                revoked_at=key.revoked_at or state.revoked_at,
                revision=revision,
                more=_newer(state.more, key.more),
            )
        return _revoked(key, self.revoked.get(key.key_id))


def merged(existing: ApiKey | None, imported: ApiKey) -> ApiKey:
    """Returns the newer of two states of a key; revoked if either is, suspended if the newer second record says so."""
    if existing is None:
        return imported
    newer, older = (existing, imported) if existing.revision >= imported.revision else (imported, existing)
    newer = msgspec.structs.replace(newer, more=_newer(newer.more, older.more))
    suspended = newer.more.suspended
    if suspended is not None and (newer.expires_at is None or newer.expires_at > suspended.at):
        newer = msgspec.structs.replace(newer, expires_at=suspended.at, revision=newer.revision + 1)
    return _revoked(newer, older.revoked_at)


def _newer(one: MoreOfKey, other: MoreOfKey) -> MoreOfKey:
    """Returns the newer of two second records; of two as new, as after a failover, a suspended one."""
    return max(one, other, key=lambda more: (more.revision, more.suspended is not None))


def _revoked(key: ApiKey, revoked_at: datetime | None) -> ApiKey:
    if revoked_at is None or key.revoked_at is not None:
        return key
    return msgspec.structs.replace(key, revoked_at=revoked_at, revision=key.revision + 1)


class Restored(msgspec.Struct, kw_only=True):
    """The result of an import, or of a dry run; numbers of keys unless named otherwise."""

    made_at: datetime  # of the backup
    added: int = 0
    updated: int = 0
    kept: int = 0
    plans: int = 0  # added or updated
    partners: int = 0  # whose limits were
    revoked: int = 0  # by the trail, where the record lacks it
    lines: int = 0  # of the audit trail
    damaged_lines: int = 0
    made_ours: bool = False  # the store had no identity
    lost: dict[str, str] = {}  # partner by key id: named by a trail, not revoked, and without a record


class Restore:
    """One import, run once.

    `lines` opens the file again for each pass; the file must have been checked (backup.check). `before_ours` imports
    usage, which quotas need before workers trust the store.
    """

    def __init__(
        self,
        store: KeyStore,
        head: BackupHead,
        lines: Callable[[], Iterable[bytes]],
        *,
        dry_run: bool,
        before_ours: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._head = head
        self._lines = lines
        self._dry_run = dry_run
        self._before_ours = before_ours
        self._by = store.by
        self._replay = Replay()
        self._known: set[str] = set()
        self._settled: set[str] = set()
        self._named: dict[str, str] = {}
        self._top = (-1, -1)
        self._done = Restored(made_at=head.made_at)

    async def run(self) -> Restored:
        """Imports the backup.

        Raises:
            ForeignStoreError: if the store holds keys that were made with another pepper.
            StoreUnavailable: if the store does not reply; items imported by then stay.
        """
        _, identity = await self._store.raw_identity()
        if identity is not None and identity.pepper_fingerprint != self._store.fingerprint:
            self._store.check_identity(identity)
        await self._bring_back()
        if self._before_ours is not None:
            await self._before_ours()
        # last, so that workers answer "unknown" and not "invalid" until all keys are imported
        self._done.made_ours = identity is None
        if not self._dry_run:
            await self._make_ours()
            await self._confirm()
        return self._done

    async def _bring_back(self) -> None:
        async for line in audit.oldest_first(self._store.redis):
            self._note(line)
        for item in backup.read_backup(self._lines()):
            if isinstance(item, LineItem):
                self._replay.note(item.line)
                self._name(item.line)
        for batch in batched(self._missing_lines(), _BATCH):
            await self._restore_lines(batch)
        await self._restore_all_named()
        for keys in batched(self._keys(), _BATCH):
            await self._restore_keys({key.key_id: key for key in keys})
        for ids in batched(self._replay.revoked.keys() - self._settled, _BATCH):
            await self._revoke(ids)
        for ids in batched(self._named.keys() - self._replay.revoked.keys(), _BATCH):
            await self._look_for(ids)

    def _note(self, line: TrailLine) -> None:
        self._replay.note(line)
        self._name(line)
        self._known.add(line.origin)
        self._top = audit.order_of(line.id)
        self._done.damaged_lines += line.change is None

    def _name(self, line: TrailLine) -> None:
        if line.change is not None and line.change.key_id is not None:
            self._named[line.change.key_id] = line.change.partner or ""

    async def _look_for(self, key_ids: list[str]) -> None:
        for key_id, raw in zip(key_ids, await self._store.raw(key_ids), strict=True):
            if raw.record is None:
                self._done.lost[key_id] = self._named[key_id]

    def _missing_lines(self) -> Iterator[tuple[TrailLine, Change]]:
        for item in backup.read_backup(self._lines()):
            if isinstance(item, LineItem) and item.line.origin not in self._known:
                if item.line.change is None:
                    self._done.damaged_lines += 1
                else:
                    yield item.line, item.line.change

    async def _restore_lines(self, lines: list[tuple[TrailLine, Change]]) -> None:
        """Adds lines under their own ids if these are newer than all others. Adds other lines at the end, with their
        ids inside.
        """
        self._done.lines += len(lines)
        if self._dry_run:
            return
        entries: list[tuple[str, bytes]] = []
        for line, change in lines:
            line_id, order = line.id, audit.order_of(line.id)
            if order <= self._top or backup.is_ahead(line, self._head):
                change, line_id, order = msgspec.structs.replace(change, restored=line.origin), "*", _LAST
            self._top = order
            entries.append((line_id, msgspec.json.encode(change)))

        async def add(client: Redis) -> None:
            async with client.pipeline(transaction=False) as pipeline:
                for line_id, encoded in entries:
                    pipeline.xadd(AUDIT, {LINE: encoded}, id=line_id)
                await pipeline.execute()

        await self._store.redis.call(add)

    async def _restore_all_named(self) -> None:
        for item in backup.read_backup(self._lines()):
            if isinstance(item, PlanItem):
                self._done.plans += await self._restore_named(item.plan)
            if isinstance(item, PartnerItem):
                self._done.partners += await self._restore_named(item.partner)

    async def _restore_named(self, record: Named) -> bool:
        """Returns whether the file's record is the newer one."""
        for _ in range(_TRIES):
            try:
                raw, existing = await named.read(self._store, type(record), record.name)
            except DamagedRecordError:
                (raw,), existing = await self._store.raw_records([type(record).record_name(record.name)]), None
            if existing is not None and existing.revision >= record.revision:
                return False
            if await self._apply([named.edit_of(raw, existing, record, "imported", self._by)]):
                return True
        raise KeyStoreError(f"{record.name} is being changed from elsewhere all the time; import again")

    def _keys(self) -> Iterator[ApiKey]:
        for item in backup.read_backup(self._lines()):
            if isinstance(item, KeyItem):
                self._named.pop(item.key.key_id, None)
                yield ApiKey.of(item.key, item.more)

    async def _restore_keys(self, keys: dict[str, ApiKey]) -> None:
        for _ in range(_TRIES):
            counted = msgspec.structs.replace(self._done)
            edits = [
                edit
                async for raw, existing, key_id in self._existing(list(keys))
                for edit in self._restored(raw, existing, keys[key_id], counted)
            ]
            if await self._apply(edits):
                self._done = counted
                self._settled.update(keys.keys() & self._replay.revoked.keys())
                if not self._dry_run:
                    await named.note_keys(self._store, keys.values())
                return
        raise KeyStoreError("keys are being changed from elsewhere all the time; import again")

    def _restored(self, raw: RawKey, existing: ApiKey | None, key: ApiKey, counted: Restored) -> list[Edit]:
        target = merged(existing, self._replay.bring_up_to_date(key))
        if target == existing:
            counted.kept += 1
            return []
        counted.added += raw.record is None
        counted.updated += raw.record is not None
        was = existing or key
        counted.revoked += target.revoked_at is not None and was.revoked_at is None
        return edits_of(raw, existing, target, "imported", by=self._by)

    async def _revoke(self, key_ids: list[str]) -> None:
        """Revokes keys that the file lacks, but whose revocation is in its trail."""
        for _ in range(_TRIES):
            edits = [
                edit
                async for raw, existing, _ in self._existing(key_ids)
                if existing is not None and existing.revoked_at is None
                for edit in edits_of(raw, existing, self._replay.bring_up_to_date(existing), "imported", by=self._by)
            ]
            if await self._apply(edits):
                self._done.revoked += sum(edit.change is not None for edit in edits)
                return
        raise KeyStoreError("keys are being changed from elsewhere all the time; import again")

    async def _existing(self, key_ids: list[str]) -> AsyncIterator[tuple[RawKey, ApiKey | None, str]]:
        """Yields for each key: its bytes, its content (None if there is none, or it is damaged), its id."""
        for key_id, raw in zip(key_ids, await self._store.raw(key_ids), strict=True):
            record = readable(raw, key_id)
            yield raw, None if isinstance(record, DamagedKey) else record, key_id

    async def _apply(self, edits: list[Edit]) -> bool:
        return self._dry_run or not edits or await audit.apply(self._store.redis, edits, quiet=True)

    async def _confirm(self) -> None:
        """Returns when the identity, and with it everything written before it on this server, is durable."""
        raw, _ = await self._store.raw_identity()
        if raw is not None:
            await audit.confirm(self._store.redis, {IDENTITY: raw}, self._store.replicas)

    async def _make_ours(self) -> None:
        """Makes the store the successor of the file's, so that workers that knew another one trust it."""
        (raw, identity), head = await self._store.raw_identity(), self._head.identity
        if identity is None or identity.created_at != head.created_at or not self._store.known.trusts(identity):
            decided = self._store.known.decision(identity, head)
            identity = msgspec.structs.replace(head, accepted_at=decided)
            change = Change(what="imported", by=self._by)
            await self._apply([Edit(IDENTITY, raw, msgspec.json.encode(identity), change)])
        self._store.check_identity(await self._store.identity())
