"""Whatever goes wrong, nothing is half-done."""

from pathlib import Path

import pytest

from tests.support.drops import LOCATIONS, homes, people, write_drop, write_table
from tests.warehouse.helpers import contents, entries, publish
from warehouse.files.atomic import exclusive
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.changes import roll_back
from warehouse.schema.errors import BusyError, CatalogError, DropError


def test_a_refused_first_drop_leaves_nothing_published(catalog: Catalog, tmp_path: Path) -> None:
    outcome = publish(catalog, write_drop(tmp_path / "bad", population=[people("36436", 2023, -1)]))
    assert (outcome.result, outcome.manifest) == ("refused", None)
    assert contents(catalog.data) == {}


def test_a_drop_that_is_not_there_changes_nothing(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(DropError):
        publish(catalog, tmp_path / "nothing")
    assert not catalog.data.exists()


def test_a_second_publisher_gets_an_error(catalog: Catalog, drop: Path, first: Manifest) -> None:
    before = contents(catalog.data)
    with exclusive(catalog.data / "publish.lock") as held:
        assert held
        with pytest.raises(BusyError, match="another publisher"):
            publish(catalog, drop)
        with pytest.raises(BusyError):
            roll_back(catalog)
    assert contents(catalog.data) == before


def test_what_a_crashed_publisher_left_is_cleared(catalog: Catalog, drop: Path, tmp_path: Path) -> None:
    """Half a release, spilled data, a link, and a pointer that was not renamed any more."""
    half = catalog.staging / "release" / "tables"
    half.mkdir(parents=True)
    (half / "locations.parquet").write_bytes(b"PAR1")
    (catalog.staging / "duckdb_temp_storage-0.tmp").write_bytes(b"x")
    (catalog.staging / "link").symlink_to(tmp_path)
    (catalog.data / ".current.json.4711.new").write_bytes(b"{")
    assert publish(catalog, drop).result == "published"
    assert list(catalog.staging.iterdir()) == []
    there = {path.name for path in catalog.data.iterdir()}
    assert there == {"current.json", ".current.json.spare", "publish.lock", "releases", "staging"}
    assert drop.exists()


@pytest.mark.parametrize("step", ["drops.pipeline.write_tables", "publishing.publish.build_release"])
def test_an_interrupted_publish_leaves_the_release_before(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str, first: Manifest
) -> None:
    """Whatever ends it, even Ctrl-C."""
    before = contents(catalog.data)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    changed = write_drop(tmp_path / "changed", population=[people("36436", 2023, 1)])
    with monkeypatch.context() as patch:
        patch.setattr(f"warehouse.{step}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            publish(catalog, changed)
    assert contents(catalog.data) == before
    assert publish(catalog, changed).result == "published"


def test_a_data_folder_that_cannot_be_written_is_named(tmp_path: Path, drop: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(CatalogError, match="cannot write the data folder"):
        publish(Catalog(tmp_path / "data"), drop)


def test_folders_on_the_path_to_the_data_may_have_any_name(tmp_path: Path) -> None:
    """Carried tables too; and a folder key=value above ours is no column of any table."""
    names = ("it's", "a*b", "a?b", "a[b]c", "two words", "größe–é", '"quoted"', "semi;colon", "{x}", "zip_code=99999")
    catalog = Catalog(tmp_path.joinpath(*names) / "data")
    publish(catalog, write_drop(tmp_path / "drop"))
    outcome = publish(catalog, write_table(tmp_path / "h.parquet", [homes("36436", tot_home_available_2023=9)]))
    assert outcome.result == "published"
    served = entries(catalog)
    assert list(served) == sorted(row["zip_code"] for row in LOCATIONS)
    assert served["36436"]["housing"]["tot_home_available_2023"] == 9
