"""Rolling back in the store of releases, retiring there, and sweeping left-overs.

A change of the pointer is a fence: publishers that started before it, and have not announced a release, lose the race.
So objects that the pointer no longer names are unused, except those that a publisher is uploading: they are young, or
still named.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import msgspec

from warehouse.releases.catalog import Manifest
from warehouse.releases.changes import check_removable, surplus
from warehouse.releases.pointer import no_such_release
from warehouse.schema.errors import CatalogError, StoreError
from warehouse.upstream.documents import (
    BEATS,
    BLOBS,
    RELEASES,
    StoredPointer,
    blob_name,
    release_name,
    with_new_lineage,
)
from warehouse.upstream.objects import ListedObject
from warehouse.upstream.store import MOST_LISTED, KnownPointer, ReleasesStore

LEFT_OVER_AFTER = timedelta(days=1)
# A sweep ends this long after its listing: later, a publisher may have uploaded the same objects again.
_SWEEP_SECONDS = 10.0


def roll_back(store: ReleasesStore, release: str | None, by: str | None) -> Manifest:
    """Makes `release` current again; without one, the release that was current before. Aborts a publish under way.

    With a release, it also repairs a pointer that is missing, damaged, or went back: instances follow the new one
    whatever they have seen.

    Raises:
        CatalogError: if there is no such release, or a file of it is missing.
        LostRaceError: if the pointer was changed meanwhile.
        StoreError: if the store cannot be read or written.
    """
    known = store.pointer_or_rebuilt()
    pointer = known.pointer
    if release is None:
        known.current()  # raises if there is none
    target = release or pointer.previous
    if target is None:
        raise CatalogError("there was no release before the current one")
    if pointer.releases and target not in pointer.releases:
        raise no_such_release(target, store.url)
    stored = store.release(target)
    blobs = {one.name: one.bytes for one in store.objects.list(BLOBS)}
    for file in stored.files.values():
        name = blob_name(file.digest)
        if blobs.get(name) != file.bytes:
            raise CatalogError(f"release {target} is damaged: {name} in {store.url} is missing or incomplete")
    changed = msgspec.structs.replace(
        pointer,
        release=target,
        previous=pointer.release if pointer.release != target else pointer.previous,
        switched_at=datetime.now(UTC),
        by=by,
        releases=pointer.releases or (target,),
        next=None,
    )
    store.change(known, with_new_lineage(changed) if release is not None else changed)
    return stored.manifest


def retire(store: ReleasesStore, releases: Sequence[str]) -> list[str]:
    """Removes the given releases; returns their ids.

    Raises:
        CatalogError: if one does not exist or is in use. Then none is removed.
        LostRaceError: if the pointer was changed meanwhile.
    """
    known = store.pointer()
    releases = list(dict.fromkeys(releases))
    check_removable(releases, known.pointer.releases, in_use(store, known.pointer), store.url)
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
            continue  # damaged, or of a newer version: removed once it is surplus
    return _remove(store, known, surplus(names, manifests, keep, in_use(store, known.pointer)))


def in_use(store: ReleasesStore, pointer: StoredPointer) -> set[str]:
    """Returns the ids of the releases that must stay: also those that live instances serve, by the store's clock."""
    named = {pointer.release, pointer.previous, pointer.next.release if pointer.next is not None else None}
    beats, unread = store.live_and_unread(store.now())
    if unread is not None:
        raise CatalogError(
            f"it is unknown which releases instances serve, so none is retired: {unread}. Delete objects that no "
            f"instance wrote below {BEATS}/ of {store.url}: live instances write their beats again within 10 s"
        )
    served = {release for beat in beats.values() for release in beat.instance.releases}
    return {release for release in named | served if release is not None}


def sweep(store: ReleasesStore, known: KnownPointer, now: datetime) -> int:
    """Deletes unused objects older than a day; returns how many. `now` is the store's time.

    `known` is a pointer that the caller has just read or written.
    """
    pointer, listed_at = known.pointer, time.monotonic()
    named = {*pointer.releases, pointer.next.release if pointer.next is not None else None}
    documents = {Path(one.name).stem: one for one in store.objects.list(RELEASES)}
    old = [name for name, one in documents.items() if name not in named and now - one.modified > LEFT_OVER_AFTER]
    try:
        needed = store.digests(name for name in documents if name not in old)
    except CatalogError:
        return 0  # of a newer version, say: the blobs that it needs are unknown
    blobs = [one for one in store.objects.list(BLOBS) if Path(one.name).name not in needed]
    beats: list[ListedObject] = []
    with suppress(StoreError):  # a name that the client cannot read ends a listing
        beats.extend(islice(store.objects.list(BEATS), MOST_LISTED))
    gone = [release_name(name) for name in old]
    gone += [one.name for one in (*blobs, *beats) if now - one.modified > LEFT_OVER_AFTER]
    for at, name in enumerate(gone):
        if time.monotonic() - listed_at > _SWEEP_SECONDS:
            return at
        store.objects.delete(name)
    return len(gone)


def _remove(store: ReleasesStore, known: KnownPointer, releases: Sequence[str]) -> list[str]:
    """Removes releases from the pointer first, so that no other process finds one half removed."""
    if releases:
        left = tuple(one for one in known.pointer.releases if one not in releases)
        known = store.change(known, msgspec.structs.replace(known.pointer, releases=left))
    for release in releases:
        store.objects.delete(release_name(release))
    sweep(store, known, store.now())
    return list(releases)
