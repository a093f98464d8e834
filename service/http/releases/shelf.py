"""The releases that partners can see."""

import logging
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from service.base.single_flight import SingleFlight
from service.request.errors import ApiError
from service.request.resolve import no_release
from warehouse.files.file_access import FileAccess
from warehouse.following import ReleaseFollower
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.pointer import Pointer
from warehouse.schema.errors import WarehouseError

log = logging.getLogger("forecast.http")

CURRENT = "current"
# Disk reads are reused for this long. After a switch, the disk is read at once.
_FRESH_SECONDS = 2.0
# Longest wait of a request for a hanging disk: the current release is known without it.
_DISK_SECONDS = 2.0


class ReleaseHistory(msgspec.Struct, frozen=True):
    """The current release and those that led to it, newest first; and since when it has been current, if that is known.

    A release that was rolled back is not among them, until it is current again.
    """

    releases: tuple[Manifest, ...]
    since: datetime | None

    @property
    def current(self) -> Manifest:
        return self.releases[0]


class ReleaseShelf:
    """Finds the releases that are kept on disk. One per worker, which owns it."""

    def __init__(self, follower: ReleaseFollower, data: Path) -> None:
        self._follower = follower
        self._catalog = Catalog(data)
        self._files = FileAccess(threads=2)
        self._reads: SingleFlight[ReleaseHistory] = SingleFlight(_FRESH_SECONDS, most=1)  # by the current release

    async def history(self) -> ReleaseHistory:
        """Raises ApiError (503) before the first release."""
        release = self._follower.current
        if release is None:
            raise no_release(self._follower)
        return await self._reads.run(release.id, partial(self._read, release.manifest))

    async def release(self, name: str) -> tuple[Manifest, int | None]:
        """Returns the release with this id, or the current one, and when this name last changed, in seconds since 1970.

        For `current`, that is its switch: after a rollback, the release may be older. None: unknown.

        Raises ApiError: 404; 503 before the first release.
        """
        history = await self.history()
        if name == CURRENT:
            return history.current, int(history.since.timestamp()) if history.since is not None else None
        for manifest in history.releases:
            if manifest.id == name:
                return manifest, int(manifest.published_at.timestamp())
        raise ApiError(
            "not_found",
            "There is no such release, or not any more. GET /v1/releases lists those there are; current is the newest.",
        )

    def folder(self, release: Manifest) -> Path:
        return self._catalog.folder(release.id)

    async def _read(self, current: Manifest) -> ReleaseHistory:
        kept: list[Manifest] = []
        pointer: Pointer | None = None
        try:
            kept, pointer = await self._files.run("listing releases", self._on_disk, wait=_DISK_SECONDS)
        except (OSError, WarehouseError) as error:
            log.warning("releases cannot be listed: %s", error)
        switched = pointer.switched_at if pointer is not None and pointer.release == current.id else None
        return ReleaseHistory(led_to(current, kept), switched)

    def _on_disk(self) -> tuple[list[Manifest], Pointer | None]:
        return self._catalog.all(), self._catalog.pointer()


def led_to(current: Manifest, kept: list[Manifest]) -> tuple[Manifest, ...]:
    """Returns `current`, the release that was current when it was built, and so on.

    If a manifest lacks its previous release, or that one is no longer kept, the next older one follows.
    """
    by_id = {manifest.id: manifest for manifest in kept}
    ids = sorted(by_id, reverse=True)
    found = {current.id: current}
    at = current
    while True:
        before = at.previous if at.previous in by_id else next((one for one in ids if one < at.id), None)
        if before is None or before in found:
            return tuple(found.values())
        at = found[before] = by_id[before]
