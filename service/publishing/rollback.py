"""Rolling back as the command line and the operators' listener do it: switch, then wait for the instances."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from config.settings import Settings
from service.publishing import releases_store
from warehouse.publishing import going_live
from warehouse.releases.catalog import Catalog
from warehouse.releases.instances import InstanceRecord, wait_until_served
from warehouse.releases.rollback import roll_back
from warehouse.upstream import changes

# What rolls back to a release (None: the one before the current) on behalf of somebody.
RollBack = Callable[[str | None, str], "RolledBack"]

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


def rolling_back(settings: Settings) -> RollBack:
    """How these settings roll back: in the store of releases, or in the data folder alone."""
    if settings.releases_url is None:
        return partial(roll_back_and_wait, settings.data_path)
    return partial(_roll_back_in_store, settings)


def _roll_back_in_store(settings: Settings, release: str | None, by: str) -> RolledBack:
    store = releases_store.open_store(settings)
    manifest = changes.roll_back(store, release, by)
    behind = going_live.wait_until_served(store, manifest.id, releases_store.SERVED_WITHIN_SECONDS)
    return RolledBack(manifest.id, tuple(behind))
