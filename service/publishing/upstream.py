"""Publishing and reading where `FORECAST_RELEASES_URL` names a store of releases."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from config.settings import Settings
from service.publishing.releases_store import SERVED_WITHIN_SECONDS, open_store
from warehouse.publishing.going_live import GoingLive, wait_until_served
from warehouse.publishing.publish import PublishOptions, PublishOutcome, publish
from warehouse.publishing.working_copy import TABLES, WorkingCopy
from warehouse.releases.catalog import FINDINGS, Catalog, Manifest
from warehouse.releases.instances import InstanceRecord
from warehouse.schema.errors import BusyError, CatalogError
from warehouse.schema.findings import Finding
from warehouse.schema.progress import ProgressCallback
from warehouse.upstream import changes
from warehouse.upstream.store import KnownPointer

# In the data folder; no instance reads it. Kept, so that the next publish fetches less.
_WORKING_COPY = "publisher"


def publish_in_store(
    settings: Settings,
    paths: Sequence[str],
    options: PublishOptions,
    progress: ProgressCallback,
    *,
    leave_behind: bool = False,
) -> tuple[PublishOutcome, list[InstanceRecord], list[str]]:
    """Returns the outcome, the live instances that do not serve the release yet, and what was retired.

    Raises:
        LostRaceError: if somebody else published meanwhile.
        BusyError: if another publisher works in this data folder.
        StoreError: if the store cannot be read or written.
    """
    store = open_store(settings)
    copy = WorkingCopy(store, settings.data_path / _WORKING_COPY, progress)
    known = copy.refresh(whole=True)
    by = options.origin.by if options.origin is not None else None
    going_live = GoingLive(store, known, by, progress, leave_behind=leave_behind)

    def make_current(folder: Path, manifest: Manifest) -> list[Finding]:
        return going_live.make_current(folder, manifest, copy.digests())

    outcome = publish(copy.catalog, paths, options, progress, make_current=make_current)
    if outcome.manifest is None or outcome.result in ("refused", "held"):
        return outcome, [], []
    behind = wait_until_served(store, outcome.manifest.id, SERVED_WITHIN_SECONDS, progress)
    retired: list[str] = []
    if outcome.result == "published":
        try:
            retired = changes.retire_all_but(store, settings.keep_releases)
        except (BusyError, CatalogError):
            retired = []  # the release is live all the same; the next publish retires
    return outcome, behind, retired


class ReleaseReader:
    """Where a command reads releases: in the data folder, or in a copy of what the store has.

    A copy has all manifests; further files come when they are asked for.
    """

    def __init__(self, catalog: Catalog, copy: WorkingCopy | None = None, known: KnownPointer | None = None) -> None:
        """`copy` and `known`: if there is a store."""
        self.catalog = catalog
        self._copy = copy
        self._known = known

    @property
    def lost(self) -> str | None:
        """Why nobody knows which release is current, with the remedy; None if it is known."""
        return self._known.lost if self._known is not None else self.catalog.lost

    def current(self) -> str:
        """The id of the current release. Raises NoReleaseError before the first publish, CatalogError if it is lost."""
        return self._known.current() if self._known is not None else self.catalog.current().id

    def need_findings(self, release: str) -> None:
        """Raises NoSuchReleaseError, StoreError."""
        if self._copy is not None:
            self._copy.fetch(release, FINDINGS)

    def need_tables(self, *releases: str) -> None:
        """Raises NoSuchReleaseError, StoreError."""
        if self._copy is not None:
            for release in releases:
                self._copy.fetch(release, TABLES)


@contextmanager
def reading(settings: Settings, *, to_compare: bool = False) -> Iterator[ReleaseReader]:
    """The releases, for as long as the block; `to_compare`: with all tables that a drop is compared with.

    Raises:
        StoreError: if a store is set and cannot be read.
    """
    if settings.releases_url is None:
        yield ReleaseReader(Catalog(settings.data_path))
        return
    with tempfile.TemporaryDirectory(prefix="forecast-releases-") as folder:
        copy = WorkingCopy(open_store(settings), Path(folder))
        known = copy.refresh(tables=to_compare)
        yield ReleaseReader(copy.catalog, copy, known)
