"""UsageReport: what was stored is read back, by key, day and area."""

from collections.abc import Awaitable, Callable
from datetime import date

import pytest

from service.quota.report import DamagedUsage, UsageReport, UsageRow
from service.redis.errors import StoreUnavailable
from tests.support.usage import UsageWorker

Damage = Callable[[UsageWorker], Awaitable[object]]
FIRST, LAST = date(2026, 11, 1), date(2026, 11, 30)


@pytest.fixture
def report(usage: UsageWorker) -> UsageReport:
    return UsageReport(usage.redis)


async def test_a_key_is_reported_by_day_and_area(usage: UsageWorker, report: UsageReport) -> None:
    for area, outcome, times in (
        ("projects", "answered", 1),
        ("forecast", "answered", 5),
        ("forecast", "answered_empty", 4),
        ("forecast", "not_modified", 3),
        ("forecast", "not_found", 2),
        ("forecast", "rejected", 1),
    ):
        for _ in range(times):
            usage.counters.count("a", area, outcome)  # type: ignore[arg-type]  # as in the table above
    usage.clock.now += 86_400
    usage.counters.count("a", "forecast", "answered")
    await usage.flusher.flush()
    rows = await report.whole(["a"], FIRST, LAST)
    assert rows == [
        UsageRow(
            key_id="a",
            area="forecast",
            date=date(2026, 11, 20),
            answered=5,
            answered_empty=4,
            not_modified=3,
            not_found=2,
            rejected=1,
        ),
        UsageRow(key_id="a", area="projects", date=date(2026, 11, 20), answered=1),
        UsageRow(key_id="a", area="forecast", date=date(2026, 11, 21), answered=1),
    ]
    assert rows[0].billable == 12


async def test_only_the_days_asked_for_are_reported(usage: UsageWorker, report: UsageReport) -> None:
    for _ in range(60):
        usage.counters.count("a", "forecast", "answered")
        usage.clock.now += 86_400
    await usage.flusher.flush()
    rows = await report.whole(["a"], date(2026, 12, 30), date(2027, 1, 2))
    assert [str(row.date) for row in rows] == ["2026-12-30", "2026-12-31", "2027-01-01", "2027-01-02"]
    assert await report.whole(["a"], date(2025, 1, 1), date(2026, 11, 19)) == []


async def test_the_keys_of_a_month_are_found_once(usage: UsageWorker, report: UsageReport) -> None:
    keys = [f"{number:012}" for number in range(1020)]
    for key_id in keys:
        usage.counters.count(key_id, "forecast", "answered")
    await usage.flusher.flush()
    usage.clock.now += 30 * 86_400
    usage.counters.count("later", "forecast", "answered")
    await usage.flusher.flush()
    await usage.client.set("u:{x}", "x")
    assert await report.keys(FIRST, LAST) == set(keys)
    assert await report.keys(FIRST, date(2026, 12, 1)) == {*keys, "later"}


async def test_many_keys_come_in_the_order_asked_for(usage: UsageWorker, report: UsageReport) -> None:
    keys = [f"{number:012}" for number in reversed(range(120))]
    for key_id in sorted(keys):
        usage.counters.count(key_id, "forecast", "answered")
    await usage.flusher.flush()
    found = [row async for row in report.of_keys([*keys, "nobody"], FIRST, date(2027, 2, 1))]
    assert [row.key_id for row in found] == keys


@pytest.mark.parametrize(
    "damage",
    [
        lambda usage: usage.client.hset("u:{a}:2026-11", "20:forecast:answered", "many"),
        lambda usage: usage.client.hset("u:{a}:2026-11", "31:forecast:answered", "1"),
        lambda usage: usage.client.hset("u:{a}:2026-11", "20:forecast:rejected", "-1"),
        lambda usage: usage.client.set("u:{a}:2026-11", "x"),
    ],
    ids=["no-number", "no-day", "negative", "no-hash"],
)
async def test_a_damaged_record_is_named_and_stops_no_other(
    usage: UsageWorker, report: UsageReport, damage: Damage
) -> None:
    """A bill that is silently too low is a loss; its owner learns that figures are unavailable."""
    for key_id in ("a", "b"):
        usage.counters.count(key_id, "forecast", "not_modified")
    await usage.flusher.flush()
    await usage.client.delete("s:{a}")
    await damage(usage)
    found = [each async for each in report.of_keys(["a", "b"], FIRST, LAST)]
    [damaged] = [each for each in found if isinstance(each, DamagedUsage)]
    assert damaged.key_id == "a"
    assert damaged.detail.startswith("u:{a}:2026-11")
    assert UsageRow(key_id="b", area="forecast", date=date(2026, 11, 20), not_modified=1) in found
    with pytest.raises(StoreUnavailable, match="damaged"):
        await report.whole(["a"], FIRST, LAST)


async def test_outcomes_of_a_later_version_are_left_alone(usage: UsageWorker, report: UsageReport) -> None:
    """They are not ours to read, and no damage."""
    await usage.client.hset("u:{a}:2026-11", mapping={"20:forecast:answered": 2, "20:forecast:streamed": 9})
    assert [row.answered for row in await report.whole(["a"], FIRST, LAST)] == [2]


async def test_an_unreachable_store_is_reported(usage: UsageWorker, report: UsageReport) -> None:
    usage.redis.away = True
    with pytest.raises(StoreUnavailable):
        await report.whole(["a"], FIRST, LAST)
    with pytest.raises(StoreUnavailable):
        await report.keys(FIRST, LAST)
