"""The store of releases: the pointer and its compare-and-swap, releases and their files, the beats of instances."""

import secrets
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

import msgspec

from warehouse.releases.catalog import RELEASE_FORMAT, Manifest, NeededFormat, check_format
from warehouse.schema.errors import (
    ConflictError,
    LostRaceError,
    NoReleaseError,
    NoSuchReleaseError,
    StoreError,
)
from warehouse.schema.progress import ProgressCallback
from warehouse.upstream.documents import (
    BEATS,
    BLOBS,
    CLOCK,
    POINTER,
    RELEASES,
    Beat,
    FileOfRelease,
    StoredPointer,
    StoredRelease,
    beat_name,
    blob_name,
    release_name,
    sealed,
    unsealed,
)
from warehouse.upstream.files import described
from warehouse.upstream.objects import Objects, Unchanged, Version

# An instance writes a beat every `BEAT_SECONDS`, and is dead without one for so long.
BEAT_SECONDS = 10.0
_DEAD_AFTER = timedelta(seconds=60)
# A blob that no release names may be on its way out (`sweeping`), so a publisher trusts young ones only.
_TRUSTED_FOR = timedelta(hours=12)
# A real one has a few KB. Whoever may write beats must not fill the memory of publishers.
_LARGEST_BEAT = 1 << 20
_NO_POINTER = StoredPointer(serial=0, release=None)


class KnownPointer(msgspec.Struct, frozen=True):
    """The pointer as it was read, and the version that a change replaces; None: there is none yet."""

    pointer: StoredPointer
    version: Version | None

    def current(self) -> str:
        """The id of the current release. Raises NoReleaseError before the first publish."""
        if self.pointer.release is None:
            raise NoReleaseError("nothing has been published yet in the store: run `forecast extracts publish PATH`")
        return self.pointer.release


class ReleasesStore:
    """The releases in one bucket and prefix. Keeps nothing in memory. All methods raise StoreError."""

    def __init__(self, objects: Objects, url: str = "the store of releases") -> None:
        self.objects = objects
        self.url = url  # for messages

    # --- the pointer ---------------------------------------------------------------------------------------------

    def pointer(self) -> KnownPointer:
        known = self.pointer_unless(None)
        assert known is not None  # noqa: S101 - nothing is unchanged that nobody knew
        return known

    def pointer_unless(self, known: KnownPointer | None) -> KnownPointer | None:
        """The pointer; None if it is still the one `known`."""
        found = self.objects.get(POINTER, known.version if known is not None else None)
        if isinstance(found, Unchanged):
            return None
        if found is None:
            return KnownPointer(_NO_POINTER, None)
        try:
            return KnownPointer(unsealed(POINTER, found.data, StoredPointer), found.version)
        except StoreError as error:
            raise StoreError(f"{error}; `forecast extracts rollback RELEASE` writes it anew") from None

    def change(self, known: KnownPointer, pointer: StoredPointer) -> KnownPointer:
        """Replaces the pointer that is `known` by `pointer`, whose serial and writer are set here.

        Raises:
            LostRaceError: if somebody else replaced it first. Nothing has changed then.
            StoreError: also if it is not known whether the store has it; then it may have.
        """
        serial = max(pointer.serial, known.pointer.serial) + 1
        pointer = msgspec.structs.replace(pointer, serial=serial, writer=secrets.token_hex(8))
        try:
            version = self.objects.replace(POINTER, sealed(pointer), known.version)
        except (ConflictError, StoreError) as error:
            found = self.pointer()  # a request whose answer was lost is sent again, and then meets its own version
            if found.pointer.writer == pointer.writer:
                return found
            if isinstance(error, ConflictError):
                raise LostRaceError(_lost_to(found.pointer)) from None
            raise
        return KnownPointer(pointer, version)

    # --- releases ------------------------------------------------------------------------------------------------

    def release(self, release: str) -> StoredRelease:
        """A release, whether the pointer names it or not.

        Raises:
            NoSuchReleaseError: if there is none.
            NeedsNewerError: if this version cannot read it.
        """
        # what is no id may be a path
        found = self.objects.get(release_name(release)) if release.replace("-", "").isalnum() else None
        if found is None or isinstance(found, Unchanged):
            raise NoSuchReleaseError(f"no release {release} in {self.url}; `forecast extracts list` shows the releases")
        name = release_name(release)
        check_format(release, unsealed(name, found.data, NeededFormat).format)
        stored = unsealed(name, found.data, StoredRelease)
        if stored.manifest.id != release:
            raise StoreError(f"{name} in {self.url} belongs to another release, {stored.manifest.id}")
        return stored

    def upload(
        self, folder: Path, manifest: Manifest, named: Collection[str], progress: ProgressCallback = lambda _: None
    ) -> StoredRelease:
        """Uploads the release in `folder`: its blobs, then its document. Nobody sees it before a pointer names it.

        `named` are digests that releases of the pointer name: those are there.
        """
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / "manifest.json")
        files = {str(path.relative_to(folder)): described(path) for path in paths}
        there = self._trusted(named)
        for at, (name, file) in enumerate(files.items(), start=1):
            progress(f"uploading {at} of {len(files)} files")
            blob = blob_name(file.digest)
            if there.get(file.digest) != file.bytes and not self.objects.create(blob, folder / name):
                self.objects.put(blob, folder / name)  # the same bytes: it is young again, and whole if it was not
        stored = StoredRelease(format=RELEASE_FORMAT, manifest=manifest, files=files)
        if not self.objects.create(release_name(manifest.id), sealed(stored)):
            self._check_same(stored)
        return stored

    def fetch(self, file: FileOfRelease, target: Path) -> None:
        """Downloads a file to `target`, which is there afterwards only if its digest is right.

        Raises:
            StoreError: if its blob is missing or damaged.
            OSError: if it cannot be written.
        """
        name = blob_name(file.digest)
        part = target.with_name(f"{target.name}.part")
        digest, size = sha256(), 0
        try:
            with part.open("wb") as stream:
                for block in self.objects.stream(name):
                    size += len(block)
                    if size > file.bytes:
                        break
                    digest.update(block)
                    stream.write(block)
            if size != file.bytes or digest.hexdigest() != file.digest:
                raise StoreError(f"{name} in {self.url} is damaged: its contents are not those of its name")
            part.replace(target)
        except FileNotFoundError as error:
            raise StoreError(f"{name} is missing in {self.url}") from error
        finally:
            part.unlink(missing_ok=True)

    def digests(self, releases: Iterable[str]) -> set[str]:
        """Of all files of `releases`."""
        return {file.digest for release in releases for file in self.release(release).files.values()}

    # --- instances -----------------------------------------------------------------------------------------------

    def beat(self, name: str, beat: Beat) -> None:
        self.objects.put(beat_name(name), sealed(beat))

    def end_beat(self, name: str) -> None:
        self.objects.delete(beat_name(name))

    def live(self, now: datetime) -> dict[str, Beat]:
        """The newest beat of each live instance, by its id. `now` is the store's time.

        One that cannot be read counts as none: its instance writes the next within seconds, and nobody else is held up.
        """
        beats = {}
        for one in sorted(self.objects.list(BEATS), key=lambda listed: listed.name):
            if now - one.modified > _DEAD_AFTER or one.bytes > _LARGEST_BEAT:
                continue
            found = self.objects.get(one.name)
            if found is not None and not isinstance(found, Unchanged):
                with suppress(StoreError):
                    beats[Path(one.name).stem] = unsealed(one.name, found.data, Beat)
        return beats

    def now(self) -> datetime:
        """The store's time: that of an object written just now."""
        self.objects.put(CLOCK, secrets.token_bytes(8))
        modified = self.objects.modified(CLOCK)
        if modified is None:
            raise StoreError(f"{CLOCK} in {self.url} is gone right after it was written")
        return modified

    def _trusted(self, named: Collection[str]) -> dict[str, int]:
        """Digests and sizes of the blobs that are `named`, or young."""
        listed = list(self.objects.list(BLOBS))
        if not listed:
            return {}
        oldest = self.now() - _TRUSTED_FOR
        digests = ((Path(one.name).name, one) for one in listed)
        return {digest: one.bytes for digest, one in digests if digest in named or one.modified > oldest}

    def _check_same(self, stored: StoredRelease) -> None:
        """Somebody created a release of this id: the same tables, within the same second."""
        if self.release(stored.manifest.id).files != stored.files:
            raise LostRaceError(f"another publisher was first: it built {stored.manifest.id}, too")


def all_releases(store: ReleasesStore) -> set[str]:
    """The ids of all releases in the store, left-overs included."""
    return {Path(one.name).stem for one in store.objects.list(RELEASES)}


def _lost_to(pointer: StoredPointer) -> str:
    if pointer.next is not None:
        return f"another publisher was first: {pointer.next.by or 'somebody'} is publishing {pointer.next.release}"
    return f"another publisher was first: {pointer.release} is current now, by {pointer.by or 'somebody'}"
