"""Rolling back as the command line and the operators' listener do it: switch, then wait for the instances."""

from pathlib import Path

import msgspec

from warehouse.releases.catalog import Catalog
from warehouse.releases.instances import InstanceRecord, wait_until_served
from warehouse.releases.rollback import roll_back

SERVED_WITHIN_SECONDS = 2.0


class RolledBack(msgspec.Struct, frozen=True):
    """What one rollback did."""

    release: str  # current now
    behind: tuple[InstanceRecord, ...]  # live instances that do not serve it yet


def roll_back_and_wait(data: Path, release: str | None, by: str) -> RolledBack:
    """Makes `release` current (None: the one before the current) and waits for the live instances.

    `by` is who asked for it.

    Raises:
        CatalogError: if there is no such release, or it is damaged.
        BusyError: if a publisher is at work.
    """
    manifest = roll_back(Catalog(data), release, by)
    return RolledBack(manifest.id, tuple(wait_until_served(data, manifest.id, SERVED_WITHIN_SECONDS)))
