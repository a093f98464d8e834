"""What the service needs of a store of objects: over a double in memory, a folder, and emulators of three clouds."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from tests.support.s3_server import S3Server
from tests.support.upstream import Cloud, new_bucket
from warehouse.schema.errors import ConflictError, StoreError
from warehouse.upstream.objects import Objects, StoredObject, Unchanged, Version, open_objects


@pytest.fixture(params=["s3", "gcs", "azure"])
def cloud(request: pytest.FixtureRequest) -> Cloud:
    server: Cloud = request.getfixturevalue(request.param)
    return server


@pytest.fixture(params=["memory", "folder", "s3", "gcs", "azure"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    if request.param == "memory":
        return Objects(MemoryStore())
    if request.param == "folder":
        return open_objects(f"file://{tmp_path / 'store'}")
    server: Cloud = request.getfixturevalue(request.param)
    return open_objects(f"{new_bucket(server)}/some/prefix", server.options)


def read(objects: Objects, name: str, known: Version | None = None) -> StoredObject:
    found = objects.get(name, known)
    assert isinstance(found, StoredObject)
    return found


def test_an_object_that_is_not_there_is_none(objects: Objects) -> None:
    assert objects.get("nothing") is None
    assert objects.modified("nothing") is None
    objects.delete("nothing")
    with pytest.raises(FileNotFoundError):
        list(objects.stream("nothing"))


def test_an_object_is_created_once(objects: Objects) -> None:
    assert objects.create("a/one", b"first")
    assert not objects.create("a/one", b"second")
    assert read(objects, "a/one").data == b"first"


def test_an_object_that_has_not_changed_is_not_read_again(objects: Objects) -> None:
    objects.put("one", b"first")
    found = read(objects, "one")
    assert objects.get("one", found.version) == Unchanged()
    objects.put("one", b"second")
    assert read(objects, "one", found.version).data == b"second"


def test_an_object_is_replaced_only_if_it_is_the_version_that_is_known(objects: Objects) -> None:
    first = objects.replace("one", b"first", None)
    with pytest.raises(ConflictError):
        objects.replace("one", b"created again", None)
    second = objects.replace("one", b"second", first)
    with pytest.raises(ConflictError):
        objects.replace("one", b"late", first)
    assert read(objects, "one") == StoredObject(b"second", second)
    objects.delete("one")
    assert objects.get("one") is None
    with pytest.raises(ConflictError):
        objects.replace("one", b"of one that is gone", second)


def test_of_many_who_replace_one_version_one_wins(objects: Objects) -> None:
    """The others are reported, and what is there is the winner's."""
    version = objects.replace("one", b"before", None)
    together = threading.Barrier(8)

    def race(number: int) -> bool:
        together.wait()
        try:
            objects.replace("one", b"%d" % number, version)
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(race, range(8)))
    assert won.count(True) == 1
    assert read(objects, "one").data == b"%d" % won.index(True)


def test_a_file_is_sent_and_read_in_blocks(objects: Objects, tmp_path: Path) -> None:
    content = bytes(range(256)) * 20_000
    (tmp_path / "file").write_bytes(content)
    assert objects.create("blobs/one", tmp_path / "file")
    blocks = list(objects.stream("blobs/one"))
    assert b"".join(blocks) == content


def test_a_document_that_is_too_large_is_refused_unread(objects: Objects) -> None:
    objects.put("current.json", bytes((16 << 20) + 1))
    with pytest.raises(StoreError, match=r"current.json has 16,777,217 bytes; a document has at most 16,777,216"):
        objects.get("current.json")


def test_a_listing_has_the_objects_of_a_folder_and_when_they_were_written(objects: Objects) -> None:
    for name in ("blobs/a", "blobs/b", "blobs2/c", "current.json"):
        objects.put(name, b"12")
    listed = sorted(objects.list("blobs"), key=lambda one: one.name)
    assert [(one.name, one.bytes) for one in listed] == [("blobs/a", 2), ("blobs/b", 2)]
    modified = objects.modified("blobs/a")
    assert modified is not None
    # Google tells milliseconds in a listing, and seconds elsewhere
    assert abs(listed[0].modified - modified) < timedelta(seconds=1)
    assert list(objects.list("nothing")) == []


def test_a_store_that_is_not_there_is_an_error_of_one_line() -> None:
    objects = open_objects("s3://bucket", {"endpoint": "http://127.0.0.1:9", "region": "r", "allow_http": "true"})
    for call in (lambda: objects.get("a"), lambda: objects.put("a", b""), lambda: list(objects.list("a"))):
        with pytest.raises(StoreError, match=r"^the store of releases: a/?: ") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_an_option_that_the_store_does_not_know_is_an_error() -> None:
    with pytest.raises(StoreError, match="store of releases"):
        open_objects("s3://bucket", {"colour": "green"})


def test_a_bucket_that_is_not_there_is_no_empty_store(cloud: Cloud) -> None:
    """It is reported without the query of a URL, in which some stores sign."""
    there = new_bucket(cloud)
    objects = open_objects(f"{there.partition('://')[0]}://not-there/some/prefix", cloud.options)
    for call in (
        lambda: objects.create("a", b""),
        lambda: objects.get("one"),
        lambda: list(objects.stream("one")),
        lambda: list(objects.list("a")),
    ):
        with pytest.raises(StoreError, match=r"there is no such bucket .*FORECAST_RELEASES_URL") as caught:
            call()
        assert "?" not in str(caught.value)


def test_a_listing_may_be_longer_than_a_page(cloud: Cloud) -> None:
    objects = open_objects(f"{new_bucket(cloud)}/some/prefix", cloud.options)
    names = {f"blobs/{number:04}" for number in range(1001)}
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: objects.put(name, b""), names))
    assert {one.name for one in objects.list("blobs")} == names


def test_a_version_that_comes_again_is_not_taken_for_the_former(cloud: Cloud) -> None:
    """Contents that are as they were: where a store tells the two apart by its own version, the late one loses."""
    objects = open_objects(f"{new_bucket(cloud)}/some/prefix", cloud.options)
    first = objects.replace("one", b"first", None)
    objects.replace("one", b"first", objects.replace("one", b"second", first))
    if isinstance(cloud, S3Server):  # its ETags are digests of contents, so pointers have serials
        objects.replace("one", b"late", first)
        return
    with pytest.raises(ConflictError):
        objects.replace("one", b"late", first)
