"""Publishing as the command line and the inbox do it: with the settings' limits, warming, and retirement."""

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from config.first_line import first_line
from config.printable import printable
from config.settings import Settings, SettingsError
from service.base.whoami import whoami
from service.embedded import owner
from service.embedded.runtime import EmbeddedError
from service.publishing.rollback import SERVED_WITHIN_SECONDS
from service.publishing.upstream import publish_in_store
from warehouse.publishing.publish import PublishOptions, PublishOutcome, publish
from warehouse.releases.catalog import Catalog, Manifest, Origin
from warehouse.releases.deliveries import note_delivery
from warehouse.releases.instances import InstanceRecord, check_readers, wait_until_served
from warehouse.releases.retire import in_use, retire_all_but
from warehouse.rules.acceptance import parse_acceptance
from warehouse.schema.errors import WarehouseError
from warehouse.schema.findings import Finding
from warehouse.schema.progress import ProgressCallback

log = logging.getLogger("forecast.publishing")

_MOST_PATHS = 20  # kept in a manifest
_FORGET_SECONDS = 5.0  # some 0.5 s for three releases of the whole country


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What one publish did."""

    outcome: PublishOutcome
    behind: tuple[InstanceRecord, ...] = ()  # live instances that do not serve the release yet
    retired: tuple[str, ...] = ()  # ids of the releases that were removed


def origin_of(
    paths: Sequence[str], via: Literal["command", "inbox", "demo"], delivered: datetime | None = None
) -> Origin:
    """The origin of a drop at `paths`: published by whoever runs this process, on this host."""
    shown = [printable(os.path.abspath(Path(path).expanduser())) for path in paths[:_MOST_PATHS]]  # noqa: PTH100 - keeps links
    more = [f"and {len(paths) - _MOST_PATHS:,} more"] if len(paths) > _MOST_PATHS else []
    return Origin(
        by=whoami(), host=printable(socket.gethostname()), paths=(*shown, *more), via=via, delivered=delivered
    )


def options_of(
    settings: Settings,
    withdrawn: Sequence[str] = (),
    accepted: Sequence[str] = (),
    reason: str = "",
    origin: Origin | None = None,
    *,
    strict: bool = False,
) -> PublishOptions:
    """The options of one publish. `accepted` is what --accept says: `total-drift=8%`. Raises WarehouseError."""
    acceptance = parse_acceptance(accepted, reason, whoami(), datetime.now(UTC).replace(microsecond=0))
    return PublishOptions(
        attribution=settings.attribution,
        limits=settings.limits,
        severities=settings.severities,
        strict=strict,
        withdrawn=tuple(withdrawn),
        acceptance=acceptance,
        origin=origin,
    )


def inbox_options_of(settings: Settings, origin: Origin | None = None) -> PublishOptions:
    """The options of a drop of the inbox: more may be asked of it, because nobody looks on."""
    return msgspec.structs.replace(
        options_of(settings, origin=origin), required=settings.inbox_tables, hold=settings.inbox_hold
    )


def publish_and_wait(
    settings: Settings,
    paths: Sequence[str],
    options: PublishOptions,
    progress: ProgressCallback,
    *,
    leave_behind: bool = False,
) -> Published:
    """Publishes, waits for the live instances, and retires surplus releases, in the cache too.

    Where a store of releases is set, all of that happens there. `leave_behind`: although an instance cannot read it.
    Raises as `publish`, and StoreError.
    """
    if settings.releases_url is not None:
        outcome, behind, retired = publish_in_store(settings, paths, options, progress, leave_behind=leave_behind)
        if outcome.manifest is not None and outcome.result in ("published", "already_current"):
            _note_delivery(settings, outcome.manifest.id)
        return Published(outcome=outcome, behind=tuple(behind), retired=tuple(retired))
    check_readers(settings.data_path, leave_behind=leave_behind)
    catalog = Catalog(settings.data_path)

    def warmed(folder: Path, manifest: Manifest, tell: ProgressCallback) -> list[Finding]:
        # here, because checks need no client of Redis, which takes a tenth of a second to import
        from service.publishing.warming import warm_release

        return warm_release(settings, folder, manifest, tell)

    outcome = publish(catalog, paths, options, progress, warm=warmed)
    if outcome.manifest is None or outcome.result in ("refused", "held"):
        return Published(outcome=outcome)
    _note_delivery(settings, outcome.manifest.id)
    late = wait_until_served(settings.data_path, outcome.manifest.id, SERVED_WITHIN_SECONDS, progress)
    gone: list[str] = []
    if outcome.result == "published":
        try:
            gone = retire_all_but(catalog, settings.keep_releases)
        except WarehouseError:
            gone = []  # another publisher is at work, and retires as well
        forget_unused(settings, catalog, gone)
    return Published(outcome=outcome, behind=tuple(late), retired=tuple(gone))


def _note_delivery(settings: Settings, release: str) -> None:
    with suppress(OSError):  # the drop is live all the same, and its release has the time
        note_delivery(settings.data_path, release)


def forget_unused(settings: Settings, catalog: Catalog, retired: Sequence[str]) -> None:
    """Removes from the shared cache what belongs to `retired` releases, and to those kept on disk that nobody uses.

    The current release, the one to roll back to, and those that live instances serve stay warm. Never raises: what
    cannot be removed goes by its TTL.
    """
    try:
        unused = {*retired, *catalog.names()} - in_use(catalog)
    except (WarehouseError, OSError) as error:
        log.info("answers of old releases stay in the shared cache for now: %s", first_line(error))
    else:
        forget_releases(settings, unused)


def forget_releases(settings: Settings, unused: set[str]) -> None:
    """Removes from the shared cache what belongs to releases that nobody uses. Never raises, as `forget_unused`."""
    # here, because checks need no client of Redis, which takes a tenth of a second to import
    from service.cache.removing import forget
    from service.redis.errors import StoreUnavailable

    try:
        url = owner.running_url(settings, "cache")
        if unused and url is not None:
            asyncio.run(forget(url, unused, _FORGET_SECONDS))
    except (SettingsError, EmbeddedError, OSError, StoreUnavailable) as error:
        log.info("answers of old releases stay in the shared cache for now: %s", first_line(error))
