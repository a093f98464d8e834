"""What another user did to a data folder or an inbox: named, and nothing else is harmed."""

import shutil
from pathlib import Path

import pytest

from service.inbox.folders import InboxFolder
from tests.support.disks import mounted
from tests.support.drops import people, write_drop
from tests.warehouse.helpers import a_month_apart, publish
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.changes import retire_all_but, roll_back
from warehouse.releases.instances import InstanceFile, live_instances
from warehouse.schema.errors import CatalogError, InboxError


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("of somebody else's")
    return tmp_path / "precious"


def test_a_staging_folder_that_is_a_link_empties_no_other(
    catalog: Catalog, drop: Path, precious: Path, first: Manifest
) -> None:
    """It is cleared before each publish: never where a link leads to, however well it was meant."""
    catalog.staging.rmdir()
    catalog.staging.symlink_to(precious)
    for act in (lambda: publish(catalog, drop), lambda: roll_back(catalog), lambda: retire_all_but(catalog, 1)):
        with pytest.raises(CatalogError, match="staging is a link"):
            act()
    assert (precious / "file").exists()


def test_what_is_no_release_is_never_retired(catalog: Catalog, tmp_path: Path) -> None:
    """A disk's lost+found, a copy that somebody made: they count as no release, and stay."""
    with a_month_apart():
        for figure in range(3):
            publish(catalog, write_drop(tmp_path / str(figure), population=[people("36436", 2023, figure)]))
    foreign = [catalog.releases / name for name in ("lost+found", "0 copy of the good one")]
    for folder in foreign:
        folder.mkdir()
    retire_all_but(catalog, 2)
    assert all(folder.is_dir() for folder in foreign)
    assert len(catalog.all()) == 2


def test_a_record_that_is_not_text_is_passed_over(tmp_path: Path) -> None:
    """A damaged record of one instance stops neither publishing nor retiring."""
    file = InstanceFile(tmp_path, "a")
    for damaged in (
        b'{"instance": "\xff", "pid": 1, "host": "h", "operator_url": "u", "releases": []}',
        b"[" * 100_000,
    ):
        (tmp_path / "instances" / "a.json").write_bytes(damaged)
        assert live_instances(tmp_path) == []
    file.close()


@pytest.mark.parametrize("place", ["published", "held", "quarantine", ".claimed"])
def test_an_inbox_on_two_disks_is_reported_before_a_drop_is_claimed(short: Path, place: str) -> None:
    """Drops are moved by renames, which lead to no other disk: one was published again and again, and never moved."""
    (short / "inbox").mkdir()
    inbox = InboxFolder(short / "inbox", marker="_SUCCESS", quiet=30)
    inbox.prepare()
    shutil.rmtree(short / "inbox" / place)
    with mounted(short / "inbox" / place, 1024), pytest.raises(InboxError, match=f"{place} is on another disk"):
        inbox.prepare()


def test_an_inbox_folder_that_is_a_link_is_reported(short: Path, precious: Path) -> None:
    """Whoever may drop may plant a link in the place of ours; what is claimed must not go there."""
    (short / "inbox").mkdir()
    (short / "inbox" / ".claimed").symlink_to(precious)
    with pytest.raises(InboxError, match="is a link"):
        InboxFolder(short / "inbox", marker="_SUCCESS", quiet=30).prepare()
    assert [path.name for path in precious.iterdir()] == ["file"]
