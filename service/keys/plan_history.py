"""The plan that a key had on a day, from the audit trail: no request and no flush records it."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from service.keys import audit
from service.redis.client import RedisStore

_NO_PLAN = "no plan"  # no plan has a space in its name


class _Switch(NamedTuple):
    """A change of the plan of one key; None: no plan."""

    at: datetime
    before: str | None
    after: str | None


class PlanHistory:
    """The changes of keys' plans from a day on, by key id and in order. One report reads it once."""

    def __init__(self, switches: Mapping[str, list[_Switch]]) -> None:
        self._switches = switches

    def on(self, day: date, key_id: str, current: str | None) -> str:
        """Returns the key's plan on this UTC day, empty without one; `current` is its plan now.

        If it changed on that day, each one in order: `basic → pro`.
        """
        begins = datetime(day.year, day.month, day.day, tzinfo=UTC)
        known = self._switches.get(key_id, [])
        later = [switch for switch in known if switch.at >= begins]
        earlier = known[: len(known) - len(later)]
        plans = [earlier[-1].after if earlier else later[0].before if later else current]
        plans += [switch.after for switch in later if switch.at < begins + timedelta(days=1)]
        names = [plan or _NO_PLAN for plan, _ in groupby(plans)]
        return "" if names == [_NO_PLAN] else " → ".join(names)


async def read_plan_history(store: RedisStore, first: date) -> PlanHistory:
    """Reads the trail back to the UTC day `first`. Raises StoreUnavailable."""
    switches: dict[str, list[_Switch]] = {}
    async for line in audit.newest_first(store, datetime(first.year, first.month, first.day, tzinfo=UTC)):
        change, at = line.change, line.at
        if change is None or at is None or change.key_id is None or change.before is None or change.after is None:
            continue
        switch = _Switch(at, change.before.more.plan, change.after.more.plan)
        if switch.before != switch.after:
            switches.setdefault(change.key_id, []).insert(0, switch)
    for of_key in switches.values():
        of_key.sort(key=attrgetter("at"))  # imported lines are not in the order of their times
    return PlanHistory(switches)
