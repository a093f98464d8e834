"""The store of releases: the pointer and its compare-and-swap, releases and their files, the beats of instances."""

import secrets
import time
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from heapq import nlargest
from pathlib import Path

import msgspec

from config.text import printable_struct
from warehouse.releases.catalog import RELEASE_FORMAT, Manifest, NeededFormat, check_format
from warehouse.releases.pointer import is_release_id, no_such_release
from warehouse.schema.errors import (
    CatalogError,
    ConflictError,
    DamagedError,
    LostRaceError,
    NeedsNewerError,
    NoReleaseError,
    NoSuchReleaseError,
    StoreError,
)
from warehouse.schema.progress import ProgressCallback
from warehouse.upstream.documents import (
    BEATS,
    BLOBS,
    CLOCK,
    LAST_SERIAL,
    MOST_RELEASES,
    POINTER,
    RELEASES,
    Beat,
    FileOfRelease,
    StoredPointer,
    StoredRelease,
    beat_name,
    blob_name,
    describe_file,
    explain_lost_race,
    release_name,
    sealed,
    unsealed,
    with_new_lineage,
)
from warehouse.upstream.objects import ListedObject, Objects, StoredObject, Unchanged, Version

# An instance writes a beat every `BEAT_SECONDS`, and counts as dead after `_DEAD_AFTER` without one.
BEAT_SECONDS = 10.0
_DEAD_AFTER = timedelta(seconds=60)
# A sweep may be deleting a blob that no release names (`changes.sweep`), so a publisher trusts young ones only.
_TRUSTED_FOR = timedelta(hours=12)
# A real beat has a few KB, and a real store dozens. Writers of beats must not be able to fill the memory of publishers,
# or to delay them for long.
_LARGEST_BEAT = 128 << 10
_MOST_BEATS = 500
MOST_LISTED = 10_000
_READING_SECONDS = 20.0
_NO_POINTER = StoredPointer(serial=0, release=None)


class KnownPointer(msgspec.Struct, frozen=True):
    """The pointer as it was read, and the version that a change replaces; None if there is no pointer yet."""

    pointer: StoredPointer
    version: Version | None
    lost: str | None = None  # why it could not be read, so that no release is current, with the remedy

    def current(self) -> str:
        """Returns the id of the current release.

        Raises NoReleaseError before the first publish, CatalogError if it is lost.
        """
        if self.lost is not None:
            raise CatalogError(self.lost)
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
        assert known is not None  # noqa: S101 - only a known pointer can be unchanged
        return known

    def pointer_unless(self, known: KnownPointer | None) -> KnownPointer | None:
        """Returns the pointer; None if it is still the one `known`."""
        found = self.objects.get(POINTER, known.version if known is not None else None)
        if isinstance(found, Unchanged):
            return None
        if found is None:
            return KnownPointer(_NO_POINTER, None)
        try:
            return KnownPointer(unsealed(POINTER, found.data, StoredPointer), found.version)
        except DamagedError as error:
            raise DamagedError(f"{error}; `forecast extracts rollback RELEASE` writes a new one") from None

    def pointer_or_rebuilt(self) -> KnownPointer:
        """Returns the pointer.

        If it is missing, damaged, or names no readable release: one of all whole releases, without a current one.
        """
        rebuilt, version, reason = _NO_POINTER, None, f"{POINTER} is missing in {self.url}"
        try:
            known = self.pointer()
            if known.version is not None:
                if self._names_readable(known.pointer):
                    return known
                rebuilt = msgspec.structs.replace(known.pointer, release=None, previous=None, next=None)
                version, reason = known.version, f"{POINTER} in {self.url} names no release that can be read"
        except DamagedError as error:
            version, reason = self.objects.version(POINTER), str(error).partition(";")[0]
        whole = self._whole_releases()
        lost = (
            f"{reason}; the store has releases: `forecast extracts rollback RELEASE` makes one current again; "
            f"the newest is {whole[0]}"
            if whole
            else f"{reason}, and no release is whole: delete {POINTER} in {self.url}, and publish"
        )
        if version is None and not whole:
            return KnownPointer(_NO_POINTER, None)
        return KnownPointer(msgspec.structs.replace(rebuilt, releases=whole), version, lost)

    def change(self, known: KnownPointer, pointer: StoredPointer) -> KnownPointer:
        """Replaces the pointer `known` with `pointer`, whose serial and writer are set here.

        Raises:
            LostRaceError: if another process replaced it first. The store is then unchanged.
            StoreError: also if it is unknown whether the store has the change.
        """
        serial = known.pointer.serial + 1
        if serial > LAST_SERIAL:
            serial, pointer = 1, with_new_lineage(pointer)
        pointer = msgspec.structs.replace(pointer, serial=serial, writer=secrets.token_hex(8))
        try:
            version = self.objects.replace(POINTER, sealed(pointer), known.version)
        except (ConflictError, StoreError) as error:
            found = self.pointer()  # a retry after a lost reply conflicts with its own version
            if found.pointer.writer == pointer.writer:
                return found
            if isinstance(error, ConflictError):
                raise LostRaceError(explain_lost_race(found.pointer)) from None
            raise
        return KnownPointer(pointer, version)

    # --- releases ------------------------------------------------------------------------------------------------

    def release(self, release: str) -> StoredRelease:
        """Returns a release, whether the pointer names it or not.

        Raises:
            NoSuchReleaseError: if there is none.
            NeedsNewerError: if this version cannot read it.
        """
        # a text that is no id may be a path
        found = self.objects.get(release_name(release)) if is_release_id(release) else None
        if found is None or isinstance(found, Unchanged):
            raise no_such_release(release, self.url)
        name = release_name(release)
        check_format(release, unsealed(name, found.data, NeededFormat).format)
        stored = unsealed(name, found.data, StoredRelease)
        if stored.manifest.id != release:
            raise DamagedError(f"{name} in {self.url} belongs to another release, {stored.manifest.id}")
        return stored

    def upload(
        self, folder: Path, manifest: Manifest, named: Collection[str], progress: ProgressCallback = lambda _: None
    ) -> StoredRelease:
        """Uploads the release in `folder`: its blobs, then its document. It is not used before a pointer names it.

        `named` are digests that releases of the pointer name: the store has those.
        """
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / "manifest.json")
        files = {str(path.relative_to(folder)): describe_file(path) for path in paths}
        there = self._trusted(named)
        for at, (name, file) in enumerate(files.items(), start=1):
            progress(f"uploading {at} of {len(files)} files")
            blob = blob_name(file.digest)
            if there.get(file.digest) != file.bytes and not self.objects.create(blob, folder / name):
                self.objects.put(blob, folder / name)  # the same bytes: it is young again, and whole if it was not
        stored = StoredRelease(format=RELEASE_FORMAT, manifest=manifest, files=files)
        is_new = self.objects.create(release_name(manifest.id), sealed(stored))
        if not is_new and self.release(manifest.id).files != files:  # both were built within a second
            raise LostRaceError(f"another publish finished first: it built {manifest.id}, too")
        return stored

    def fetch(self, file: FileOfRelease, target: Path) -> None:
        """Downloads a file to `target`, which is created only if its digest is right.

        Raises:
            DamagedError: if its blob is missing or damaged.
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
                raise DamagedError(f"{name} in {self.url} is damaged: its contents do not match its name")
            part.replace(target)
        except FileNotFoundError as error:
            raise DamagedError(f"{name} is missing in {self.url}") from error
        finally:
            part.unlink(missing_ok=True)

    def digests(self, releases: Iterable[str]) -> set[str]:
        """Returns the digests of all files of `releases`."""
        return {file.digest for release in releases for file in self.release(release).files.values()}

    # --- instances -----------------------------------------------------------------------------------------------

    def beat(self, name: str, beat: Beat) -> None:
        self.objects.put(beat_name(name), sealed(beat))

    def end_beat(self, name: str) -> None:
        self.objects.delete(beat_name(name))

    def live(self, now: datetime) -> dict[str, Beat]:
        """Returns the newest beat of each live instance, by its id. `now` is the store's time.

        An unreadable beat is skipped: its instance writes the next one within seconds.
        """
        return self.live_and_unread(now)[0]

    def live_and_unread(self, now: datetime) -> tuple[dict[str, Beat], str | None]:
        """Returns the same, and why there may be more live instances; None if there are not."""
        beats: dict[str, Beat] = {}
        began = time.monotonic()
        fresh, unread = self._fresh_beats(now)
        newest = nlargest(_MOST_BEATS, fresh, key=lambda listed: listed.modified)
        for one in sorted(newest, key=lambda listed: listed.name):
            try:
                if time.monotonic() - began > _READING_SECONDS:
                    raise StoreError(f"reading {BEATS}/ takes more than {_READING_SECONDS:g} s")
                if (beat := self._read_beat(one)) is not None:
                    beats[Path(one.name).stem] = beat
            except StoreError as error:
                unread = str(error)
        return beats, unread

    def now(self) -> datetime:
        """Returns the store's time: that of an object written just now."""
        self.objects.put(CLOCK, secrets.token_bytes(8))
        modified = self.objects.modified(CLOCK)
        if modified is None:
            raise StoreError(f"{CLOCK} in {self.url} is missing right after it was written")
        return modified

    def _fresh_beats(self, now: datetime) -> tuple[list[ListedObject], str | None]:
        fresh: list[ListedObject] = []
        try:
            for at, one in enumerate(self.objects.list(BEATS)):
                if at == MOST_LISTED:
                    return fresh, f"{BEATS}/ has more than {MOST_LISTED:,} objects"
                if abs(now - one.modified) <= _DEAD_AFTER:
                    fresh.append(one)
        except StoreError as error:  # a name that the client cannot read ends a listing
            return fresh, str(error)
        return fresh, f"{BEATS}/ has beats of more than {_MOST_BEATS:,} instances" if fresh[_MOST_BEATS:] else None

    def _read_beat(self, listed: ListedObject) -> Beat | None:
        if listed.bytes > _LARGEST_BEAT:
            raise DamagedError(f"{listed.name} has {listed.bytes:,} bytes; a beat has at most {_LARGEST_BEAT:,}")
        found = self.objects.get(listed.name)
        if not isinstance(found, StoredObject):
            return None
        beat: Beat = printable_struct(unsealed(listed.name, found.data, Beat))
        return beat

    def _whole_releases(self) -> tuple[str, ...]:
        """Returns the releases that can be current, newest first, including left-overs of publishers."""
        blobs = {Path(one.name).name: one.bytes for one in self.objects.list(BLOBS)}
        whole = []
        for name in sorted(filter(is_release_id, all_releases(self)), reverse=True):
            files = self._readable_files(name)
            if files is not None and all(blobs.get(file.digest) == file.bytes for file in files):
                whole.append(name)
        return tuple(whole[:MOST_RELEASES])

    def _names_readable(self, pointer: StoredPointer) -> bool:
        """Returns whether a release that the pointer names can be read, or it names none yet."""
        named = dict.fromkeys(filter(None, (pointer.release, *pointer.releases)))
        return not named or any(self._readable_files(release) is not None for release in named)

    def _readable_files(self, release: str) -> Collection[FileOfRelease] | None:
        """Returns the files of a release; none if only a newer version can read it, None if it cannot be read."""
        try:
            return self.release(release).files.values()
        except NeedsNewerError:
            return ()
        except (DamagedError, NoSuchReleaseError):
            return None

    def _trusted(self, named: Collection[str]) -> dict[str, int]:
        """Digests and sizes of the blobs that are `named`, or young."""
        listed = list(self.objects.list(BLOBS))
        if not listed:
            return {}
        oldest = self.now() - _TRUSTED_FOR
        digests = ((Path(one.name).name, one) for one in listed)
        return {digest: one.bytes for digest, one in digests if digest in named or one.modified > oldest}


def all_releases(store: ReleasesStore) -> set[str]:
    """Returns the ids of all releases in the store, left-overs included."""
    return {Path(one.name).stem for one in store.objects.list(RELEASES)}
