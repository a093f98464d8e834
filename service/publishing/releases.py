"""Publishes, rolls back and retires releases: in a data folder, or in a store that many instances follow.

The command line, the inbox and the operators' listener act on releases through `open_releases`. Modules that build a
release are imported only to build one: an instance rolls back and never publishes.
"""

import asyncio
import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import msgspec

from config.settings import Settings, SettingsError
from config.text import first_line
from config.urls import EMBEDDED
from service.embedded import owner
from service.embedded.runtime import EmbeddedError
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.publishing.working_copy import TABLES, WorkingCopy
from warehouse.releases import changes as folder_changes
from warehouse.releases.catalog import FINDINGS, Catalog
from warehouse.releases.instances import InstanceRecord, check_readers, live_instances, wait_until_served
from warehouse.schema.errors import WarehouseError
from warehouse.schema.progress import ProgressCallback
from warehouse.upstream import changes as store_changes
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import KnownPointer, ReleasesStore

log = logging.getLogger("forecast.publishing")

_FORGET_SECONDS = 5.0  # some 0.5 s for three releases of the whole country
# An instance polls twice a second, and opens a release of the whole country in a second, on a busy machine in five.
SERVED_SECONDS = 10.0
_NOTE_SECONDS = 1.0  # for a reply of the key store
_POLL_SECONDS = 0.25  # between two readings of the instances on a store
# In the data folder; no instance reads it. It stays, so that the next publish fetches less.
_WORKING_COPY = "publisher"


class ReleaseReader:
    """Reads releases for a command: from the data folder, or from a copy of the store.

    A copy has all manifests; it fetches further files on demand.
    """

    def __init__(self, catalog: Catalog, copy: WorkingCopy | None = None, pointer: KnownPointer | None = None) -> None:
        """Pass `copy` and `pointer` if there is a store."""
        self.catalog = catalog
        self._copy = copy
        self._pointer = pointer

    @property
    def lost(self) -> str | None:
        """Why it is unknown which release is current, with the remedy; None if it is known."""
        return self._pointer.lost if self._pointer is not None else self.catalog.lost

    def current(self) -> str:
        """Returns the id of the current release.

        Raises NoReleaseError before the first publish, CatalogError if the pointer is lost.
        """
        return self._pointer.current() if self._pointer is not None else self.catalog.current().id

    def fetch_findings(self, release: str) -> None:
        """Fetches the findings of a release. Raises NoSuchReleaseError, StoreError."""
        if self._copy is not None:
            self._copy.fetch(release, FINDINGS)

    def fetch_tables(self, *releases: str) -> None:
        """Fetches the tables of releases. Raises NoSuchReleaseError, StoreError."""
        if self._copy is not None:
            for release in releases:
                self._copy.fetch(release, TABLES)


class RolledBack(msgspec.Struct, frozen=True):
    """The result of a rollback."""

    release: str  # current now
    behind: tuple[InstanceRecord, ...]  # live instances that do not serve it yet


def open_releases(settings: Settings) -> "ReleaseOperations":
    """Opens the releases that the settings name. Raises StoreError if the extra `releases` is missing."""
    return FolderReleases(settings) if settings.releases_url is None else StoreReleases(settings)


def roll_back_and_wait(
    releases: "ReleaseOperations", release: str | None, by: str, progress: ProgressCallback = lambda _: None
) -> RolledBack:
    """Makes `release` (None: the one before the current) current again on behalf of the user `by`, and waits."""
    current = releases.roll_back(release, by)
    note_in_trail(releases.settings, current, "rolled-back", by)
    return RolledBack(current, tuple(releases.wait_until_served(current, progress)))


def note_in_trail(settings: Settings, release: str, what: str, by: str, reason: str | None = None) -> None:
    """Adds to the audit trail that a release became current. Never raises: it is current even so. A missing line is
    logged, and the manifest of the release has who published it.

    An embedded key store that does not run is started, unless there is none yet.
    """
    # here, because checks need no client of Redis, which takes a tenth of a second to import
    from service.keys.audit import Change, describe_change, note
    from service.redis.errors import StoreUnavailable
    from service.redis.primary import found_store

    change = Change(what=what, by=by, release=release, reason=reason)

    async def write(url: str) -> None:
        async with found_store("key store", url, _NOTE_SECONDS) as store:
            await note(store, change)

    began = time.monotonic()

    def give_up() -> None:
        if time.monotonic() - began > _NOTE_SECONDS:
            raise EmbeddedError("the embedded key store does not answer")

    if settings.keys_url == EMBEDDED and not owner.has_begun(settings.data_path, "keys"):
        return
    try:
        with owner.borrowed(settings, ("keys",), give_up) as urls:
            asyncio.run(write(urls["keys"]))
    except (SettingsError, EmbeddedError, OSError, StoreUnavailable) as error:
        log.error("%s; the audit trail lacks this: %s", describe_change(change), first_line(error))


class FolderReleases:
    """The releases in the data folder. `StoreReleases` has the same methods.

    All raise CatalogError if the place cannot be read or written, and BusyError if another publisher is at work or
    finished first.
    """

    kind = "data folder"
    served_within = SERVED_SECONDS  # seconds that a live instance may take to serve another release

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._catalog = Catalog(settings.data_path)
        self.place = str(settings.data_path.absolute())
        self.member = {"data_folder": self.place}  # in the JSON of commands

    def current(self) -> str | None:
        """Returns the id of the current release; None before the first publish."""
        pointer = self._catalog.pointer()
        return pointer.release if pointer else None

    @contextmanager
    def reading(self, *, to_compare: bool = False) -> Iterator[ReleaseReader]:  # noqa: ARG002 - everything is here
        """Yields a reader for one block; `to_compare`: with all tables that a drop is compared with."""
        yield ReleaseReader(self._catalog)

    def publish(
        self, paths: Sequence[str], options: PublishOptions, progress: ProgressCallback, *, leave_behind: bool = False
    ) -> PublishOutcome:
        """Publishes the drop at `paths`. `leave_behind`: even if a live instance cannot read the release."""
        from warehouse.publishing.publish import publishing

        check_readers(self.settings.data_path, leave_behind=leave_behind)
        with publishing(self._catalog, paths, options, progress) as publication:
            if publication.next is not None:
                # here, because checks need no client of Redis, which takes a tenth of a second to import
                from service.publishing.warming import warm_release

                publication.note(warm_release(self.settings, publication.folder, publication.next, progress))
                publication.adopt()
                publication.switch()
        return publication.outcome

    def roll_back(self, release: str | None, by: str) -> str:
        """Makes `release` current again, without waiting; returns its id."""
        return folder_changes.roll_back(self._catalog, release, by).id

    def retire(self, releases: Sequence[str]) -> list[str]:
        """Removes the given releases; returns their ids. Removes none if one is unknown or in use."""
        return self._forget_unused(folder_changes.retire(self._catalog, releases))

    def retire_all_but(self, keep: int) -> list[str]:
        """Removes surplus releases by the rule of `surplus`; returns their ids."""
        retired: list[str] = []
        try:
            retired = folder_changes.retire_all_but(self._catalog, keep)
        finally:
            self._forget_unused(retired)
        return retired

    def wait_until_served(self, release: str, progress: ProgressCallback) -> list[InstanceRecord]:
        """Waits `served_within` until every live instance serves `release`; returns those that do not."""
        data = self.settings.data_path
        return wait_until_served(lambda: live_instances(data), release, self.served_within, progress)

    def _forget_unused(self, retired: list[str]) -> list[str]:
        """Removes the cache entries of `retired` releases, and of those on disk that are not in use.

        The current release, the one to roll back to, and those that live instances serve stay warm. Never raises:
        entries that cannot be removed expire.
        """
        try:
            unused = {*retired, *self._catalog.names()} - folder_changes.in_use(self._catalog)
        except (WarehouseError, OSError) as error:
            _log_failure(error)
        else:
            forget_releases(self.settings, unused)
        return retired


class StoreReleases:
    """The releases in the store that FORECAST_RELEASES_URL names. Each instance mirrors it into its data folder, warms
    its cache, and removes what it no longer needs."""

    kind = "store of releases"
    served_within = SERVED_SECONDS

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._store = open_releases_store(settings)
        self.place = self._store.url
        self.member = {"store": self.place}

    def current(self) -> str | None:
        return self._store.pointer().pointer.release

    @contextmanager
    def reading(self, *, to_compare: bool = False) -> Iterator[ReleaseReader]:
        with tempfile.TemporaryDirectory(prefix="forecast-releases-") as folder:
            copy = WorkingCopy(self._store, Path(folder))
            pointer = copy.refresh(tables=to_compare)
            yield ReleaseReader(copy.catalog, copy, pointer)

    def publish(
        self, paths: Sequence[str], options: PublishOptions, progress: ProgressCallback, *, leave_behind: bool = False
    ) -> PublishOutcome:
        from warehouse.publishing.going_live import GoingLive
        from warehouse.publishing.publish import publishing

        copy = WorkingCopy(self._store, self.settings.data_path / _WORKING_COPY, progress)
        by = options.origin.by if options.origin is not None else None
        going_live = GoingLive(self._store, copy.refresh(whole=True), by, progress, leave_behind=leave_behind)
        with publishing(copy.catalog, paths, options, progress) as publication:
            if publication.next is not None:
                folder = publication.adopt()
                publication.switch(going_live.make_current(folder, publication.next, copy.digests()))
        return publication.outcome

    def roll_back(self, release: str | None, by: str) -> str:
        return store_changes.roll_back(self._store, release, by).id

    def retire(self, releases: Sequence[str]) -> list[str]:
        return store_changes.retire(self._store, releases)

    def retire_all_but(self, keep: int) -> list[str]:
        return store_changes.retire_all_but(self._store, keep)

    def wait_until_served(self, release: str, progress: ProgressCallback) -> list[InstanceRecord]:
        now, began = self._store.now(), time.monotonic()

        def live() -> list[InstanceRecord]:
            beats = self._store.live(now + timedelta(seconds=time.monotonic() - began))
            return [beat.instance for beat in beats.values()]

        return wait_until_served(live, release, self.served_within, progress, _POLL_SECONDS)


ReleaseOperations = FolderReleases | StoreReleases


def open_releases_store(settings: Settings) -> ReleasesStore:
    """Opens the store. Raises StoreError if the extra `releases` is missing, SettingsError if no store is set."""
    if settings.releases_url is None:
        raise SettingsError("FORECAST_RELEASES_URL is not set")
    return ReleasesStore(open_objects(settings.releases_url, settings.releases_options), settings.releases_url)


def forget_releases(settings: Settings, unused: set[str]) -> None:
    """Removes `unused` releases from the shared cache. Never raises: entries that cannot be removed expire."""
    # here, because checks need no client of Redis, which takes a tenth of a second to import
    from service.cache.removing import remove_entries
    from service.redis.errors import StoreUnavailable

    try:
        url = owner.running_url(settings, "cache")
        if unused and url is not None:
            asyncio.run(remove_entries(url, unused, _FORGET_SECONDS))
    except (SettingsError, EmbeddedError, OSError, StoreUnavailable) as error:
        _log_failure(error)


def _log_failure(error: Exception) -> None:
    log.info("answers of old releases stay in the shared cache until they expire: %s", first_line(error))
