"""Changes of releases on disk: rolling back, and removing old releases, but never one that is in use."""

import shutil
from collections.abc import Collection, Iterable, Sequence

from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.instances import live_instances
from warehouse.releases.pointer import no_such_release
from warehouse.schema.errors import CatalogError, NoReleaseError
from warehouse.schema.tables import HOUSING, POPULATION


def roll_back(catalog: Catalog, release: str | None = None, by: str | None = None) -> Manifest:
    """Makes `release`, by default the one that was current before, current again on behalf of the user `by`.

    Raises:
        CatalogError: if there is no such release, or it is damaged.
        BusyError: if a publisher is at work.
    """
    with catalog.changing():
        manifest = catalog.manifest(release or _previous(catalog))
        catalog.verify(manifest)
        catalog.switch(manifest.id, by)
        return manifest


def _previous(catalog: Catalog) -> str:
    pointer = catalog.known_pointer()
    if pointer is None:
        raise NoReleaseError(f"nothing has been published yet in {catalog.data.absolute()}, so no rollback is possible")
    if pointer.previous is None:
        raise CatalogError("there was no release before the current one")
    return pointer.previous


def in_use(catalog: Catalog) -> set[str]:
    """Returns the ids of the releases that must stay. Raises CatalogError if the current release is unknown."""
    pointer = catalog.known_pointer()
    named = {pointer.release, pointer.previous} if pointer else set()
    served = {release for record in live_instances(catalog.data) for release in record.releases}
    return {release for release in named | served if release is not None}


def retire(catalog: Catalog, releases: Sequence[str]) -> list[str]:
    """Removes the given releases; returns their ids.

    Raises:
        CatalogError: if one does not exist or is in use. Then none is removed.
        BusyError: if a publisher is at work.
    """
    releases = list(dict.fromkeys(releases))
    with catalog.changing():
        check_removable(releases, catalog.names(), in_use(catalog), catalog.data.absolute())
        return remove(catalog, releases)


def check_removable(releases: Iterable[str], there: Collection[str], used: Collection[str], place: object) -> None:
    """Raises CatalogError if one of `releases` is `used`, or missing among those that are `there`, in `place`."""
    for release in releases:
        if release not in there:
            raise no_such_release(release, place)
        if release in used:
            raise CatalogError(f"{release} is in use: it is current, the one to roll back to, or served by an instance")


def retire_all_but(catalog: Catalog, keep: int) -> list[str]:
    """Removes surplus releases; returns their ids.

    Those in use stay, the `keep` newest, and the newest of each of the `keep` last versions of the figures. So releases
    without new figures, such as daily ones, do not push out the months that slow drift is measured against.

    Raises:
        BusyError: if a publisher is at work.
    """
    with catalog.changing():
        return remove(catalog, surplus(catalog.names(), catalog.all(), keep, in_use(catalog)))


def surplus(names: Sequence[str], manifests: Iterable[Manifest], keep: int, used: set[str]) -> list[str]:
    """Returns the `names` to remove: neither among the `keep` newest nor `used`. Both lists are newest first."""
    kept = used | set(_last_figures(manifests, keep))
    return [release for release in names[keep:] if release not in kept]


def _last_figures(manifests: Iterable[Manifest], versions: int) -> list[str]:
    """Returns the newest release of each of the last `versions` of the figures."""
    newest: dict[tuple[str, ...], str] = {}
    for manifest in manifests:
        tables = (manifest.tables.get(table.name) for table in (POPULATION, HOUSING))
        newest.setdefault(tuple(info.checksum if info else "" for info in tables), manifest.id)
    return list(newest.values())[:versions]


def remove(catalog: Catalog, releases: Sequence[str]) -> list[str]:
    """Removes releases; returns their ids. The caller holds the publish lock, and has checked that none is in use."""
    for release in releases:
        # renamed first, so that a half-removed release never has its old name
        grave = catalog.staging / f"retired-{release}"
        catalog.folder(release).rename(grave)
        shutil.rmtree(grave)
    return list(releases)
