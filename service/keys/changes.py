"""Changes by an operator to a working key: its end, terms, secret, suspension; and adopting the store as it is."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from service.base.terms import Terms
from service.keys import audit
from service.keys.audit import Change, Edit
from service.keys.draft import KeyDraft
from service.keys.edits import RawKey, edits_of
from service.keys.errors import KeyStoreError
from service.keys.named import guard_of_plan, note_keys, refuse_above_partner
from service.keys.record import IDENTITY, ApiKey, KeyExpiry, MoreOfKey, StoreIdentity, Suspension
from service.keys.store import KeyStore, now


async def extend(store: KeyStore, key_id: str, expires_at: datetime | None) -> tuple[ApiKey, ApiKey]:
    """Returns the key before and after: it ends at `expires_at`, or never. An expired key works again.

    Raises:
        KeyStoreError: if there is no such key, it is suspended, can never work again, or would end before it begins.
        StoreUnavailable: if the store does not answer.
    """
    return await _change(store, key_id, "extended", lambda key: _with_end(key, expires_at))


async def _change(
    store: KeyStore, key_id: str, what: str, edit: Callable[[ApiKey], ApiKey], guards: Sequence[Edit] = ()
) -> tuple[ApiKey, ApiKey]:
    """Changes a key that can still work, as `KeyStore.change` does."""
    identity = await _ours(store)

    def edit_living(key: ApiKey) -> ApiKey:
        _refuse_dead(key, identity)
        return edit(key)

    return await store.change(key_id, what, edit_living, guards)


async def issue(
    store: KeyStore,
    partner: str,
    label: str,
    expires_at: datetime | None,
    terms: Terms,
    *,
    test: bool,
    more: MoreOfKey,
    draft: KeyDraft | None = None,
) -> tuple[str, ApiKey]:
    """`KeyStore.issue`. A key whose `draft` was issued before is returned as it is.

    Raises NoSuchPlanError, and KeyStoreError if the terms are above the partner's limits.
    """
    if draft is not None and (issued := await store.issued(draft.key_id)) is not None:
        return draft.parts(store.pepper)[0], issued
    guards = await guards_of_issue(store, partner, terms, more.plan)
    presented, key = await store.issue(
        partner, label, expires_at, terms, test=test, more=more, guards=guards, draft=draft
    )
    await note_keys(store, [key])
    return presented, key


async def guards_of_issue(store: KeyStore, partner: str, terms: Terms, plan: str | None) -> list[Edit]:
    """Returns the edits that guard a new key. Raises as `issue`."""
    await refuse_above_partner(store, partner, terms)
    return [] if plan is None else [await guard_of_plan(store, plan)]


async def change_terms(
    store: KeyStore,
    key_id: str,
    edit: Callable[[Terms], Terms],
    plan: str | msgspec.UnsetType | None = msgspec.UNSET,
    expires_at: datetime | msgspec.UnsetType | None = msgspec.UNSET,
) -> tuple[ApiKey, ApiKey]:
    """Returns the key before and after; `plan` and `expires_at` are the new ones, None for none, if they change.

    Raises as `extend`, and what `edit` raises.
    """
    _, before = await store.read(key_id)
    await refuse_above_partner(store, before.partner, edit(before.terms))
    guards = [await guard_of_plan(store, plan)] if isinstance(plan, str) else []

    def edit_key(key: ApiKey) -> ApiKey:
        more = key.more if plan is msgspec.UNSET else msgspec.structs.replace(key.more, plan=plan)
        if expires_at is not msgspec.UNSET:
            key = _with_end(key, expires_at)
        return msgspec.structs.replace(key, terms=edit(key.terms), more=more)

    return await _change(store, key_id, "changed", edit_key, guards)


async def suspend(store: KeyStore, key_id: str, reason: str) -> ApiKey:
    """Returns the suspended key. Suspending twice keeps the first time and reason. Raises as `extend`."""

    def edit(key: ApiKey) -> ApiKey:
        if key.more.suspended is not None:
            return key
        suspension = Suspension(
            at=now(), by=store.by, reason=reason, ends=KeyExpiry(key.expires_at), unrotated=key.unrotated
        )
        more = msgspec.structs.replace(key.more, suspended=suspension)
        # a key that has ended keeps its end
        ends = suspension.at if key.expires_at is None else min(key.expires_at, suspension.at)
        return msgspec.structs.replace(key, expires_at=ends, unrotated=None, more=more)

    return (await _change(store, key_id, "suspended", edit))[1]


async def resume(store: KeyStore, key_id: str) -> ApiKey:
    """Returns the resumed key: it ends when it would have without the suspension. Raises as `extend`."""

    def edit(key: ApiKey) -> ApiKey:
        was = key.more.suspended
        if was is None:
            return key
        more = msgspec.structs.replace(key.more, suspended=None)
        return msgspec.structs.replace(key, expires_at=was.ends.expires_at, unrotated=was.unrotated, more=more)

    return (await _change(store, key_id, "resumed", edit))[1]


async def rotate(
    store: KeyStore,
    key_id: str,
    overlap: timedelta,
    expires_at: datetime | None = None,
    draft: KeyDraft | None = None,
) -> tuple[str, ApiKey, ApiKey]:
    """Returns a new key with the same partner, label, plan and terms, as its owner gets it; and both keys as stored.

    The old key ends after `overlap`, or earlier if it would have anyway. The new one ends at `expires_at`, by default
    when the old one would have ended without any rotation. With a `draft` that was issued before, both are returned as
    they are.

    Raises:
        KeyStoreError: if there is no such key, it does not work, or has a successor that is not gone; or the new
            one would end before it begins.
        StoreUnavailable: if the store does not answer.
    """
    identity = await _ours(store)
    raw, old = await store.read(key_id)
    if draft is not None and (issued := await store.issued(draft.key_id)) is not None:
        return draft.parts(store.pepper)[0], issued, old
    store.check_revision(old.revision)
    _refuse_dead(old, identity)
    _refuse_suspended(old)
    end = old.unrotated or KeyExpiry(old.expires_at)
    if end.expires_at is not None and end.expires_at <= now():
        raise KeyStoreError(f"key {key_id} has expired: extend it first, or issue a new one")
    _refuse_end(old, expires_at)
    await _refuse_second(store, old)
    more = MoreOfKey(plan=old.more.plan, not_before=old.more.not_before)
    guards = [] if more.plan is None else [await guard_of_plan(store, more.plan)]
    presented, new = store.new_key(
        old.partner, old.label, expires_at or end.expires_at, old.terms, test=old.test, more=more, draft=draft
    )
    new = msgspec.structs.replace(new, rotated_from=key_id)
    ends = now() + overlap
    ends = ends if old.expires_at is None else min(ends, old.expires_at)
    ended = msgspec.structs.replace(
        old, expires_at=ends, unrotated=end, rotated_to=new.key_id, revision=old.revision + 1
    )
    edits = [
        *edits_of(raw, old, ended, "rotated", new.key_id, by=store.by),
        *edits_of(RawKey(), None, new, "issued", key_id, by=store.by),
        *guards,
    ]
    # without its successor the old key must not end unnoticed
    await store.hand_in(edits, new.key_id, f"; key {key_id} then ends {ends:%Y-%m-%d %H:%M} UTC: rotate it again")
    await note_keys(store, [new])
    return presented, new, ended


async def _ours(store: KeyStore) -> StoreIdentity | None:
    """Returns the identity. Raises ForeignStoreError if this is not the store that our keys are in."""
    identity = await store.identity()
    store.check_identity(identity)
    return identity


def _refuse_dead(key: ApiKey, identity: StoreIdentity | None) -> None:
    if key.revoked_at is not None:
        raise KeyStoreError(f"key {key.key_id} is revoked, and stays so: issue a new one")
    if identity is not None and identity.voids(key):
        raise KeyStoreError(f"key {key.key_id} was made with another pepper and is void: issue a new one")


def _refuse_suspended(key: ApiKey) -> None:
    if key.more.suspended is not None:
        raise KeyStoreError(f"key {key.key_id} is suspended: resume it first (`forecast keys resume`)")


def _with_end(key: ApiKey, expires_at: datetime | None) -> ApiKey:
    """Returns the key with another end. Raises KeyStoreError if it is suspended, or would end before it begins."""
    _refuse_suspended(key)
    _refuse_end(key, expires_at)
    return msgspec.structs.replace(key, expires_at=expires_at, unrotated=None)


def _refuse_end(key: ApiKey, expires_at: datetime | None) -> None:
    begins = key.more.not_before
    if expires_at is not None and begins is not None and expires_at <= begins:
        raise KeyStoreError(f"key {key.key_id} begins {begins:%Y-%m-%d %H:%M} UTC: it cannot end before that")


async def _refuse_second(store: KeyStore, old: ApiKey) -> None:
    """Raises if the key has a successor, also one that does not work now: a script that runs twice must neither lose
    keys nor rotate a successor.
    """
    passed = {old.key_id}
    next_id = old.rotated_to
    while next_id is not None and next_id not in passed:
        successor = (await store.find(next_id)).key
        if successor is not None and successor.status() not in ("expired", "revoked"):
            raise KeyStoreError(
                f"key {old.key_id} was rotated to {successor.key_id} already: rotate that one, or revoke it first"
            )
        passed.add(next_id)
        next_id = successor.rotated_to if successor is not None else None


async def adopt(store: KeyStore) -> None:
    """Makes this store ours for every worker, after a loss or a deliberate change of the pepper.

    Workers drop what they knew before; keys of another pepper become void.

    Raises:
        KeyStoreError: if another operator adopts it at the same time.
        StoreUnavailable: if the store does not answer.
    """
    raw, identity = await store.raw_identity()
    decided = store.known.decision(identity)
    if identity is None or identity.pepper_fingerprint != store.fingerprint:
        identity = msgspec.structs.replace(store.new_identity(), adopted_at=now())
    adopted = msgspec.structs.replace(identity, accepted_at=decided)
    edit = Edit(IDENTITY, raw, msgspec.json.encode(adopted), Change(what="adopted", by=store.by))
    if not await audit.apply(store.redis, [edit], replicas=store.replicas):
        raise KeyStoreError("another operator has just adopted the key store; check it again")
    store.known.keep(adopted)
