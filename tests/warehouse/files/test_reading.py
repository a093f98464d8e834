"""Small files of the data folder: read, or an error, and never a wait or a surprise."""

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from config.settings import SettingsError
from service.inbox.status import Status, read_status
from service.keys import pepper
from service.quota.spool import Spool
from warehouse.releases.catalog import Catalog
from warehouse.releases.instances import InstanceFile, live_instances
from warehouse.schema.errors import CatalogError

IN_PLACE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "not UTF-8": lambda path: path.write_bytes(b'{"instance":"\xff\xfe","release":"\xff","id":"\xff"}'),
    "nested without end": lambda path: path.write_bytes(b'{"x":' + b"[" * 100_000),
    "folder": lambda path: path.mkdir(),
    "FIFO": lambda path: os.mkfifo(path),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to a device without end": lambda path: path.symlink_to("/dev/zero"),
    "socket": lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
}


@pytest.fixture(params=IN_PLACE.values(), ids=list(IN_PLACE))
def put(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    """Puts something into the place of a file."""
    placed: Callable[[Path], object] = request.param
    return placed


def test_whatever_lies_in_the_place_of_a_small_file_is_an_error_of_ours(
    short: Path, put: Callable[[Path], object]
) -> None:
    """Of the pointer and a manifest with its path; the status of the inbox counts for nothing."""
    catalog = Catalog(short)
    folder = catalog.folder("r")
    folder.mkdir(parents=True)
    for path in (catalog.pointer_file, folder / "manifest.json", short / "inbox.json", short / "pepper"):
        put(path)
    with pytest.raises(CatalogError, match=r"current\.json cannot be read") as refused:
        catalog.pointer()
    assert not re.search(r": \d+$", str(refused.value))  # the number of a descriptor, in place of a path
    with pytest.raises(CatalogError, match=r"manifest\.json cannot be read"):
        catalog.manifest("r")
    assert read_status(short) == Status()


def test_a_pepper_that_is_no_file_is_an_error_and_not_waited_for(tmp_path: Path) -> None:
    """The instance does not start, and says why."""
    os.mkfifo(tmp_path / "pepper")
    with pytest.raises(SettingsError, match="not a regular file"):
        pepper.obtain(None, tmp_path)


def test_a_record_that_cannot_be_read_hides_no_other_instance(short: Path, put: Callable[[Path], object]) -> None:
    """Publishers and workers ask for all."""
    good, bad = InstanceFile(short, "b"), InstanceFile(short, "a")
    put(bad.record)
    good.record.write_text('{"instance":"b","pid":1,"host":"h","operator_url":"u","releases":["r"]}')
    assert [record.instance for record in live_instances(short)] == ["b"]
    os.close(bad._descriptor)  # dead
    assert [record.instance for record in live_instances(short)] == ["b"]
    good.close()


def test_a_spool_that_cannot_be_read_is_no_usage(short: Path, put: Callable[[Path], object]) -> None:
    """Nor a failure that would keep others from being read."""
    folder = short / "usage-spool"
    folder.mkdir()
    put(folder / "w.json")
    assert Spool(short).read(folder / "w.json") is None
