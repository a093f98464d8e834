"""Records that many keys share, under a name: plans, and the limits of partners."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar
from urllib.parse import quote

import msgspec

from service.base.terms import PARTNER_USAGE, Terms
from service.keys import audit
from service.keys.audit import Change, Edit
from service.keys.errors import (
    BusyRecordError,
    DamagedRecordError,
    KeyStoreError,
    NoSuchPartnerError,
    NoSuchPlanError,
)
from service.keys.reader import every_key, names_of
from service.keys.record import ApiKey, DamagedKey, KeyState, Named, Partner, Plan, decode_record
from service.keys.store import KeyStore
from service.redis.errors import StoreUnavailable

log = logging.getLogger("forecast.keys")

N = TypeVar("N", bound=Named)

_TRIES = 10


async def read(store: KeyStore, kind: type[N], name: str) -> tuple[bytes | None, N | None]:
    """Returns the record as bytes and its content; None if there is none. Raises StoreUnavailable."""
    at = kind.record_name(name)
    (raw,) = await store.raw_records([at])
    return raw, decode_record(raw, kind, at)


async def every(store: KeyStore, kind: type[N]) -> AsyncIterator[N | DamagedKey]:
    """Yields every record of this kind once, in no order, removed ones too. Raises StoreUnavailable."""
    async for names in names_of(store, f"{kind.PREFIX}*"):
        for name, raw in zip(names, await store.raw_records(names), strict=True):
            try:
                record = decode_record(raw, kind, name)
            except DamagedRecordError as error:
                yield DamagedKey(name, str(error))
                continue
            yield DamagedKey(name, "it is no record") if record is None else record


def edit_of(raw: bytes | None, before: N | None, after: N, what: str, by: str) -> Edit:
    """Returns the edit of one record, with its line: `by` made it."""
    change = Change(
        what=what,
        by=by,
        plan=after.name if isinstance(after, Plan) else None,
        partner=after.name if isinstance(after, Partner) else None,
        before=None if before is None else KeyState(terms=before.terms),
        after=KeyState(terms=after.terms),
        revision=after.revision,
    )
    return Edit(type(after).record_name(after.name), raw, msgspec.json.encode(after), change)


async def change(
    store: KeyStore, kind: type[N], name: str, what: str, edit: Callable[[N | None], N]
) -> tuple[N | None, N]:
    """Changes a record by `edit`, with a line in the trail if it differs; returns it before and after, durable.

    Raises:
        KeyStoreError: if other clients keep changing it; and the errors of `edit`.
        StoreUnavailable: if the store does not answer.
    """
    for _ in range(_TRIES):
        raw, before = await read(store, kind, name)
        store.check_revision(0 if before is None or before.removed else before.revision)
        after = edit(before)
        if after == before and raw is not None:  # an earlier try may have made it, unconfirmed
            await audit.confirm(store.redis, {kind.record_name(name): raw}, store.replicas)
            return before, after
        after = msgspec.structs.replace(after, revision=1 if before is None else before.revision + 1)
        if await audit.apply(store.redis, [edit_of(raw, before, after, what, store.by)], replicas=store.replicas):
            return before, after
    raise BusyRecordError(f"{name} is being changed from elsewhere all the time; try again")


async def set_plan(store: KeyStore, name: str, terms: Terms) -> tuple[Plan | None, Plan]:
    """Returns the plan before and after. Raises as `change`, and ForeignStoreError."""
    await store.ensure_ours()

    def edit(plan: Plan | None) -> Plan:
        return Plan(name=name, terms=terms, revision=0 if plan is None else plan.revision)

    return await change(store, Plan, name, "plan-set", edit)


async def plan_of(store: KeyStore, name: str) -> tuple[bytes, Plan]:
    """Returns the plan, as bytes too. Raises NoSuchPlanError, StoreUnavailable."""
    raw, plan = await read(store, Plan, name)
    if raw is None or plan is None or plan.removed:
        raise NoSuchPlanError(f"no plan {name}; `forecast plans list` shows those there are")
    return raw, plan


async def guard_of_plan(store: KeyStore, name: str) -> Edit:
    """Returns an edit that changes nothing, and fails if the plan is changed meanwhile. Raises as `plan_of`."""
    raw, _ = await plan_of(store, name)
    return Edit(Plan.record_name(name), raw, raw, None)


async def remove_plan(store: KeyStore, name: str) -> Plan:
    """Returns the removed plan. Raises KeyStoreError if there is none or a key uses it, StoreUnavailable."""
    await store.ensure_ours()
    _, before = await plan_of(store, name)
    await _refuse_used(store, name)

    def remove(plan: Plan | None) -> Plan:
        return msgspec.structs.replace(plan or before, removed=True)

    _, removed = await change(store, Plan, name, "plan-removed", remove)
    try:
        await _refuse_used(store, name)  # a key may have got it meanwhile; from now on, none can
    except KeyStoreError:
        await set_plan(store.acting_for(store.by), name, removed.terms)  # whatever revision was expected
        raise
    return removed


async def _refuse_used(store: KeyStore, name: str) -> None:
    users = [
        key.key_id
        async for key in every_key(store)
        if not isinstance(key, DamagedKey) and key.more.plan == name and key.revoked_at is None
    ]
    if users:
        raise KeyStoreError(
            f"{len(users):,} key{'s use' if len(users) > 1 else ' uses'} plan {name}: change or revoke them first "
            f"(`forecast keys list --plan {name}`)"
        )


async def set_partner(store: KeyStore, name: str, terms: Terms, contact: str) -> tuple[Partner | None, Partner]:
    """Returns the limits before and after. Raises as `change`, and KeyStoreError if a key has a higher one."""
    await store.ensure_ours()
    keys = [key async for key in every_key(store) if not isinstance(key, DamagedKey) and key.partner == name]
    for key in keys:
        if key.revoked_at is None:
            _refuse_above(terms, key.terms, f"key {key.key_id}", name)
    await note_keys(store, keys)

    def edit(partner: Partner | None) -> Partner:
        return Partner(name=name, terms=terms, contact=contact, revision=0 if partner is None else partner.revision)

    return await change(store, Partner, name, "partner-set", edit)


async def partner_of(store: KeyStore, name: str) -> Partner:
    """Returns the limits of a partner. Raises NoSuchPartnerError, StoreUnavailable."""
    _, partner = await read(store, Partner, name)
    if partner is None:
        raise NoSuchPartnerError(f"no limits of partner {name}; `forecast partners list` shows those there are")
    return partner


async def refuse_above_partner(store: KeyStore, partner: str, terms: Terms) -> None:
    """Raises KeyStoreError if terms of a key are above the limits of its partner, or need a record of it that does not
    exist; StoreUnavailable.
    """
    _, shared = await read(store, Partner, partner)
    if shared is not None:
        _refuse_above(shared.terms, terms, "the key", partner)
    elif PARTNER_USAGE in (terms.areas or ()):
        raise KeyStoreError(f"{PARTNER_USAGE} needs a partner: run `forecast partners set {partner}` first")


def list_of_keys(partner: str) -> str:
    """Returns the name of the hash whose fields are the ids of the partner's keys; it is read with the usage."""
    return f"u:keys-of:{quote(partner, safe='')}"


async def note_keys(store: KeyStore, keys: Iterable[ApiKey]) -> None:
    """Adds keys to the lists that `partner-usage` reads. Never raises: `set_partner` adds those that are missing."""
    lists: dict[str, dict[str, str]] = {}
    for key in keys:
        lists.setdefault(list_of_keys(key.partner), {})[key.key_id] = ""
    for name, fields in lists.items():
        try:
            await store.redis.call(lambda client, name=name, fields=fields: client.hset(name, mapping=fields))  # type: ignore[misc]
        except StoreUnavailable as error:
            log.warning("%s lacks %d keys, until `forecast partners set` runs again: %s", name, len(fields), error)


def _refuse_above(shared: Terms, own: Terms, key: str, partner: str) -> None:
    """Plans are not checked: many partners have them. The lower limit applies in any case."""
    rates, quotas = (own.rate, shared.rate), (own.quota, shared.quota)
    if rates[0] and rates[1] and rates[0].per_second > rates[1].per_second:
        raise KeyStoreError(f"{key} has a rate of {rates[0]}, above the {rates[1]} of all keys of {partner}: lower it")
    if quotas[0] and quotas[1] and quotas[0].period == quotas[1].period and quotas[0].requests > quotas[1].requests:
        raise KeyStoreError(
            f"{key} has a quota of {quotas[0]}, above the {quotas[1]} of all keys of {partner}: lower it"
        )
