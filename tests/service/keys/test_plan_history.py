"""Which plan a key had on a day."""

from datetime import UTC, date, datetime

import pytest

from service.keys import audit
from service.keys.audit import Change
from service.keys.plan_history import read_plan_history
from service.keys.record import KeyState, MoreOfKey
from tests.support.key_store import HeldKeyStore


async def switch(store: HeldKeyStore, at: datetime, before: str | None, after: str | None, key_id: str = "a") -> None:
    """Writes a line as an import does: its id is later than its time."""
    first, then = (KeyState(more=MoreOfKey(plan=plan)) for plan in (before, after))
    restored = f"{int(at.timestamp() * 1000)}-0"
    change = Change(what="changed", by="me", key_id=key_id, restored=restored, before=first, after=then)
    await audit.note(store.redis, change)


@pytest.mark.parametrize(
    ("day", "plan"),
    [(3, ""), (4, ""), (5, "no plan → basic"), (6, "basic"), (7, "basic → no plan → pro"), (8, "pro"), (30, "pro")],
)
async def test_a_day_has_each_plan_that_was_in_force(store: HeldKeyStore, day: int, plan: str) -> None:
    for line in (
        (datetime(2026, 10, 7, 23, 59, tzinfo=UTC), None, "pro"),
        (datetime(2026, 10, 5, 12, tzinfo=UTC), None, "basic"),
        (datetime(2026, 10, 7, 0, 0, tzinfo=UTC), "basic", None),
    ):
        await switch(store, *line)
    await switch(store, datetime(2026, 10, 6, tzinfo=UTC), "pro", "basic", key_id="b")
    history = await read_plan_history(store.redis, date(2026, 10, min(day, 4)))
    assert history.on(date(2026, 10, day), "a", "pro") == plan


async def test_a_report_reads_no_changes_before_it(store: HeldKeyStore) -> None:
    await switch(store, datetime(2026, 9, 30, tzinfo=UTC), "basic", "pro")
    history = await read_plan_history(store.redis, date(2026, 10, 1))
    assert history.on(date(2026, 10, 1), "a", "pro") == "pro"
    assert history.on(date(2026, 10, 1), "unchanged", None) == ""
