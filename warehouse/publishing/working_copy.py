"""A publisher's local copy of the store of releases: manifests of all releases, and files of some."""

import shutil
from pathlib import Path

import msgspec

from warehouse.publishing.history import baseline_of, kept_releases
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.changes import remove
from warehouse.releases.pointer import Pointer, no_such_release, unreadable_current
from warehouse.schema.errors import CatalogError, DamagedError, NeedsNewerError, NoSuchReleaseError
from warehouse.schema.progress import ProgressCallback
from warehouse.upstream.documents import StoredRelease, holds
from warehouse.upstream.store import KnownPointer, ReleasesStore

TABLES = "tables/"


class WorkingCopy:
    """A catalog in a folder of its own, no instance's data folder. Its releases may lack files that were not needed."""

    def __init__(self, store: ReleasesStore, folder: Path, progress: ProgressCallback = lambda _: None) -> None:
        self.catalog = Catalog(folder)
        self._store = store
        self._progress = progress
        self._stored: dict[str, StoredRelease] = {}

    def refresh(self, *, whole: bool = False, tables: bool = False) -> KnownPointer:
        """Fetches the manifests of all releases; returns the pointer.

        `tables`: also fetches the tables of the current release and of the baseline, which a drop is compared with.
        `whole`: also all other files of the current release. Without both, a lost pointer is no error, and names all
        whole releases.

        Raises:
            CatalogError: if the pointer is lost, or the current release cannot be read.
            BusyError: if another publisher works in this folder.
            NeedsNewerError: if this version cannot read the current release.
            StoreError: if the store cannot be read.
        """
        known = self._store.pointer_or_rebuilt()
        pointer = known.pointer
        with self.catalog.changing():
            named = [*dict.fromkeys((*pointer.releases, *filter(None, (pointer.release,))))]
            remove(self.catalog, [name for name in self.catalog.names() if name not in named])
            for release in named:
                self._note(release, needed=release == pointer.release and (tables or whole))
            # a first publish that was interrupted leaves releases, and no pointer
            interrupted = known.version is None and not any(
                stored.manifest.previous for stored in self._stored.values()
            )
            if known.lost is not None and (tables or whole) and not interrupted:
                raise CatalogError(known.lost)
            if pointer.release is None or pointer.switched_at is None:
                self.catalog.pointer_file.unlink(missing_ok=True)
                return known
            self.catalog.follow(Pointer(pointer.release, pointer.previous, pointer.switched_at, pointer.by))
            if tables or whole:
                try:
                    self.fetch(pointer.release, "" if whole else TABLES)
                except DamagedError as error:
                    raise unreadable_current(error) from None
                self._fetch_baseline(self._stored[pointer.release].manifest)
        return known

    def digests(self) -> set[str]:
        """Returns the digests of all files of all releases that the pointer names."""
        return {file.digest for stored in self._stored.values() for file in stored.files.values()}

    def fetch(self, release: str, beginning: str) -> None:
        """Fetches the files of a release whose names begin with `beginning`.

        Raises:
            NoSuchReleaseError: if there is no such release.
            StoreError: if it cannot be read.
        """
        stored = self._stored.get(release)
        if stored is None:
            raise no_such_release(release, self._store.url)
        for name, file in stored.files.items():
            target = self.catalog.folder(release) / name
            if name.startswith(beginning) and not holds(target, file):
                self._progress(f"fetching {release}")
                target.parent.mkdir(parents=True, exist_ok=True)
                self._store.fetch(file, target)

    def _fetch_baseline(self, current: Manifest) -> None:
        """Fetches the tables of the baseline. Skips a damaged one: the next one takes its place."""
        while (baseline := baseline_of(kept_releases(self.catalog, current))) is not None:
            try:
                self.fetch(baseline.id, TABLES)
                break
            except DamagedError:
                shutil.rmtree(self.catalog.folder(baseline.id))

    def _note(self, release: str, *, needed: bool) -> None:
        """Writes the manifest of a release. Skips an unreadable one, unless it is needed."""
        folder = self.catalog.folder(release)
        try:
            stored = self._stored[release] = self._store.release(release)
        except (NeedsNewerError, DamagedError, NoSuchReleaseError) as error:
            if needed and isinstance(error, NeedsNewerError):
                raise
            if needed:
                raise unreadable_current(error) from None
            shutil.rmtree(folder, ignore_errors=True)
            return
        folder.mkdir(exist_ok=True)
        (folder / "manifest.json").write_bytes(msgspec.json.encode(stored.manifest))
