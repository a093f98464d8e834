"""The bodies of requests that change keys, plans and partners. An unknown member is an error: it may be mistyped."""

from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from service.base.masking import storable
from service.base.terms import Positive, Quota, QuotaPeriod, Rate, Terms
from service.http.releases.files import AREA_NAMES
from service.keys.record import KeyView, Moment, PlanName
from service.request.errors import ApiError

# Of a text that is stored for good.
_Text = Annotated[str, Meta(max_length=200)]
_LONGEST_OVERLAP = 365 * 86_400  # seconds


class _Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class RateOrder(_Order, frozen=True, kw_only=True):
    """At most `requests` per `seconds`; `burst` at once after a pause, by default those of one second."""

    requests: Positive
    seconds: Literal[1, 60, 3600] = 1
    burst: Positive | None = None

    def rate(self) -> Rate:
        return Rate(self.requests, self.seconds, self.burst or max(1, self.requests // self.seconds))


class QuotaOrder(_Order, frozen=True, kw_only=True):
    """At most `requests` billable answers per UTC day or month; answers warn from the share `warn_at` on."""

    requests: Positive
    period: QuotaPeriod
    warn_at: Annotated[float, Meta(gt=0, le=1)] = 0.8

    def quota(self) -> Quota:
        return Quota(self.requests, self.period, self.warn_at)


class LimitsOrder(_Order, frozen=True, kw_only=True):
    """The limits that all keys of a partner share. An absent limit means unlimited."""

    rate: RateOrder | None = None
    quota: QuotaOrder | None = None

    def terms(self) -> Terms:
        return Terms(None, self.rate.rate() if self.rate else None, self.quota.quota() if self.quota else None)


class TermsOrder(LimitsOrder, frozen=True, kw_only=True):
    """The terms of a plan or a new key. An absent term is the plan's; without a plan, it does not limit."""

    areas: tuple[str, ...] | None = None

    def terms(self) -> Terms:
        return msgspec.structs.replace(super().terms(), areas=_areas(self.areas))


class TermsEdit(_Order, frozen=True, kw_only=True):
    """Changed terms of a key. Absent terms stay; null removes the key's own, so that the plan's applies."""

    areas: tuple[str, ...] | UnsetType | None = UNSET
    rate: RateOrder | UnsetType | None = UNSET
    quota: QuotaOrder | UnsetType | None = UNSET

    def edit(self, terms: Terms) -> Terms:
        return Terms(
            terms.areas if self.areas is UNSET else _areas(self.areas),
            terms.rate if self.rate is UNSET else self.rate.rate() if self.rate else None,
            terms.quota if self.quota is UNSET else self.quota.quota() if self.quota else None,
        )


class IssueOrder(_Order, frozen=True, kw_only=True):
    """A new key. `deliver`: the answer shows the key, or has a link that shows it once, for 24 hours."""

    partner: Annotated[str, Meta(min_length=1, max_length=200)]
    label: _Text = ""
    plan: PlanName | None = None
    terms: TermsOrder = TermsOrder()
    not_before: Moment | None = None
    expires_at: Moment | None = None
    test: bool = False
    deliver: Literal["answer", "link"] = "answer"

    def __post_init__(self) -> None:
        _use_utc(self, "not_before")
        _use_utc(self, "expires_at")
        if self.not_before is not None and self.expires_at is not None and self.expires_at <= self.not_before:
            raise ValueError("expires_at must be later than not_before")


class ChangeOrder(_Order, frozen=True, kw_only=True):
    """A change of a key. Absent members stay; null takes the plan or the end away."""

    plan: PlanName | UnsetType | None = UNSET
    terms: TermsEdit = TermsEdit()
    expires_at: Moment | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        _use_utc(self, "expires_at")
        if self.plan is UNSET and self.expires_at is UNSET and self.terms == TermsEdit():
            raise ValueError("no change requested: give plan, terms or expires_at")


class RotateOrder(_Order, frozen=True, kw_only=True):
    """A new key for an old one, which works for `overlap_seconds` more; `expires_at` null: when the old one would."""

    overlap_seconds: Annotated[int, Meta(ge=0, le=_LONGEST_OVERLAP)]
    expires_at: Moment | None = None
    deliver: Literal["answer", "link"] = "answer"

    def __post_init__(self) -> None:
        _use_utc(self, "expires_at")


class SuspendOrder(_Order, frozen=True, kw_only=True):
    """Why a key is suspended, for operators only."""

    reason: Annotated[str, Meta(min_length=1, max_length=200)]


class PlanOrder(_Order, frozen=True, kw_only=True):
    """All terms of a plan."""

    terms: TermsOrder = TermsOrder()


class PartnerOrder(_Order, frozen=True, kw_only=True):
    """The limits of a partner, and whom to ask, for operators."""

    terms: LimitsOrder = LimitsOrder()
    contact: _Text = ""


class IssuedKey(KeyView, frozen=True, kw_only=True):
    """A new key, which is shown once: `key`, or else `link` until `link_ends_at`. `old` is the key that it replaces."""

    key: str | UnsetType = UNSET
    link: str | UnsetType = UNSET
    link_ends_at: datetime | UnsetType = UNSET
    old: KeyView | UnsetType = UNSET


def checked(name: str, text: str, *, code: str = "invalid_body", can_be_empty: bool = False) -> str:
    """Returns a text as it is stored. Raises ApiError (400) if it cannot be."""
    try:
        stored = storable(name, text)
    except ValueError as error:
        raise ApiError(code, f"{error}.") from None
    if not stored and not can_be_empty:
        raise ApiError(code, f"{name} is empty.")
    return stored


def refuse_past(order: IssueOrder | ChangeOrder | RotateOrder) -> None:
    """Raises ApiError if a time of `order` is in the past. A repeated request is not checked: it was not, at first."""
    for name in ("not_before", "expires_at"):
        time = getattr(order, name, None)
        if isinstance(time, datetime) and time <= datetime.now(UTC):
            raise ApiError("invalid_body", f"This endpoint does not accept the body: {name} is in the past.")


def _areas(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    for name in names:
        if name not in AREA_NAMES:
            raise ApiError("invalid_body", f"terms.areas names an unknown area; the areas are {', '.join(AREA_NAMES)}.")
    if not names:
        raise ApiError("invalid_body", "terms.areas is empty: name at least one area, or leave it out to open all.")
    return tuple(name for name in AREA_NAMES if name in names)


def _use_utc(order: _Order, name: str) -> None:
    """Converts a time of `order` to UTC, in which all times are shown. Raises ValueError if it has no such time."""
    time = getattr(order, name)
    if not isinstance(time, datetime):
        return
    try:
        msgspec.structs.force_setattr(order, name, time.astimezone(UTC))
    except OverflowError:
        raise ValueError(f"{name} is not within the years 1 to 9999") from None
