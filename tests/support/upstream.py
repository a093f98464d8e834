"""Releases put into a store of releases as a publisher puts them, without one."""

import itertools
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tests.support.azurite import AzureServer
from tests.support.gcs_server import GcsServer
from tests.support.s3_server import S3Server
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.upstream.documents import Announcement, StoredPointer
from warehouse.upstream.store import ReleasesStore

Cloud = S3Server | GcsServer | AzureServer
_buckets = itertools.count()


def new_bucket(cloud: Cloud) -> str:
    """The URL of a bucket of its own: tests share the servers."""
    return cloud.make_bucket(f"bucket{next(_buckets)}")


def upload(store: ReleasesStore, data: Path, release: str | None = None) -> Manifest:
    """Uploads the current release of a data folder, under another id if one is given."""
    catalog = Catalog(data)
    current = catalog.current()
    manifest = msgspec.structs.replace(current, id=release or current.id)
    store.upload(catalog.folder(current.id), manifest, ())
    return manifest


def point(store: ReleasesStore, release: str, *others: str, announced: str | None = None, warm_by: str = "") -> None:
    """Makes `release` current; `others` are there as well, and the first one is what a rollback returns to."""
    following = Announcement(release=announced, by="ann", warm_by=(warm_by,)) if announced is not None else None
    pointer = StoredPointer(
        serial=0,
        release=release,
        previous=others[0] if others else None,
        switched_at=datetime.now(UTC),
        by="ann",
        releases=(release, *others),
        next=following,
    )
    store.change(store.pointer(), pointer)
