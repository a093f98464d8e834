"""Rolls back to an earlier release."""

from warehouse.releases.catalog import Catalog, Manifest
from warehouse.schema.errors import CatalogError, NoReleaseError


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
