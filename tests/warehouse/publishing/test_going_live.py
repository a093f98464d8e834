"""A drop on its way to being current in a store of releases: every step, races, and a publisher that is killed."""

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from obstore.store import MemoryStore

from tests.support.drops import homes, people, write_drop
from tests.support.publishing import publish, publishing
from tests.warehouse.helpers import NO_LIMITS
from warehouse.publishing.going_live import GoingLive
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.publishing.working_copy import WorkingCopy
from warehouse.releases.catalog import RELEASE_FORMAT, Catalog
from warehouse.releases.instances import InstanceFile, InstanceRecord, wait_until_served
from warehouse.schema.errors import CatalogError, NoSuchReleaseError, StoreError
from warehouse.upstream import changes
from warehouse.upstream.documents import POINTER, Beat, StoredPointer, sealed
from warehouse.upstream.mirror import Mirror
from warehouse.upstream.objects import Objects, StoredObject
from warehouse.upstream.store import KnownPointer, ReleasesStore, all_releases

OPTIONS = PublishOptions(limits=NO_LIMITS)


@pytest.fixture
def store() -> ReleasesStore:
    return ReleasesStore(Objects(MemoryStore()))


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Each brings other figures than the others."""
    folder = tmp_path_factory.mktemp("drops")
    figures = [(people("36436", 2023, 783 + at), people("63101", 2023, 2620)) for at in range(8)]
    return [str(write_drop(folder / str(at), population=rows)) for at, rows in enumerate(figures)]


class Publisher:
    """As a command works: on a folder of its own, from the pointer as it was when it began."""

    def __init__(self, store: ReleasesStore, folder: Path, **options: Any) -> None:
        self.copy = WorkingCopy(store, folder)
        self.known = self.copy.refresh(whole=True)
        self.going_live = GoingLive(store, self.known, "ann", **options)

    def publish(self, drop: str) -> PublishOutcome:
        with publishing(self.copy.catalog, [drop], OPTIONS) as publication:
            if publication.next is not None:
                folder = publication.adopt()
                publication.switch(self.going_live.make_current(folder, publication.next, self.copy.digests()))
        return publication.outcome


def published(store: ReleasesStore, folder: Path, drop: str, **options: Any) -> str:
    outcome = Publisher(store, folder, **options).publish(drop)
    assert outcome.result == "published"
    assert outcome.manifest is not None
    return outcome.manifest.id


def late(store: ReleasesStore, release: str, seconds: float) -> list[InstanceRecord]:
    """The instances that do not serve it in time."""
    return wait_until_served(lambda: [one.instance for one in store.live(store.now()).values()], release, seconds)


def check_whole(store: ReleasesStore) -> None:
    """Everything that the pointer names is there, every byte of it."""
    pointer = store.pointer().pointer
    announced = (pointer.next.release,) if pointer.next else ()
    for release in {*pointer.releases, *announced} | ({pointer.release} if pointer.release else set()):
        for file in store.release(release).files.values():
            assert sum(map(len, store.objects.stream(f"blobs/{file.digest}"))) == file.bytes


def test_a_drop_becomes_current_and_the_next_one_is_compared_with_it(
    store: ReleasesStore, tmp_path: Path, drops: list[str]
) -> None:
    """Also for a publisher on another machine, who sees the store alone."""
    first = published(store, tmp_path / "one", drops[0])
    again = Publisher(store, tmp_path / "two").publish(drops[0])
    assert (again.result, again.manifest and again.manifest.id) == ("already_current", first)
    second = published(store, tmp_path / "three", drops[1])
    pointer = store.pointer().pointer
    assert (pointer.release, pointer.previous, pointer.next) == (second, first, None)
    assert pointer.releases == (second, first)
    assert store.release(second).manifest.previous == first
    check_whole(store)


def test_a_table_that_a_drop_does_not_bring_is_kept_from_the_release_in_the_store(
    store: ReleasesStore, tmp_path: Path, drops: list[str]
) -> None:
    first = published(store, tmp_path / "one", drops[0])
    partial = write_drop(tmp_path / "partial", housing=(homes("36436", tot_home_available_2020=1),))
    for name in ("zip_locations", "zip_population"):
        (partial / f"{name}.parquet").unlink()
    second = published(store, tmp_path / "two", str(partial))
    tables = store.release(second).manifest.tables
    assert tables["population"].carried_from == first
    assert tables["housing"].carried_from is None


def test_a_publisher_who_announced_is_not_stopped_by_who_retires(
    store: ReleasesStore, tmp_path: Path, drops: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(3):
        published(store, tmp_path / "one", drops[at])
    oldest = store.pointer().pointer.releases[-1]
    publisher = Publisher(store, tmp_path / "two")
    waits = publisher.going_live._wait_until_ready

    def retiring(*arguments: Any) -> Any:
        changes.retire(store, [oldest])
        return waits(*arguments)

    monkeypatch.setattr(publisher.going_live, "_wait_until_ready", retiring)
    outcome = publisher.publish(drops[3])
    pointer = store.pointer().pointer
    assert outcome.manifest is not None
    assert pointer.release == outcome.manifest.id
    assert oldest not in pointer.releases
    check_whole(store)


class KilledError(Exception):
    """The publisher is no more."""


class Mortal(Objects):
    """Objects whose user dies before, or just after, its nth call: no call of it does anything afterwards."""

    def __init__(self, inner: MemoryStore, calls: int, *, before: bool) -> None:
        super().__init__(inner)
        self.left, self.before = calls, before

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("get", "create", "put", "replace", "modified", "list", "delete"):
            return found

        def call(*arguments: Any) -> Any:
            self.left -= 1
            if self.left < 0 or (self.left == 0 and self.before):
                raise KilledError
            done = list(found(*arguments)) if name == "list" else found(*arguments)
            if self.left == 0:
                raise KilledError
            return done

        return call


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_publisher_killed_at_any_call_leaves_the_old_release_or_the_new_one_whole(
    tmp_path: Path, drops: list[str], *, before: bool
) -> None:
    """The next publisher is not in its way."""
    memory = MemoryStore()
    store = ReleasesStore(Objects(memory))
    first = published(store, tmp_path / "one", drops[0])
    began = store.pointer()
    blobs = {one.name for one in store.objects.list("blobs")}
    copy = WorkingCopy(store, tmp_path / "two")
    copy.refresh(whole=True)
    built = publish(copy.catalog, [drops[1]], OPTIONS).manifest
    assert built is not None
    folder, outcomes = copy.catalog.folder(built.id), set()
    for calls in itertools.count(1):
        mortal = ReleasesStore(Mortal(memory, calls, before=before))
        try:
            GoingLive(mortal, store.pointer(), "ann").make_current(folder, built, copy.digests())
        except KilledError:
            ended = False
        else:
            ended = True
        pointer = store.pointer().pointer
        outcomes.add(pointer.release)
        assert pointer.release in (first, built.id)
        check_whole(store)
        if ended:
            break
        if pointer.release == first:
            continue
        # back to where it began, but for the serial
        store.change(store.pointer(), began.pointer)
        for one in [*store.objects.list("blobs"), *store.objects.list("releases")]:
            if one.name not in blobs and first not in one.name:
                store.objects.delete(one.name)
    assert outcomes == {first, built.id}


@pytest.fixture
def mirror(store: ReleasesStore, tmp_path: Path) -> Iterator[Mirror]:
    """Of an instance that serves whatever is current in its folder."""
    data = tmp_path / "data"
    data.mkdir()
    catalog, record = Catalog(data), InstanceFile(data, "ab")
    mirror = Mirror(store, catalog, "ab", lambda _folder, manifest: (f"{manifest.id} was not warmed",))
    ended = threading.Event()

    def live() -> None:
        while not ended.is_set():
            pointer = catalog.pointer()
            serves = pointer.release if pointer else None
            record.write(InstanceRecord("7", 7, "host", "http://127.0.0.1:8001", (serves,)))
            mirror.look()
            mirror.work()
            ended.wait(0.01)

    thread = threading.Thread(target=live)
    thread.start()
    yield mirror
    ended.set()
    thread.join()
    record.close()


def test_instances_have_a_release_before_it_is_current_and_one_warms_it(
    store: ReleasesStore, tmp_path: Path, drops: list[str], mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    had: list[bool] = []
    change = store.change

    def noted(known: KnownPointer, pointer: StoredPointer) -> KnownPointer:
        if pointer.next is None and pointer.release is not None:
            had.append(pointer.release in store.live(store.now())["ab"].ready)
        return change(known, pointer)

    monkeypatch.setattr(store, "change", noted)
    monkeypatch.setattr("warehouse.publishing.going_live._POLL_SECONDS", 0.02)
    while not store.live(store.now()):
        threading.Event().wait(0.01)
    outcome = Publisher(store, tmp_path / "one").publish(drops[0])
    assert outcome.manifest is not None
    assert had == [True]
    (found,) = [one for one in outcome.report.findings if one.rule == "not-warmed"]
    assert found.message == f"{outcome.manifest.id} was not warmed"
    assert late(store, outcome.manifest.id, 30) == []


def test_an_instance_that_is_not_ready_in_time_is_named_and_the_release_goes_live(
    store: ReleasesStore, tmp_path: Path, drops: list[str]
) -> None:
    record = InstanceRecord("3f9c20d1", 7, "host", "http://127.0.0.1:8001", ("old",))
    store.beat("ab", Beat(instance=record, serial=0, ready=(), problem="the disk is full"))
    outcome = Publisher(store, tmp_path / "one", ready_seconds=0.0).publish(drops[0])
    assert outcome.result == "published"
    (found,) = [one for one in outcome.report.findings if one.rule == "not-ready"]
    assert found.samples == ("instance 3f9c20d1 on host: the disk is full",)
    assert outcome.manifest is not None
    assert late(store, outcome.manifest.id, 0.0) == [record]


def test_an_instance_that_dies_meanwhile_is_not_waited_for(
    store: ReleasesStore, tmp_path: Path, drops: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = InstanceRecord("3f9c20d1", 7, "host", "http://127.0.0.1:8001", ("old",))
    store.beat("ab", Beat(instance=record, serial=0, ready=()))
    clock = itertools.count(step=5.0)
    monkeypatch.setattr("warehouse.publishing.going_live.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("warehouse.publishing.going_live._POLL_SECONDS", 0.0)
    outcome = Publisher(store, tmp_path / "one", ready_seconds=600.0).publish(drops[0])
    assert (outcome.result, [one.rule for one in outcome.report.findings if one.rule == "not-ready"]) == (
        "published",
        [],
    )


def test_what_a_live_instance_cannot_read_is_refused_unless_it_is_left_behind(
    store: ReleasesStore, tmp_path: Path, drops: list[str]
) -> None:
    record = InstanceRecord("3f9c20d1", 7, "host", "http://127.0.0.1:8001", ("old",), formats=RELEASE_FORMAT - 1)
    store.beat("ab", Beat(instance=record, serial=0, ready=()))
    with pytest.raises(
        CatalogError, match=f"needs format {RELEASE_FORMAT}, which instance 3f9c20d1 on host cannot read"
    ):
        Publisher(store, tmp_path / "one").publish(drops[0])
    assert store.pointer().pointer.serial == 0
    assert all_releases(store) == set()
    published(store, tmp_path / "two", drops[0], leave_behind=True, ready_seconds=0.0)


def test_an_interrupted_publisher_takes_its_announcement_back(
    store: ReleasesStore, tmp_path: Path, drops: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = Publisher(store, tmp_path / "one")

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(publisher.going_live, "_wait_until_ready", interrupted)
    with pytest.raises(KeyboardInterrupt):
        publisher.publish(drops[0])
    pointer = store.pointer().pointer
    assert (pointer.release, pointer.next, pointer.releases) == (None, None, ())


def test_a_rollback_returns_to_the_release_before_and_again_returns_back(
    store: ReleasesStore, tmp_path: Path, drops: list[str]
) -> None:
    first = published(store, tmp_path / "one", drops[0])
    with pytest.raises(CatalogError, match="no release before"):
        changes.roll_back(store, None, "ops")
    second = published(store, tmp_path / "one", drops[1])
    assert changes.roll_back(store, None, "ops").id == first
    assert changes.roll_back(store, None, "ops").id == second
    assert changes.roll_back(store, second, "ops").id == second
    pointer = store.pointer().pointer
    assert (pointer.previous, pointer.by) == (first, "ops")
    with pytest.raises(NoSuchReleaseError):
        changes.roll_back(store, "20200101T000000Z-00", "ops")


@pytest.mark.parametrize("damage", [b"{", None], ids=["damaged", "gone"])
def test_a_rollback_to_a_named_release_repairs_the_pointer(
    store: ReleasesStore, tmp_path: Path, drops: list[str], damage: bytes | None
) -> None:
    """No beat decides what it says; instances follow it whatever they have seen."""
    first = published(store, tmp_path / "one", drops[0])
    record = InstanceRecord("7", 7, "host", "http://127.0.0.1:8001", (first,))
    store.beat("ab", Beat(instance=record, serial=2, ready=(first,)))
    if damage is None:
        store.objects.delete(POINTER)
    else:
        store.objects.put(POINTER, damage)
    with pytest.raises((StoreError, CatalogError)):
        changes.roll_back(store, None, "ops")
    changes.roll_back(store, first, "ops")
    pointer = store.pointer().pointer
    assert (pointer.release, pointer.releases) == (first, (first,))
    assert pointer.lineage


def test_a_release_that_lost_a_file_cannot_be_rolled_back_to(
    store: ReleasesStore, tmp_path: Path, drops: list[str]
) -> None:
    first = published(store, tmp_path / "one", drops[0])
    second = published(store, tmp_path / "one", drops[1])
    lost = {file.digest for file in store.release(first).files.values()}
    lost -= {file.digest for file in store.release(second).files.values()}
    store.objects.delete(f"blobs/{min(lost)}")
    with pytest.raises(CatalogError, match="is missing or incomplete"):
        changes.roll_back(store, None, "ops")
    assert store.pointer().pointer.release == second


def test_a_first_drop_after_a_release_of_a_newer_format_is_refused(
    store: ReleasesStore, tmp_path: Path, drops: list[str]
) -> None:
    """This version cannot compare with it, nor keep tables of it."""
    first = published(store, tmp_path / "one", drops[0])
    newer = msgspec.structs.replace(store.release(first), format=RELEASE_FORMAT + 1)
    store.objects.put(f"releases/{first}.json", sealed(newer))
    with pytest.raises(CatalogError, match="upgrade"):
        Publisher(store, tmp_path / "two")


def test_instances_follow_what_is_published_after_the_store_went_back(
    store: ReleasesStore, drops: list[str], tmp_path: Path
) -> None:
    """Nobody else has changed the bucket since it was restored."""
    first = published(store, tmp_path / "one", drops[0])
    restored = store.objects.get(POINTER)
    assert isinstance(restored, StoredObject)
    published(store, tmp_path / "one", drops[1])
    (tmp_path / "data").mkdir()
    record = InstanceFile(tmp_path / "data", "ab")
    record.write(InstanceRecord("7", 7, "host", "http://127.0.0.1:8001", (None,)))
    mirror = Mirror(store, Catalog(tmp_path / "data"), "ab", lambda *_: ())
    mirror.look()
    store.objects.put(POINTER, restored.data)
    mirror.look()
    assert "went back" in (mirror.problem or "")
    assert store.pointer().pointer.release == first
    second = published(store, tmp_path / "two", drops[1], ready_seconds=0)
    mirror.look()
    assert mirror.work()
    mirror.look()
    pointer = Catalog(tmp_path / "data").pointer()
    assert pointer is not None
    assert (pointer.release, mirror.problem) == (second, None)
    record.close()
