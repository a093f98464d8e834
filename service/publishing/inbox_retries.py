"""Drops of the inbox that failed for reasons unrelated to them: which are retried, and which may be overtaken.

An older drop must not go live after a newer one, because old figures would replace new ones. So a drop that was
overtaken is set aside, and a person decides.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from config.printable import printable
from service.publishing.inbox_folders import Claim
from service.publishing.inbox_status import Failing
from warehouse.publishing.publish import PublishOutcome
from warehouse.releases.catalog import Catalog
from warehouse.rules.all_rules import make_finding
from warehouse.schema.errors import NoReleaseError
from warehouse.schema.findings import make_report

# Tries of a drop before newer ones are tried as well. A full disk fails those too; a problem of this drop alone does
# not.
PATIENCE = 3
_SHOWN = 3  # problems named in one message


class Retries:
    """The claimed drops that failed. `InboxDrops` owns it; a restarted watcher rebuilds it from the status file."""

    def __init__(self, failing: Iterable[Failing] = ()) -> None:
        self._failing = {one.stamp: one for one in failing}

    def all(self) -> tuple[Failing, ...]:
        """Oldest first."""
        return tuple(self._failing[stamp] for stamp in sorted(self._failing))

    def of(self, claim: Claim) -> Failing | None:
        return self._failing.get(claim.stamp)

    def failed(self, claim: Claim, problem: str) -> None:
        tries = self._failing[claim.stamp].tries if claim.stamp in self._failing else 0
        self._failing[claim.stamp] = Failing(claim.stamp, printable(claim.name), tries + 1, printable(problem))

    def forget(self, claim: Claim) -> None:
        self._failing.pop(claim.stamp, None)

    def keep(self, claims: Sequence[Claim]) -> None:
        """Forgets drops that are not among `claims`: somebody took them away."""
        there = {claim.stamp for claim in claims}
        self._failing = {stamp: one for stamp, one in self._failing.items() if stamp in there}

    def may_be_overtaken(self, claim: Claim) -> bool:
        failing = self.of(claim)
        return failing is not None and failing.tries >= PATIENCE

    def all_may_be_overtaken(self) -> bool:
        return all(one.tries >= PATIENCE for one in self._failing.values())

    def problems(self) -> list[str]:
        return [f"{one.name}: {one.problem}" for one in self.all()[:_SHOWN]]


def set_aside(data: Path, failing: Failing, newer: str) -> PublishOutcome:
    """The refusal of a drop that was overtaken by the drop `newer`."""
    message = f"failed {failing.tries} times ({failing.problem}); meanwhile {newer}, which is newer, went live"
    return refusal(data, "overtaken", message)


def refusal(data: Path, rule: str, message: str, **members: str) -> PublishOutcome:
    """A refusal for a reason that is not in the drop's rows."""
    try:
        current = Catalog(data).current()
    except NoReleaseError:
        current = None
    return PublishOutcome(
        result="refused", report=make_report([make_finding(rule, message, **members)]), manifest=current
    )
