"""The usage of a key, for its owner: by UTC day, and by hour.

Reading is not limited by the plan of the key, so it must be cheap. An answer is reused for REUSE_SECONDS, and a key
reads at most RECORDS_A_SECOND records in the long run. A record has a month, or the hours of a day. All keys of a
partner count as ALL_KEYS_RECORDS, however many they are.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Annotated

import msgspec
from msgspec import Meta

from service.base.single_flight import SingleFlight
from service.base.terms import PARTNER_USAGE, Quota, Rate, Terms
from service.http.query import read_day, read_strictly
from service.keys.named import list_of_keys
from service.keys.record import ApiKey, Partner
from service.quota.gcra import decide
from service.quota.names import HOURS_KEPT_DAYS, day_of, partner_id
from service.quota.report import Day, HourRow, UsageReport, UsageRow
from service.quota.usage_store import UsageStore
from service.redis.errors import StoreUnavailable
from service.request.errors import ApiError

# As many as a leap year has: one request reads at most 13 records.
MOST_DAYS = 366
# With half a second until a worker's flush, and the time of a read, figures are younger than 5 s.
REUSE_SECONDS = 2.0
# In each worker: two years a second, or the current month every 40 ms.
RECORDS_A_SECOND = 26
BURST_RECORDS = 130
ALL_KEYS_RECORDS = 104
_MOST_REUSED = 64  # answers, of at most some 250 KB
_MOST_KEYS = 10_000
_TOO_OFTEN = "Too many usage requests. Retry after the seconds in Retry-After. They do not count against your limits."


class Period(msgspec.Struct, frozen=True):
    """UTC days; `to` is included."""

    first: Annotated[date, Meta(description="The first day.")] = msgspec.field(name="from")
    last: Annotated[date, Meta(description="The last day.")] = msgspec.field(name="to")


class Limits(msgspec.Struct, frozen=True):
    """As in ``500/s``, ``5000000/month``; `remaining` is of the quota's current period, whatever the query."""

    rate: Annotated[str | None, Meta(description="Requests in a period; null without a limit.")]
    quota: Annotated[str | None, Meta(description="Requests in a UTC day or month; null without one.")]
    remaining: Annotated[int | None, Meta(description="The rest of the quota; null without one.")]
    plan: Annotated[str | msgspec.UnsetType, Meta(description="The plan of the key now; absent without one.")] = (
        msgspec.UNSET
    )


class UsageDay(msgspec.Struct, frozen=True):
    """`answered` are 200, with or without figures; billable are these and `not_modified`."""

    date: Annotated[Day, Meta(description="In UTC.")]
    area: Annotated[str, Meta(description="The data area.")]
    answered: Annotated[int, Meta(description="Answers with status 200 or 206, also to HEAD.")]
    not_modified: Annotated[int, Meta(description="Answers with status 304.")]
    not_found: Annotated[int, Meta(description="Answers with status 404.")]
    rejected: Annotated[int, Meta(description="Any other 4xx.")]


class KeyDays(msgspec.Struct, frozen=True):
    """The usage of one key of the partner."""

    key_id: Annotated[str, Meta(description="Identifies the key; not a secret.")]
    days: Annotated[tuple[UsageDay, ...], Meta(description="Ascending by day, then area.")]


class AllKeys(msgspec.Struct, frozen=True):
    """The usage of all keys of the partner, revoked ones too."""

    limits: Annotated[Limits, Meta(description="The limits that the keys share.")]
    days: Annotated[tuple[UsageDay, ...], Meta(description="The sum of all keys; ascending by day, then area.")]
    keys: Annotated[tuple[KeyDays, ...], Meta(description="Ascending by id; keys without requests are left out.")]


class Usage(msgspec.Struct, frozen=True):
    """Days without requests are left out."""

    key_id: Annotated[str, Meta(description="Identifies the key; not a secret.")]
    partner: Annotated[str, Meta(description="The owner of the key.")]
    period: Annotated[Period, Meta(description="The days that are counted.")]
    limits: Annotated[Limits, Meta(description="The limits of the key.")]
    days: Annotated[tuple[UsageDay, ...], Meta(description="Ascending by day, then area.")]
    shared_limits: Annotated[
        Limits | msgspec.UnsetType,
        Meta(description="The limits that all keys of the partner share; absent without any."),
    ] = msgspec.UNSET
    all_keys: Annotated[
        AllKeys | msgspec.UnsetType, Meta(description="All keys of the partner, for a key with partner-usage.")
    ] = msgspec.UNSET


class UsageHour(msgspec.Struct, frozen=True):
    """Counted as in `UsageDay`: a day's hours add up to it."""

    hour: Annotated[datetime, Meta(description="When it begins: RFC 3339 in UTC.")]
    area: Annotated[str, Meta(description="The data area.")]
    answered: Annotated[int, Meta(description="Answers with status 200 or 206, also to HEAD.")]
    not_modified: Annotated[int, Meta(description="Answers with status 304.")]
    not_found: Annotated[int, Meta(description="Answers with status 404.")]
    rejected: Annotated[int, Meta(description="Any other 4xx.")]
    limited: Annotated[int, Meta(description="Those of `rejected` that are 429.")]


class UsageByHour(msgspec.Struct, frozen=True):
    """Hours without requests are left out."""

    key_id: Annotated[str, Meta(description="Identifies the key; not a secret.")]
    period: Annotated[Period, Meta(description="The days that are counted.")]
    hours: Annotated[tuple[UsageHour, ...], Meta(description="Ascending by hour, then area.")]


class OwnUsage:
    """Reads the usage of keys for their owners. One per application: of live keys, and of test keys.

    `clock` gives seconds since 1970, `monotonic` seconds that never go back.
    """

    def __init__(
        self,
        report: UsageReport,
        store: UsageStore,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._reads: SingleFlight[bytes] = SingleFlight(REUSE_SECONDS, most=_MOST_REUSED)
        self._buckets: OrderedDict[str, int] = OrderedDict()  # by key id, the least recent first

    async def by_day(self, key: ApiKey, query: bytes) -> bytes:
        """Returns an encoded Usage. Raises ApiError (400, 429, 503)."""
        today = self._today()
        period = read_days(query, today)
        shared = key.shared
        sees_all = shared is not None and PARTNER_USAGE in (key.terms.areas or ())

        async def read() -> bytes:
            rows = await self._report.whole([key.key_id], period.first, period.last)
            limits = await self._limits(key.key_id, key.terms, today)
            if key.more.plan is not None:
                limits = msgspec.structs.replace(limits, plan=key.more.plan)
            usage = Usage(key.key_id, key.partner, period, limits, _days(rows))
            if shared is not None:
                shared_limits = await self._limits(partner_id(shared.name), shared.terms, today)
                all_keys = await self._all_keys(key, shared, shared_limits, period) if sees_all else msgspec.UNSET
                usage = msgspec.structs.replace(usage, shared_limits=shared_limits, all_keys=all_keys)
            return msgspec.json.encode(usage)

        months = (period.last.year - period.first.year) * 12 + period.last.month - period.first.month
        return await self._read(("days", key, period), ALL_KEYS_RECORDS if sees_all else months + 1, read)

    async def _all_keys(self, key: ApiKey, shared: Partner, limits: Limits, period: Period) -> AllKeys:
        key_ids = {key.key_id, *await self._report.listed(list_of_keys(shared.name))}
        rows = await self._report.whole(sorted(key_ids), period.first, period.last)
        by_key = groupby(rows, attrgetter("key_id"))
        return AllKeys(limits, _sums(_days(rows)), tuple(KeyDays(key_id, _days(ours)) for key_id, ours in by_key))

    async def by_hour(self, key: ApiKey, query: bytes) -> bytes:
        """Returns an encoded UsageByHour. Raises ApiError (400, 429, 503)."""
        today = self._today()
        period = read_recent_days(query, today)
        last = min(period.last, today)

        async def read() -> bytes:
            rows = await self._report.hours_of_key(key.key_id, period.first, last)
            return msgspec.json.encode(UsageByHour(key.key_id, period, tuple(_hour(row) for row in rows)))

        return await self._read(("hours", key, period), max(1, (last - period.first).days + 1), read)

    async def _read(
        self, wanted: tuple[str, ApiKey, Period], records: int, read: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        async def limited() -> bytes:
            self._spend(wanted[1].key_id, records)
            return await read()

        try:
            return await self._reads.run(wanted, limited)
        except StoreUnavailable as error:
            raise ApiError("unavailable") from error

    def _spend(self, key_id: str, records: int) -> None:
        """Raises ApiError (429) if the key has read too many records recently."""
        now = self._monotonic()
        rate = Rate(RECORDS_A_SECOND, 1, BURST_RECORDS)
        decision = decide(self._buckets.pop(key_id, None), rate, int(now * 1e6), records, records)
        self._buckets[key_id] = decision.tat
        if len(self._buckets) > _MOST_KEYS:
            self._buckets.popitem(last=False)
        if not decision.granted:
            seconds = -(-decision.retry_after // 1_000_000)
            raise ApiError("rate_limited", _TOO_OFTEN, headers=((b"retry-after", b"%d" % seconds),))

    async def _limits(self, holder: str, terms: Terms, today: date) -> Limits:
        rate, quota = terms.rate, terms.quota
        remaining = None if quota is None else await self._remaining(holder, quota, day_of(today))
        return Limits(str(rate) if rate else None, str(quota) if quota else None, remaining)

    async def _remaining(self, holder: str, quota: Quota, today: int) -> int:
        totals = await self._store.totals(holder, today)
        return max(0, quota.requests - (totals.of_day if quota.period == "day" else totals.of_month))

    def _today(self) -> date:
        return datetime.fromtimestamp(self._clock(), UTC).date()


def read_days(query: bytes, today: date) -> Period:
    """Reads `from` and `to`; the defaults are the first of the month of `to`, and today. Raises ApiError (400)."""
    period = _read_period(query, today, lambda last: last.replace(day=1))
    if day_of(period.last) - day_of(period.first) >= MOST_DAYS:
        raise ApiError("invalid_parameter", f"That is more than {MOST_DAYS} days. Ask for fewer at a time.", "from")
    return period


def read_recent_days(query: bytes, today: date) -> Period:
    """Reads `from` and `to`; the defaults are the day before `to`, and today. Raises ApiError (400)."""
    oldest = today - timedelta(days=HOURS_KEPT_DAYS - 1)
    period = _read_period(query, today, lambda last: max(oldest, last - timedelta(days=1)))
    if period.first < oldest:
        detail = f"Hours are kept for {HOURS_KEPT_DAYS} days: give {oldest} or later. /v1/usage has the days before."
        raise ApiError("invalid_parameter", detail, "from")
    return period


def _read_period(query: bytes, today: date, first_by: Callable[[date], date]) -> Period:
    """Reads `from` and `to`; the defaults are the day that `first_by` returns for `to`, and today."""
    values = read_strictly(query, ("from", "to"))
    last = read_day("to", values["to"]) if "to" in values else today
    first = read_day("from", values["from"]) if "from" in values else first_by(last)
    if first > last:
        after = "to. Exchange them" if "to" in values else f"today, {today} in UTC. Give an earlier day"
        detail = f"from is after {after}."
        raise ApiError("invalid_parameter", detail, "from")
    return Period(first, last)


def _days(rows: Iterable[UsageRow]) -> tuple[UsageDay, ...]:
    return tuple(
        UsageDay(
            row.date,
            row.area,
            row.answered + row.answered_empty,
            row.not_modified,
            row.not_found,
            row.rejected + row.limited,
        )
        for row in rows
    )


def _sums(days: Iterable[UsageDay]) -> tuple[UsageDay, ...]:
    """Returns one for each day and area."""
    ordered = sorted(map(msgspec.structs.astuple, days))
    return tuple(
        UsageDay(*cell, *map(sum, zip(*(counts for _, _, *counts in same), strict=True)))
        for cell, same in groupby(ordered, itemgetter(0, 1))
    )


def _hour(row: HourRow) -> UsageHour:
    return UsageHour(
        datetime(row.date.year, row.date.month, row.date.day, row.hour, tzinfo=UTC),
        row.area,
        row.answered + row.answered_empty,
        row.not_modified,
        row.not_found,
        row.rejected + row.limited,
        row.limited,
    )
