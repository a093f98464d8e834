"""How much disk a drop may take, and whose fault it is if that is not enough; here a disk only says how full it is."""

import shutil
from pathlib import Path

import duckdb
import pytest

from tests.support.drops import people, write_drop, write_swelling
from tests.support.publishing import dry_run, publish
from tests.warehouse.helpers import NO_LIMITS
from warehouse.drops import disk_budget
from warehouse.drops.disk_budget import disk_budget_for
from warehouse.drops.messages import ReadRequest, ReadResult
from warehouse.drops.pipeline import read_drop
from warehouse.files.remedies import with_remedy
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog
from warehouse.schema.errors import CatalogError

MB = 1_000_000


@pytest.fixture
def swelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A drop that decodes to 380 MB, where reading has 160 MB of memory."""
    monkeypatch.setattr(disk_budget, "_MEMORY_BYTES", 160 * MB)
    drop = write_drop(tmp_path / "drop")
    write_swelling(drop / "projects.parquet", 14_000)
    return drop


def disk(monkeypatch: pytest.MonkeyPatch, total: int, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(total, total - free, free))


def examined(drop: Path, tmp_path: Path) -> ReadResult:
    out = tmp_path / "staged" / "tables"
    out.mkdir(parents=True)
    return read_drop(ReadRequest(paths=(str(drop),), out=str(out), before=None, limits=NO_LIMITS))


def test_a_drop_that_needs_more_than_the_disk_has_is_refused(
    swelling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it needed and what was free; some of the disk is left to others."""
    monkeypatch.setattr("warehouse.drops.disk_budget.processors", lambda: 2)  # of which each holds rows that spill
    disk(monkeypatch, 112 * MB, 100 * MB)
    outcome = examined(swelling, tmp_path)
    assert outcome.failure is None
    (finding,) = [one for one in outcome.findings if one.rule == "reader-failed"]
    assert finding.message.endswith("needed more than 93.0 MB of disk; 100.0 MB were free")


def test_a_disk_with_less_than_any_drop_may_need_refuses_no_drop(
    swelling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same drop: this is tried again."""
    disk(monkeypatch, 1000 * MB, 90 * MB)
    outcome = examined(swelling, tmp_path)
    assert outcome.findings == ()
    assert outcome.failure is not None
    assert "No space left on device: 90.0 MB are free" in outcome.failure
    with pytest.raises(CatalogError, match=r"No space left.*extracts retire"):
        dry_run(Catalog(tmp_path / "data"), [str(swelling)], PublishOptions(limits=NO_LIMITS))


@pytest.mark.parametrize("step", ["build_release", "compare"])
def test_building_and_comparing_have_their_bounds_too(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A drop that took more than its size explains before the disk was full is refused; else the disk is to blame."""
    options = PublishOptions(limits=NO_LIMITS)
    assert publish(catalog, [str(write_drop(tmp_path / "one"))], options).result == "published"
    drop = write_drop(tmp_path / "two", population=[people("36436", 2023, 1)])
    swollen = 0

    def full(*_: object) -> None:
        (staged,) = catalog.staging.iterdir()
        with (staged / "x").open("wb") as stream:
            stream.write(bytes(swollen))
        said = "No space left on device"
        raise OSError(28, said) if step == "build_release" else duckdb.IOException(said)

    monkeypatch.setattr(f"warehouse.publishing.publish.{step}", full)
    with pytest.raises(CatalogError, match=r"No space left.*extracts retire"):
        publish(catalog, [str(drop)], options)
    swollen = 80 * MB
    outcome = publish(catalog, [str(drop)], options)
    assert outcome.result == "refused"
    assert "MB of disk and needed more" in outcome.report.findings[0].message


def test_holes_in_a_file_are_no_excuse(tmp_path: Path) -> None:
    """Only what is on the disk counts as the size of a drop."""
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(1 << 40)
    files = [tmp_path / "sparse", tmp_path / "gone"]
    assert disk_budget_for(files, tmp_path).allowance == disk_budget_for([], tmp_path).allowance


def test_an_error_of_the_machine_says_what_to_do_about_the_machine() -> None:
    """Instead of what to do about the file that it names."""
    assert with_remedy("Permission denied") == "Permission denied"
    assert with_remedy("Permission denied", "replace it") == "Permission denied; replace it"
    assert "`forecast extracts retire" in with_remedy("x: No space left on device", "replace it")
    assert "ulimit -n" in with_remedy("x: Too many open files", "replace it")
    assert "fs.file-max" in with_remedy("x: Too many open files in system", "replace it")
    assert "for writing" in with_remedy("x: Read-only file system", "replace it")
