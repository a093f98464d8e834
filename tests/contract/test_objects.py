"""What the service needs of a store of objects, over a double in memory, a folder, and an S3."""

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from tests.support.s3_server import CREDENTIALS, S3Server, s3_server
from warehouse.schema.errors import ConflictError, StoreError
from warehouse.upstream.objects import Objects, StoredObject, Unchanged, Version, open_objects

_buckets = itertools.count()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with pytest.MonkeyPatch.context() as patched, s3_server() as server:
        for name, value in CREDENTIALS.items():
            patched.setenv(name, value)
        yield server


@pytest.fixture(params=["memory", "folder", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    if request.param == "memory":
        return Objects(MemoryStore())
    if request.param == "folder":
        return open_objects(f"file://{tmp_path / 'store'}")
    server: S3Server = request.getfixturevalue("s3")
    return open_objects(f"{server.make_bucket(f'bucket{next(_buckets)}')}/some/prefix", server.options)


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
    with pytest.raises(ConflictError):
        objects.replace("one", b"of one that is gone", second)


def test_of_many_who_replace_one_version_one_wins(objects: Objects) -> None:
    """The others are told, and what is there is the winner's."""
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
    with pytest.raises(StoreError, match=r"current.json has 16,777,217 bytes, and a document has at most 16,777,216"):
        objects.get("current.json")


def test_a_listing_has_the_objects_of_a_folder_and_when_they_were_written(objects: Objects) -> None:
    for name in ("blobs/a", "blobs/b", "blobs2/c", "current.json"):
        objects.put(name, b"12")
    listed = sorted(objects.list("blobs"), key=lambda one: one.name)
    assert [(one.name, one.bytes) for one in listed] == [("blobs/a", 2), ("blobs/b", 2)]
    assert listed[0].modified == objects.modified("blobs/a")
    assert list(objects.list("nothing")) == []


def test_a_deleted_object_is_gone(objects: Objects) -> None:
    objects.put("one", b"")
    objects.delete("one")
    assert objects.get("one") is None


def test_a_store_that_is_not_there_is_an_error_of_one_line() -> None:
    objects = open_objects("s3://bucket", {"endpoint": "http://127.0.0.1:9", "region": "r", "allow_http": "true"})
    for call in (lambda: objects.get("a"), lambda: objects.put("a", b""), lambda: list(objects.list("a"))):
        with pytest.raises(StoreError, match=r"^the store of releases: a/?: ") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_a_bucket_that_is_not_there_is_an_error_when_something_is_put(s3: S3Server) -> None:
    objects = open_objects("s3://no-such-bucket", s3.options)
    with pytest.raises(StoreError, match="there is no such bucket"):
        objects.create("a", b"")


def test_an_option_that_the_store_does_not_know_is_an_error() -> None:
    with pytest.raises(StoreError, match="store of releases"):
        open_objects("s3://bucket", {"colour": "green"})


def test_no_signature_of_a_url_is_shown(s3: S3Server) -> None:
    """What is wrong is shown with the URL, and some stores sign in its query."""
    objects = open_objects("s3://no-such-bucket", s3.options)
    with pytest.raises(StoreError) as caught:
        list(objects.list("a"))
    assert "?" not in str(caught.value)


def test_a_bucket_that_is_not_there_is_no_empty_store(s3: S3Server) -> None:
    objects = open_objects("s3://not-there/some/prefix", s3.options)
    for reads in (lambda: objects.get("one"), lambda: list(objects.stream("one")), lambda: list(objects.list("a"))):
        with pytest.raises(StoreError, match=r"there is no such bucket .*FORECAST_RELEASES_URL"):
            reads()
