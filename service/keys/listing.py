"""Listings of keys, plans and partners, as commands and operators' endpoints show them."""

import heapq
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from service.base.terms import PARTNER_USAGE, Terms
from service.keys import named
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
        heapq.heappush(self._kept, (place, view))
        if len(self._kept) > self._limit:
            heapq.heappop(self._kept)

    def views(self) -> list[KeyView]:
        return [view for _, view in sorted(self._kept, key=lambda kept: kept[0], reverse=True)]


class NamedView(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, or the limits of a partner (`terms`); `keys` counts its keys that are not revoked."""

    name: str
    terms: Terms
    contact: str | msgspec.UnsetType = msgspec.UNSET  # of a partner
    keys: int
    revision: int


async def key_views(store: KeyStore, used: Mapping[str, datetime]) -> AsyncIterator[KeyView | DamagedKey]:
    """Yields every key, in no order; `used` is when each was last used. Raises StoreUnavailable."""
    _, identity = await store.raw_identity()
    async for key in every_key(store):
        yield key if isinstance(key, DamagedKey) else KeyView.of(key, identity, used)


async def named_views(store: KeyStore, kind: type[Named]) -> tuple[list[NamedView], list[DamagedKey]]:
    """Returns the plans or partners by name, without removed ones, and the damaged records. Raises StoreUnavailable."""
    keys = await _keys_by_name(store, kind)
    views: list[NamedView] = []
    damaged: list[DamagedKey] = []
    async for record in named.every(store, kind):
        if isinstance(record, DamagedKey):
            damaged.append(record)
        elif not record.removed:
            views.append(_view(record, keys))
    return sorted(views, key=lambda view: view.name), damaged


async def view_of(store: KeyStore, record: Named) -> NamedView:
    """Returns the view of a plan or partner. Raises StoreUnavailable."""
    return _view(record, await _keys_by_name(store, type(record)))


def _view(record: Named, keys: Counter[str | None]) -> NamedView:
    contact = record.contact if isinstance(record, Partner) else msgspec.UNSET
    return NamedView(
        name=record.name, terms=record.terms, contact=contact, keys=keys[record.name], revision=record.revision
    )


async def _keys_by_name(store: KeyStore, kind: type[Named]) -> Counter[str | None]:
    """Returns the number of keys by the name of their plan or partner. Revoked keys do not count."""
    keys: Counter[str | None] = Counter()
    async for key in every_key(store):
        if not isinstance(key, DamagedKey) and key.revoked_at is None:
            keys[key.more.plan if kind is Plan else key.partner] += 1
    return keys
