"""Rolling back in the store of releases, retiring there, and sweeping left-overs.

A change of the pointer is a fence: whoever began before it, and has not announced a release, loses. So what the pointer
does not name any more is nobody's, but for what a publisher is uploading: that is young, or named still.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from warehouse.releases.catalog import Manifest
from warehouse.releases.retire import surplus
from warehouse.schema.errors import CatalogError, NoReleaseError, NoSuchReleaseError, StoreError
from warehouse.upstream.documents import BEATS, BLOBS, POINTER, RELEASES, StoredPointer, blob_name, release_name
from warehouse.upstream.objects import StoredObject
from warehouse.upstream.store import KnownPointer, ReleasesStore, all_releases

LEFT_OVER_AFTER = timedelta(days=1)
# A sweep deletes what it listed this long ago at most: meanwhile, a publisher may have uploaded the same again.
_SWEEP_SECONDS = 10.0


def roll_back(store: ReleasesStore, release: str | None, by: str | None) -> Manifest:
    """Makes `release` current again; without one, the release that was current before. Ends what is being published.

    With a release, it also repairs a pointer that is gone, damaged, or went back: its serial then exceeds what any live
    instance has seen.

    Raises:
        CatalogError: if there is no such release, or a file of it is missing.
        LostRaceError: if somebody else changed the pointer meanwhile.
        StoreError: if the store cannot be read or written.
    """
    known = _known_to_repair(store) if release is not None else store.pointer()
    pointer = known.pointer
    target = release or _previous(pointer)
    if pointer.releases and target not in pointer.releases:
        raise NoSuchReleaseError(f"no release {target} in {store.url}; `forecast extracts list` shows the releases")
    stored = store.release(target)
    _check_blobs(store, target, {file.digest: file.bytes for file in stored.files.values()})
    seen = max((beat.serial for beat in store.live(store.now()).values()), default=0)
    if target == pointer.release and pointer.next is None and seen <= pointer.serial:
        return stored.manifest
    changed = msgspec.structs.replace(
        pointer,
        serial=max(pointer.serial, seen),
        release=target,
        previous=pointer.release if pointer.release != target else pointer.previous,
        switched_at=datetime.now(UTC),
        by=by,
        releases=pointer.releases or (target,),
        next=None,
    )
    store.change(known, changed)
    return stored.manifest


def retire(store: ReleasesStore, releases: Sequence[str]) -> list[str]:
    """Removes the given releases; returns their ids.

    Raises:
        CatalogError: if one does not exist or is in use. Then none is removed.
        LostRaceError: if somebody else changed the pointer meanwhile.
    """
    known = store.pointer()
    used = in_use(store, known.pointer)
    releases = list(dict.fromkeys(releases))
    for release in releases:
        if release not in known.pointer.releases:
            raise NoSuchReleaseError(
                f"no release {release} in {store.url}; `forecast extracts list` shows the releases"
            )
        if release in used:
            raise CatalogError(f"{release} is in use: it is current, the one to roll back to, or served by an instance")
    return _remove(store, known, releases)


def retire_all_but(store: ReleasesStore, keep: int) -> list[str]:
    """Removes surplus releases, by the rule of the catalog; returns their ids. Raises as `retire`."""
    known = store.pointer()
    names = sorted(known.pointer.releases, reverse=True)
    manifests = []
    for name in names:
        try:
            manifests.append(store.release(name).manifest)
        except CatalogError:
            continue  # damaged, or of a newer version: it goes when it is surplus
    return _remove(store, known, surplus(names, manifests, keep, in_use(store, known.pointer)))


def in_use(store: ReleasesStore, pointer: StoredPointer) -> set[str]:
    """The ids of the releases that must stay: also what a live instance serves, by the store's clock."""
    named = {pointer.release, pointer.previous, pointer.next.release if pointer.next is not None else None}
    served = {release for beat in store.live(store.now()).values() for release in beat.instance.releases}
    return {release for release in named | served if release is not None}


def sweep(store: ReleasesStore, known: KnownPointer, now: datetime) -> int:
    """Deletes what is older than a day and named by nothing; returns how many objects. `now` is the store's time.

    `known` is a pointer that the caller has just read or written.
    """
    pointer, listed_at = known.pointer, time.monotonic()
    named = {*pointer.releases, pointer.next.release if pointer.next is not None else None}
    documents = {Path(one.name).stem: one for one in store.objects.list(RELEASES)}
    old = [name for name, one in documents.items() if name not in named and now - one.modified > LEFT_OVER_AFTER]
    try:
        needed = store.digests(name for name in documents if name not in old)
    except CatalogError:
        return 0  # of a newer version, say: nobody knows what it needs
    blobs = [one for one in store.objects.list(BLOBS) if Path(one.name).name not in needed]
    beats = list(store.objects.list(BEATS))
    gone = [release_name(name) for name in old]
    gone += [one.name for one in (*blobs, *beats) if now - one.modified > LEFT_OVER_AFTER]
    for at, name in enumerate(gone):
        if time.monotonic() - listed_at > _SWEEP_SECONDS:
            return at
        store.objects.delete(name)
    return len(gone)


def _remove(store: ReleasesStore, known: KnownPointer, releases: Sequence[str]) -> list[str]:
    """The pointer first: what it does not name is not there, whatever happens next."""
    if releases:
        left = tuple(one for one in known.pointer.releases if one not in releases)
        known = store.change(known, msgspec.structs.replace(known.pointer, releases=left))
    for release in releases:
        store.objects.delete(release_name(release))
    sweep(store, known, store.now())
    return list(releases)


def _previous(pointer: StoredPointer) -> str:
    if pointer.release is None:
        raise NoReleaseError("nothing has been published yet in the store, so there is nothing to roll back to")
    if pointer.previous is None:
        raise CatalogError("there was no release before the current one")
    return pointer.previous


def _known_to_repair(store: ReleasesStore) -> KnownPointer:
    """The pointer; if it is gone or damaged, one that names the releases that live instances have."""
    try:
        known = store.pointer()
        if known.version is not None:
            return known
    except StoreError:
        pass  # damaged; a store that is away raises again
    found = store.objects.get(POINTER)
    ready = {release for beat in store.live(store.now()).values() for release in beat.ready}
    there = ready & all_releases(store)
    pointer = StoredPointer(serial=0, release=None, releases=tuple(sorted(there, reverse=True)))
    return KnownPointer(pointer, found.version if isinstance(found, StoredObject) else None)


def _check_blobs(store: ReleasesStore, release: str, files: dict[str, int]) -> None:
    there = {one.name: one.bytes for one in store.objects.list(BLOBS)}
    for digest, size in files.items():
        if there.get(blob_name(digest)) != size:
            raise CatalogError(f"release {release} is damaged: {blob_name(digest)} in {store.url} is missing or cut")
