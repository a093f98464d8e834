"""What goes from the store of releases, and what never does."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from obstore.store import MemoryStore

from tests.support.upstream import point, upload
from warehouse.releases.catalog import Catalog
from warehouse.releases.instances import InstanceRecord
from warehouse.schema.errors import CatalogError, NoSuchReleaseError
from warehouse.upstream.changes import LEFT_OVER_AFTER, retire, retire_all_but, sweep
from warehouse.upstream.documents import Beat, blob_name, sealed
from warehouse.upstream.objects import Objects
from warehouse.upstream.store import ReleasesStore, all_releases

RELEASES = tuple(f"2026{month:02}05T090000Z-0123456789ab" for month in (12, 11, 10, 9))
STRANGER = "20260101T090000Z-ba9876543210"


@pytest.fixture
def store(published: Path) -> ReleasesStore:
    """With four releases; the newest is current."""
    store = ReleasesStore(Objects(MemoryStore()))
    for release in RELEASES:
        upload(store, published, release)
    point(store, *RELEASES)
    return store


def later(store: ReleasesStore, by: timedelta = 2 * LEFT_OVER_AFTER) -> int:
    """What a sweep finds that much later."""
    return sweep(store, store.pointer(), store.now() + by)


def blobs(store: ReleasesStore) -> set[str]:
    return {one.name for one in store.objects.list("blobs")}


def serves(store: ReleasesStore, release: str) -> None:
    record = InstanceRecord("7", 7, "host", "http://127.0.0.1:8001", (release,))
    store.beat("ab", Beat(instance=record, serial=1, ready=(release,)))


def test_a_retired_release_is_named_by_nothing_any_more(store: ReleasesStore) -> None:
    assert retire(store, [RELEASES[2]]) == [RELEASES[2]]
    assert store.pointer().pointer.releases == (RELEASES[0], RELEASES[1], RELEASES[3])
    assert all_releases(store) == {RELEASES[0], RELEASES[1], RELEASES[3]}


@pytest.mark.parametrize("at", [0, 1], ids=["current", "previous"])
def test_what_is_in_use_is_not_retired(store: ReleasesStore, at: int) -> None:
    before = store.pointer()
    with pytest.raises(CatalogError, match="is in use"):
        retire(store, [RELEASES[3], RELEASES[at]])
    assert store.pointer() == before


def test_what_a_live_instance_serves_is_not_retired(store: ReleasesStore) -> None:
    serves(store, RELEASES[3])
    with pytest.raises(CatalogError, match="is in use"):
        retire(store, [RELEASES[3]])
    assert retire_all_but(store, 2) == [RELEASES[2]]


def test_a_release_that_is_not_there_is_not_retired(store: ReleasesStore) -> None:
    with pytest.raises(NoSuchReleaseError):
        retire(store, [STRANGER])


def test_where_nothing_is_surplus_the_pointer_stays(store: ReleasesStore) -> None:
    before = store.pointer()
    assert retire_all_but(store, 4) == []
    assert store.pointer() == before


def test_left_overs_are_swept_after_a_day_and_not_before(store: ReleasesStore, published: Path, tmp_path: Path) -> None:
    """Of a release that never was current: its document and the blobs that no other release needs."""
    kept = blobs(store)
    manifest = Catalog(published).current()
    (tmp_path / "file").write_bytes(b"of its own")
    store.upload(tmp_path, msgspec.structs.replace(manifest, id=STRANGER), ())
    serves(store, RELEASES[0])
    assert len(blobs(store)) == len(kept) + 1
    assert later(store, timedelta(hours=23)) == 0
    assert later(store) == 3
    assert blobs(store) == kept
    assert all_releases(store) == set(RELEASES)
    assert store.live(store.now()) == {}
    assert later(store) == 0


def test_what_is_announced_is_no_left_over(store: ReleasesStore, published: Path) -> None:
    upload(store, published, STRANGER)
    point(store, *RELEASES, announced=STRANGER)
    assert later(store) == 0


def test_a_release_with_unknown_needs_stops_the_sweep(store: ReleasesStore) -> None:
    store.objects.put(f"releases/{RELEASES[1]}.json", sealed(b'{"format": 99}'))
    store.objects.put(blob_name("0" * 64), b"")
    assert later(store) == 0
