"""The store of releases over a double in memory: the pointer, releases and their files, beats."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from obstore.store import MemoryStore

from warehouse.releases.catalog import RELEASE_FORMAT, Catalog, Manifest
from warehouse.releases.instances import InstanceRecord
from warehouse.schema.errors import (
    ConflictError,
    LostRaceError,
    NeedsNewerError,
    NoReleaseError,
    NoSuchReleaseError,
    StoreError,
)
from warehouse.upstream.documents import Beat, FileOfRelease, StoredPointer, release_name, sealed
from warehouse.upstream.objects import Objects, Version
from warehouse.upstream.store import ReleasesStore

RELEASE = "20261005T090000Z-0123456789ab"
OTHER = "20261105T090000Z-ba9876543210"


@pytest.fixture
def store() -> ReleasesStore:
    return ReleasesStore(Objects(MemoryStore()))


@pytest.fixture
def manifest(published: Path) -> Manifest:
    return Catalog(published).current()


@pytest.fixture
def folder(published: Path, manifest: Manifest) -> Path:
    return Catalog(published).folder(manifest.id)


def test_an_empty_store_has_no_current_release(store: ReleasesStore) -> None:
    known = store.pointer()
    assert known.pointer.serial == 0
    with pytest.raises(NoReleaseError):
        known.current()


def test_each_change_of_the_pointer_raises_its_serial_by_one(store: ReleasesStore) -> None:
    first = store.change(store.pointer(), StoredPointer(serial=0, release=RELEASE))
    second = store.change(first, first.pointer)
    assert (first.pointer.serial, second.pointer.serial) == (1, 2)
    assert store.pointer() == second


def test_a_pointer_that_has_not_changed_is_not_read_again(store: ReleasesStore) -> None:
    known = store.change(store.pointer(), StoredPointer(serial=0, release=RELEASE))
    assert store.pointer_unless(known) is None
    changed = store.change(known, known.pointer)
    assert store.pointer_unless(known) == changed


def test_the_loser_of_a_race_for_the_pointer_learns_who_won(store: ReleasesStore) -> None:
    before = store.pointer()
    store.change(before, StoredPointer(serial=0, release=RELEASE, by="ann"))
    with pytest.raises(LostRaceError, match=f"{RELEASE} is current now, by ann"):
        store.change(before, StoredPointer(serial=0, release=OTHER))
    assert store.pointer().pointer.release == RELEASE


@pytest.mark.parametrize("error", [ConflictError, StoreError])
def test_a_change_whose_answer_was_lost_is_done(
    store: ReleasesStore, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """The request may have been sent again, and then have met its own version."""
    replace = store.objects.replace

    def loses_the_answer(name: str, data: bytes, known: Version | None) -> Version:
        replace(name, data, known)
        raise error("lost")

    monkeypatch.setattr(store.objects, "replace", loses_the_answer)
    done = store.change(store.pointer(), StoredPointer(serial=0, release=RELEASE))
    assert done == store.pointer()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", sealed(b'{"serial": "one"}'), sealed(b'{"serial": 1}').replace(b"1", b"3", 1)],
    ids=["empty", "cut", "wrong", "flipped"],
)
def test_a_pointer_that_cannot_be_read_is_an_error(store: ReleasesStore, content: bytes) -> None:
    store.objects.put("current.json", content)
    with pytest.raises(StoreError, match=r"current\.json .* cannot be read: .*`forecast extracts rollback RELEASE`"):
        store.pointer()


def test_an_uploaded_release_comes_back_with_the_same_files(
    store: ReleasesStore, folder: Path, manifest: Manifest, tmp_path: Path
) -> None:
    store.upload(folder, manifest, ())
    stored = store.release(manifest.id)
    assert stored.manifest == manifest
    assert set(manifest.files) < set(stored.files)
    for name, file in stored.files.items():
        store.fetch(file, tmp_path / "fetched")
        assert (tmp_path / "fetched").read_bytes() == (folder / name).read_bytes()


def test_what_releases_of_the_pointer_name_is_not_uploaded_again(
    store: ReleasesStore, folder: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = store.upload(folder, manifest, ())
    sent: list[str] = []
    create = store.objects.create

    def noted(name: str, content: bytes | Path) -> bool:
        sent.append(name)
        return create(name, content)

    monkeypatch.setattr(store.objects, "create", noted)
    again = msgspec.structs.replace(manifest, id=OTHER)
    store.upload(folder, again, {file.digest for file in stored.files.values()})
    assert sent == [release_name(OTHER)]


def test_a_blob_that_is_not_whole_is_uploaded_again(
    store: ReleasesStore, folder: Path, manifest: Manifest, tmp_path: Path
) -> None:
    stored = store.upload(folder, manifest, ())
    name, file = next(iter(stored.files.items()))
    store.objects.put(f"blobs/{file.digest}", b"half")
    store.upload(folder, manifest, {file.digest})
    store.fetch(file, tmp_path / "fetched")
    assert (tmp_path / "fetched").read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize("spoil", [lambda b: b[:-1], lambda b: b + b"x", lambda b: bytes([b[0] ^ 1]) + b[1:]])
def test_a_file_whose_digest_differs_is_never_there(
    store: ReleasesStore, folder: Path, manifest: Manifest, tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    stored = store.upload(folder, manifest, ())
    name, file = max(stored.files.items(), key=lambda item: item[1].bytes)
    store.objects.put(f"blobs/{file.digest}", spoil((folder / name).read_bytes()))
    with pytest.raises(StoreError, match="is damaged"):
        store.fetch(file, tmp_path / "fetched")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_missing_is_an_error(store: ReleasesStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is missing"):
        store.fetch(FileOfRelease("0" * 64, 1), tmp_path / "fetched")


@pytest.mark.parametrize("release", [OTHER, "../current", "", "a/b"])
def test_a_missing_release_is_named(store: ReleasesStore, release: str) -> None:
    with pytest.raises(NoSuchReleaseError):
        store.release(release)


def test_a_release_of_a_newer_format_is_named_whatever_its_other_members(store: ReleasesStore) -> None:
    store.objects.put(release_name(RELEASE), sealed(msgspec.json.encode({"format": RELEASE_FORMAT + 1, "manifest": 7})))
    with pytest.raises(NeedsNewerError, match="upgrade"):
        store.release(RELEASE)


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "a/../b", ".hidden", "a//b", "a\n"])
def test_a_file_that_leads_out_of_its_folder_is_refused(
    store: ReleasesStore, folder: Path, manifest: Manifest, path: str
) -> None:
    stored = store.upload(folder, manifest, ())
    bad = msgspec.structs.replace(stored, files={path: FileOfRelease("0" * 64, 1)})
    store.objects.put(release_name(manifest.id), sealed(bad))
    with pytest.raises(StoreError, match="cannot be read"):
        store.release(manifest.id)


def test_only_the_beats_of_live_instances_count(store: ReleasesStore) -> None:
    record = InstanceRecord("7", 7, "host", "http://127.0.0.1:8001", (RELEASE,))
    beat = Beat(instance=record, serial=3, ready=(RELEASE,))
    store.beat("ab", beat)
    now = store.now()
    assert store.live(now) == {"ab": beat}
    assert store.live(now + timedelta(minutes=5)) == {}
    store.end_beat("ab")
    assert store.live(now) == {}


@pytest.mark.parametrize("content", [b"garbage", b"[" * (2 << 20)], ids=["damaged", "huge"])
def test_an_unreadable_beat_does_not_hide_the_others(store: ReleasesStore, content: bytes) -> None:
    record = InstanceRecord("7", 7, "host", "http://127.0.0.1:8001", (RELEASE,))
    beat = Beat(instance=record, serial=3, ready=(RELEASE,))
    store.beat("ab", beat)
    store.objects.put("instances/cd.json", content)
    assert store.live(store.now()) == {"ab": beat}
