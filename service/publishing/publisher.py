"""Publishes for the command line and the inbox: with the settings' limits, warming, and retirement."""

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from config.settings import Settings
from config.text import printable
from service.base.whoami import inbox, whoami
from service.publishing.releases import note_in_trail, open_releases
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.releases.catalog import Origin
from warehouse.releases.deliveries import note_delivery
from warehouse.releases.instances import InstanceRecord
from warehouse.rules.acceptance import parse_acceptance
from warehouse.schema.errors import WarehouseError
from warehouse.schema.progress import ProgressCallback

_MOST_PATHS = 20  # in a manifest


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one publish."""

    outcome: PublishOutcome
    behind: tuple[InstanceRecord, ...] = ()  # live instances that do not serve the release yet
    retired: tuple[str, ...] = ()  # ids of the releases that were removed

    @property
    def is_live(self) -> bool:
        """Whether the drop is the current release."""
        return self.outcome.result in ("published", "already_current")


Publish = Callable[[Settings, Sequence[str], PublishOptions, ProgressCallback], Published]


def make_origin(
    paths: Sequence[str], via: Literal["command", "inbox", "demo"], delivered: datetime | None = None
) -> Origin:
    """Returns the origin of a drop at `paths`, published by the user of this process on this host."""
    shown = [printable(os.path.abspath(Path(path).expanduser())) for path in paths[:_MOST_PATHS]]  # noqa: PTH100 - keeps links
    more = [f"and {len(paths) - _MOST_PATHS:,} more"] if len(paths) > _MOST_PATHS else []
    return Origin(
        by=whoami(), host=printable(socket.gethostname()), paths=(*shown, *more), via=via, delivered=delivered
    )


def make_options(settings: Settings, accepted: Sequence[str] = (), reason: str = "", **more: Any) -> PublishOptions:
    """Returns the options of one publish. `accepted` has the values of --accept: `total-drift=8%`.

    `more` are other members. Raises WarehouseError.
    """
    acceptance = parse_acceptance(accepted, reason, whoami(), datetime.now(UTC).replace(microsecond=0))
    return PublishOptions(
        attribution=settings.attribution,
        limits=settings.limits,
        severities=settings.severities,
        acceptance=acceptance,
        **more,
    )


def make_inbox_options(settings: Settings, origin: Origin | None = None) -> PublishOptions:
    """Returns the options of a drop of the inbox, which may require and hold more: no person watches it."""
    return make_options(settings, origin=origin, required=settings.inbox_tables, hold=settings.inbox_hold)


def publish_and_wait(
    settings: Settings,
    paths: Sequence[str],
    options: PublishOptions,
    progress: ProgressCallback,
    *,
    leave_behind: bool = False,
) -> Published:
    """Publishes, waits for the live instances, and retires surplus releases.

    `leave_behind`: even if an instance cannot read the release. Raises as `publishing`.
    """
    releases = open_releases(settings)
    outcome = releases.publish(paths, options, progress, leave_behind=leave_behind)
    if outcome.manifest is None or outcome.result in ("refused", "held"):
        return Published(outcome=outcome)
    if outcome.result == "published" or options.seen is not None:
        _note(settings, outcome.manifest.id, options)
    with suppress(OSError):  # the drop is live even so, and its release has the time
        note_delivery(settings.data_path)
    behind = releases.wait_until_served(outcome.manifest.id, progress)
    retired: list[str] = []
    if outcome.result == "published":
        with suppress(WarehouseError):  # the release is live even so; the next publish retires
            retired = releases.retire_all_but(settings.keep_releases)
    return Published(outcome=outcome, behind=tuple(behind), retired=tuple(retired))


def _note(settings: Settings, release: str, options: PublishOptions) -> None:
    is_approved, origin = options.seen is not None, options.origin
    by = inbox() if origin is not None and origin.via == "inbox" and not is_approved else whoami()
    reason = options.acceptance.reason if options.acceptance is not None else None
    note_in_trail(settings, release, "approved" if is_approved else "published", by, reason)
