"""A mirror between a store in memory and a data folder: what it fetches, when it switches, what it never does."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from obstore.store import MemoryStore

from tests.support.upstream import point, upload
from warehouse.releases.catalog import RELEASE_FORMAT, Catalog, Manifest
from warehouse.releases.instances import InstanceFile, InstanceRecord
from warehouse.schema.errors import StoreError
from warehouse.upstream.changes import roll_back
from warehouse.upstream.documents import LAST_SERIAL, POINTER, blob_name, holds, release_name, sealed
from warehouse.upstream.mirror import Mirror
from warehouse.upstream.objects import Objects, StoredObject
from warehouse.upstream.store import ReleasesStore

OTHER = "20261105T090000Z-ba9876543210"
THIRD = "20261205T090000Z-ba9876543210"


@pytest.fixture
def store() -> ReleasesStore:
    return ReleasesStore(Objects(MemoryStore()))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    (tmp_path / "data").mkdir()
    return Catalog(tmp_path / "data")


@pytest.fixture
def instance(catalog: Catalog) -> Iterator[InstanceFile]:
    record = InstanceFile(catalog.data, "ab")
    record.write(InstanceRecord("7", 7, "host", "http://127.0.0.1:8001", (None,)))
    yield record
    record.close()


@pytest.fixture
def mirror(store: ReleasesStore, catalog: Catalog, instance: InstanceFile) -> Mirror:
    return Mirror(store, catalog, "ab", lambda _folder, manifest: (f"warmed {manifest.id}",))


@pytest.fixture
def first(store: ReleasesStore, published: Path) -> str:
    """A release that the store has, and OTHER beside it."""
    upload(store, published, OTHER)
    return upload(store, published).id


def settle(mirror: Mirror) -> None:
    """Until there is nothing left to do, as its two threads would."""
    mirror.look()
    while mirror.work():
        mirror.look()
    mirror.look()


def current(catalog: Catalog) -> str | None:
    pointer = catalog.pointer()
    return pointer.release if pointer else None


def test_an_empty_folder_becomes_what_the_store_says(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, published: Path
) -> None:
    manifest = upload(store, published)
    point(store, manifest.id)
    settle(mirror)
    assert catalog.current() == manifest
    catalog.verify(manifest)
    stored = store.release(manifest.id)
    assert all(holds(catalog.folder(manifest.id) / name, file) for name, file in stored.files.items())
    assert mirror.problem is None


def test_before_the_first_publish_the_folder_stays_as_it_is(catalog: Catalog, mirror: Mirror) -> None:
    settle(mirror)
    assert current(catalog) is None
    assert mirror.problem is None


def test_a_folder_that_cannot_be_written_is_a_problem_until_it_can(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, published: Path
) -> None:
    point(store, upload(store, published).id)
    in_the_way = catalog.data / "mirror"
    in_the_way.write_text("")
    for _ in range(2):
        mirror.look()
        assert "the data folder cannot follow the store" in str(mirror.problem)
    in_the_way.unlink()
    settle(mirror)
    assert current(catalog) is not None
    assert mirror.problem is None


def test_a_release_is_not_current_before_it_is_whole(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, published: Path
) -> None:
    manifest = upload(store, published)
    point(store, manifest.id)
    mirror.look()
    assert current(catalog) is None
    assert catalog.names() == []


def test_all_releases_of_the_pointer_are_fetched_and_those_that_it_drops_are_removed(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, published: Path
) -> None:
    """The one that is current comes first."""
    first = upload(store, published).id
    for other in (OTHER, THIRD):
        upload(store, published, other)
    point(store, OTHER, first, THIRD)
    mirror.look()
    mirror.work()
    assert catalog.names() == [OTHER]
    settle(mirror)
    assert set(catalog.names()) == {first, OTHER, THIRD}
    assert catalog.pointer() is not None
    point(store, OTHER, first)
    settle(mirror)
    assert set(catalog.names()) == {first, OTHER}


def test_a_rollback_to_a_release_that_is_here_is_followed_at_the_next_look(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, first: str
) -> None:
    point(store, OTHER, first)
    settle(mirror)
    point(store, first, OTHER)
    mirror.look()
    pointer = catalog.pointer()
    assert pointer is not None
    assert (pointer.release, pointer.previous, pointer.by) == (first, OTHER, "ann")


def test_releases_that_were_in_the_folder_before_stay(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, published: Path
) -> None:
    """A data folder that gets a store loses nothing."""
    source = Catalog(published)
    own = source.current()
    with catalog.publishing() as staged:
        for name in own.files:
            (staged / name).parent.mkdir(exist_ok=True)
            (staged / name).write_bytes((source.folder(own.id) / name).read_bytes())
        catalog.adopt(staged, own)
    upload(store, published, OTHER)
    point(store, OTHER)
    settle(mirror)
    assert current(catalog) == OTHER
    assert own.id in catalog.names()


def test_an_announced_release_is_made_ready_and_warmed_by_whom_it_names(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, first: str
) -> None:
    point(store, first, announced=OTHER, warm_by="ab")
    settle(mirror)
    assert current(catalog) == first
    beat = store.live(store.now())["ab"]
    assert set(beat.ready) == {first, OTHER}
    assert beat.warmed == {OTHER: (f"warmed {OTHER}",)}
    assert beat.serial == 1


def test_an_announcement_that_names_another_instance_is_not_warmed(
    store: ReleasesStore, mirror: Mirror, first: str
) -> None:
    point(store, first, announced=OTHER, warm_by="cd")
    settle(mirror)
    assert store.live(store.now())["ab"].warmed == {}


def test_an_unreachable_store_is_reported_and_leaves_the_folder_unchanged(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = upload(store, published)
    point(store, manifest.id)
    settle(mirror)

    def away(*_: object) -> None:
        raise StoreError("the store of releases: current.json: away")

    with monkeypatch.context() as patched:
        patched.setattr(store.objects, "get", away)
        settle(mirror)
        assert current(catalog) == manifest.id
        assert mirror.problem == "the store of releases: current.json: away; serving the releases in the data folder"
    settle(mirror)
    assert mirror.problem is None


@pytest.mark.parametrize("spoil", [lambda b: b[:-1], lambda b: bytes([b[0] ^ 1]) + b[1:]], ids=["cut", "flipped"])
def test_a_release_with_a_damaged_file_is_never_in_the_folder(
    store: ReleasesStore,
    catalog: Catalog,
    mirror: Mirror,
    published: Path,
    spoil: Callable[[bytes], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once the blob is right again, the release is fetched."""
    manifest = upload(store, published)
    name, file = max(store.release(manifest.id).files.items(), key=lambda item: item[1].bytes)
    right = (Catalog(published).folder(manifest.id) / name).read_bytes()
    store.objects.put(blob_name(file.digest), spoil(right))
    point(store, manifest.id)
    settle(mirror)
    assert catalog.names() == []
    assert "is damaged" in (mirror.problem or "")
    store.objects.put(blob_name(file.digest), right)
    monkeypatch.setattr("warehouse.upstream.mirror._AGAIN_SECONDS", 0)
    settle(mirror)
    assert current(catalog) == manifest.id
    assert mirror.problem is None


def test_a_release_that_is_damaged_in_the_folder_is_fetched_again_before_it_is_current(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, published: Path
) -> None:
    first = upload(store, published)
    upload(store, published, OTHER)
    point(store, OTHER, first.id)
    settle(mirror)
    name = next(iter(first.files))
    (catalog.folder(first.id) / name).write_bytes(b"rotten")
    point(store, first.id, OTHER)
    settle(mirror)
    catalog.verify(catalog.current())
    assert current(catalog) == first.id


def test_a_pointer_that_goes_back_is_not_followed_not_even_by_the_next_mirror(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, first: str
) -> None:
    """A bucket that was restored, say. It is unknown whether what it names is right."""
    point(store, first)
    before = store.objects.get(POINTER)
    point(store, OTHER, first)
    settle(mirror)
    assert before is not None
    store.objects.put(POINTER, getattr(before, "data"))  # noqa: B009 - either kind has it
    settle(mirror)
    assert current(catalog) == OTHER
    assert "went back: it is at serial 1, and was at 2" in (mirror.problem or "")
    store.objects.delete(POINTER)
    settle(mirror)
    assert current(catalog) == OTHER
    assert "without current.json" in (mirror.problem or "")


def test_nothing_is_fetched_while_the_pointer_is_one_that_went_back(
    store: ReleasesStore, mirror: Mirror, first: str
) -> None:
    point(store, first)
    before = store.objects.get(POINTER)
    assert isinstance(before, StoredObject)
    point(store, OTHER, first)
    mirror.look()
    store.objects.put(POINTER, before.data)
    mirror.look()
    assert not mirror.work()


def test_a_release_of_a_newer_format_is_not_followed_and_the_one_before_serves_on(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, published: Path
) -> None:
    first = upload(store, published).id
    point(store, first)
    settle(mirror)
    store.objects.put(release_name(OTHER), sealed(msgspec.json.encode({"format": RELEASE_FORMAT + 1})))
    point(store, OTHER, first)
    settle(mirror)
    assert current(catalog) == first
    assert f"needs format {RELEASE_FORMAT + 1}" in (mirror.problem or "")


def test_of_two_mirrors_of_one_folder_one_writes_and_both_beat(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, published: Path
) -> None:
    manifest = upload(store, published)
    point(store, manifest.id)
    mirror.look()
    other_file = InstanceFile(catalog.data, "cd")
    other_file.write(InstanceRecord("8", 8, "host", "http://127.0.0.1:8002", (None,)))
    other = Mirror(store, catalog, "cd", lambda *_: ())
    settle(other)
    assert catalog.names() == []
    settle(mirror)
    settle(other)
    beats = store.live(store.now())
    assert {name: beat.ready for name, beat in beats.items()} == {"ab": (manifest.id,), "cd": (manifest.id,)}
    other_file.close()


def test_an_instance_that_ends_has_no_beat(store: ReleasesStore, mirror: Mirror) -> None:
    mirror.look()
    assert set(store.live(store.now())) == {"ab"}
    mirror.end()
    assert store.live(store.now()) == {}


def test_a_partial_download_is_kept_for_the_next_mirror_and_removed_once_it_is_not_needed(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest: Manifest = upload(store, published)
    point(store, manifest.id)
    fetched: list[str] = []
    fetch = store.fetch

    def twice(file: object, target: Path) -> None:
        if len(fetched) == 2:
            raise StoreError("gone")
        fetched.append(target.name)
        fetch(file, target)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(store, "fetch", twice)
        settle(mirror)
    begun = catalog.data / "mirror" / manifest.id
    assert len([path for path in begun.rglob("*") if path.is_file()]) == 2
    upload(store, published, OTHER)
    point(store, OTHER)
    settle(mirror)
    assert not begun.exists()


def test_answers_of_unused_releases_are_removed_once_the_new_one_is_served(
    store: ReleasesStore, catalog: Catalog, instance: InstanceFile, published: Path
) -> None:
    """Neither those of the current one, the one to roll back to, nor the announced one."""
    forgotten: list[set[str]] = []
    mirror = Mirror(store, catalog, "ab", lambda *_: (), forgotten.append)
    first = upload(store, published).id
    fourth = "20261225T090000Z-ba9876543210"
    for other in (OTHER, THIRD, fourth):
        upload(store, published, other)
    point(store, THIRD, OTHER, first, announced=fourth)
    settle(mirror)
    assert forgotten == []
    instance.write(InstanceRecord("7", 7, "host", "http://127.0.0.1:8001", (THIRD,)))
    settle(mirror)
    assert forgotten == [{first}]


def test_a_repaired_pointer_is_followed_whatever_was_seen_and_one_of_before_the_repair_is_not(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, first: str
) -> None:
    """An earlier version could follow a serial of 64 bits, and keep it."""
    point(store, OTHER, first)
    (catalog.data / "mirror").mkdir()
    (catalog.data / "mirror" / "state.json").write_text('{"serial": 18446744073709551615, "fetched": []}')
    settle(mirror)
    assert "went back" in (mirror.problem or "")
    before = store.objects.get(POINTER)
    assert isinstance(before, StoredObject)
    roll_back(store, first, "ann")
    settle(mirror)
    assert (current(catalog), mirror.problem) == (first, None)
    roll_back(store, OTHER, "ann")
    settle(mirror)
    assert current(catalog) == OTHER
    store.objects.put(POINTER, before.data)
    settle(mirror)
    assert "went back" in (mirror.problem or "")
    roll_back(store, None, "ann")
    settle(mirror)
    assert "went back" in (mirror.problem or ""), "of the lineage before the repair"
    roll_back(store, first, "ann")
    settle(mirror)
    assert (current(catalog), mirror.problem) == (first, None)


def test_a_pointer_at_the_last_serial_can_still_be_changed(
    store: ReleasesStore, catalog: Catalog, mirror: Mirror, first: str
) -> None:
    point(store, OTHER, first)
    known = store.pointer().pointer
    store.objects.put(POINTER, sealed(msgspec.structs.replace(known, serial=LAST_SERIAL)))
    settle(mirror)
    point(store, first, OTHER)
    settle(mirror)
    assert (current(catalog), mirror.problem) == (first, None)
    assert store.pointer().pointer.serial < 10
