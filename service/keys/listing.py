"""Listings of keys, plans and partners, as commands and operators' endpoints show them."""

import heapq
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from service.base.terms import PARTNER_USAGE, Terms
from service.keys import named
from service.keys.errors import NoSuchPartnerError
from service.keys.reader import every_key
from service.keys.record import DamagedKey, KeyView, Named, Partner, Plan, ShownStatus
from service.keys.store import KeyStore

# The place of a key in a listing, newest first.
Place = tuple[datetime, str]


class KeyFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which keys a listing shows; None means no filter."""

    partner: str | None = None
    plan: str | None = None
    status: ShownStatus | None = None
    area: str | None = None  # that the key's own terms open
    label: str | None = None  # part of a label, case-insensitive
    expires_within: timedelta | None = None
    unused: timedelta | None = None

    def matches(self, view: KeyView) -> bool:
        areas = view.terms.areas
        return (
            (self.partner is None or view.partner == self.partner)
            and (self.plan is None or view.plan == self.plan)
            and (self.status is None or view.status == self.status)
            and (self.area is None or self.area in (areas or ()) or (areas is None and self.area != PARTNER_USAGE))
            and (self.label is None or self.label.casefold() in view.label.casefold())
            and (self.expires_within is None or self._ends_soon(view, self.expires_within))
            and (self.unused is None or self._is_unused(view, self.unused))
        )

    def _is_unused(self, view: KeyView, within: timedelta) -> bool:
        return not view.test and datetime.now(UTC) - (view.last_used or view.created_at) >= within

    def _ends_soon(self, view: KeyView, within: timedelta) -> bool:
        ends = view.expires_at
        return view.status == "active" and ends is not None and ends - datetime.now(UTC) <= within


class Newest:
    """The newest keys of one listing, at most `limit`, that come after the place `after`; and the number of all."""

    def __init__(self, limit: int, after: Place | None = None) -> None:
        self.seen = 0  # keys, also those before
        self.left = 0  # keys that come after the place
        self._limit = limit
        self._after = after
        self._kept: list[tuple[Place, KeyView]] = []

    def add(self, view: KeyView) -> None:
        self.seen += 1
        place = (view.created_at, view.key_id)
        if self._after is not None and place >= self._after:
            return
        self.left += 1
        if len(self._kept) < self._limit:
            heapq.heappush(self._kept, (place, view))
        else:
            heapq.heappushpop(self._kept, (place, view))

    def views(self) -> list[KeyView]:
        return [view for _, view in sorted(self._kept, key=lambda kept: kept[0], reverse=True)]


class PlanView(msgspec.Struct, frozen=True):
    """A plan, and the number of keys with it that are not revoked."""

    name: str
    terms: Terms
    keys: int
    revision: int


class PartnerView(msgspec.Struct, frozen=True):
    """The limits of a partner (`terms`), and the number of its keys that are not revoked."""

    name: str
    terms: Terms
    contact: str
    keys: int
    revision: int


async def key_views(store: KeyStore, used: Mapping[str, datetime]) -> AsyncIterator[KeyView | DamagedKey]:
    """Yields every key, in no order; `used` is when each was last used. Raises StoreUnavailable."""
    _, identity = await store.raw_identity()
    async for key in every_key(store):
        yield key if isinstance(key, DamagedKey) else KeyView.of(key, identity, used)


async def plan_views(store: KeyStore) -> tuple[list[PlanView], list[DamagedKey]]:
    """Returns the plans by name, and the damaged records. Raises StoreUnavailable."""
    uses = await _uses(store, Plan)
    plans, damaged = await _every(store, Plan)
    return [_plan_view(plan, uses) for plan in plans if not plan.removed], damaged


async def plan_view(store: KeyStore, name: str) -> PlanView:
    """Raises NoSuchPlanError, StoreUnavailable."""
    return await view_of_plan(store, (await named.plan_of(store, name))[1])


async def view_of_plan(store: KeyStore, plan: Plan) -> PlanView:
    """Raises StoreUnavailable."""
    return _plan_view(plan, await _uses(store, Plan))


async def partner_views(store: KeyStore) -> tuple[list[PartnerView], list[DamagedKey]]:
    """Returns the partners with limits or a contact by name, and the damaged records. Raises StoreUnavailable."""
    uses = await _uses(store, Partner)
    partners, damaged = await _every(store, Partner)
    return [_partner_view(partner, uses) for partner in partners], damaged


async def partner_view(store: KeyStore, name: str) -> PartnerView:
    """Raises NoSuchPartnerError, StoreUnavailable."""
    _, partner = await named.read(store, Partner, name)
    if partner is None:
        raise NoSuchPartnerError(f"no limits of partner {name}; `forecast partners list` shows those there are")
    return await view_of_partner(store, partner)


async def view_of_partner(store: KeyStore, partner: Partner) -> PartnerView:
    """Raises StoreUnavailable."""
    return _partner_view(partner, await _uses(store, Partner))


def _plan_view(plan: Plan, uses: Counter[str | None]) -> PlanView:
    return PlanView(plan.name, plan.terms, uses[plan.name], plan.revision)


def _partner_view(partner: Partner, uses: Counter[str | None]) -> PartnerView:
    return PartnerView(partner.name, partner.terms, partner.contact, uses[partner.name], partner.revision)


async def _every(store: KeyStore, kind: type[named.N]) -> tuple[list[named.N], list[DamagedKey]]:
    records: list[named.N] = []
    damaged: list[DamagedKey] = []
    async for record in named.every(store, kind):
        if isinstance(record, DamagedKey):
            damaged.append(record)
        else:
            records.append(record)
    return sorted(records, key=lambda record: record.name), damaged


async def _uses(store: KeyStore, kind: type[Named]) -> Counter[str | None]:
    """Returns the number of keys by the name of their plan or partner. Revoked keys do not count."""
    uses: Counter[str | None] = Counter()
    async for key in every_key(store):
        if not isinstance(key, DamagedKey) and key.revoked_at is None:
            uses[key.more.plan if kind is Plan else key.partner] += 1
    return uses
