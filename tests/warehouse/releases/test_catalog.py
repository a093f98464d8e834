"""Manifests, the catalog of releases, and the pointer to the current one."""

import resource
import shutil

import pytest

from tests.support.drops import write_drop
from tests.warehouse.helpers import flip_byte, publish
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.schema.errors import CatalogError, NoReleaseError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """A release that no test may change."""
    folder = tmp_path_factory.mktemp("releases")
    catalog = Catalog(folder / "data")
    assert publish(catalog, write_drop(folder / "drop")).result == "published"
    return catalog


@pytest.fixture
def manifest(catalog: Catalog, made: Catalog) -> Manifest:
    """Of the test's own release."""
    shutil.copytree(made.data, catalog.data)
    return catalog.current()


def test_before_the_first_publish_there_is_no_release(catalog: Catalog) -> None:
    assert catalog.pointer() is None
    assert catalog.all() == []
    with pytest.raises(NoReleaseError, match="forecast extracts publish"):
        catalog.current()


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"null", b'{"release": 1}', b'{"release": "\xff"}', b"\x00" * 64, b"[" * 100_000]
)
def test_a_damaged_pointer_is_an_error_that_names_it_and_its_repair(
    catalog: Catalog, manifest: Manifest, damage: bytes
) -> None:
    """Never taken for an empty data folder."""
    (catalog.data / "current.json").write_bytes(damage)
    for ask in (catalog.pointer, catalog.current):
        with pytest.raises(CatalogError, match=r"current\.json cannot be read.*extracts rollback"):
            ask()
    assert catalog.all() == [manifest]


def test_a_pointer_that_is_a_folder_is_an_error(catalog: Catalog) -> None:
    (catalog.data / "current.json").mkdir(parents=True)
    with pytest.raises(CatalogError, match=r"cannot be read.*; remove it, then `forecast extracts rollback RELEASE`"):
        catalog.pointer()


def test_a_pointer_to_a_release_that_is_gone_is_an_error(catalog: Catalog, manifest: Manifest) -> None:
    catalog.folder(manifest.id).rename(catalog.data / "elsewhere")
    with pytest.raises(CatalogError, match=f"no release {manifest.id}"):
        catalog.current()


def test_releases_are_listed_newest_first_and_damaged_ones_left_out(catalog: Catalog, manifest: Manifest) -> None:
    for stamp in ("20200101T000000Z", "20300101T000000Z", "20250101T000000Z"):
        folder = catalog.folder(f"{stamp}-000000000000")
        folder.mkdir()
        text = (catalog.folder(manifest.id) / "manifest.json").read_text()
        (folder / "manifest.json").write_text(text.replace(manifest.id, folder.name))
    (catalog.folder("20250101T000000Z-000000000000") / "manifest.json").write_text("{")
    (catalog.releases / "a-file").write_text("")
    listed = [one.id[:8] for one in catalog.all()]
    assert listed == ["20300101", manifest.id[:8], "20200101"]


def test_a_manifest_in_another_releases_folder_is_an_error(catalog: Catalog, manifest: Manifest) -> None:
    """Its checksums would be held against other files."""
    catalog.folder(manifest.id).rename(catalog.folder("20200101T000000Z-000000000000"))
    with pytest.raises(CatalogError, match=f"another release, {manifest.id}"):
        catalog.manifest("20200101T000000Z-000000000000")


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"id": "\xff"}'])
def test_damaged_records_of_a_release_are_errors(catalog: Catalog, manifest: Manifest, damage: bytes) -> None:
    for name, read in (("manifest.json", catalog.manifest), ("findings.json", catalog.findings)):
        (catalog.folder(manifest.id) / name).write_bytes(damage)
        with pytest.raises(CatalogError, match=name):
            read(manifest.id)


@pytest.mark.parametrize("file", ["forecast.parquet", "forecast.keys"])
@pytest.mark.parametrize("damage", ["flipped", "longer", "missing"])
def test_every_serving_file_is_verified(catalog: Catalog, manifest: Manifest, file: str, damage: str) -> None:
    path = catalog.folder(manifest.id) / file
    if damage == "flipped":
        flip_byte(path)
    elif damage == "longer":
        path.write_bytes(path.read_bytes() + b"\0")
    else:
        path.unlink()
    with pytest.raises(CatalogError, match=file):
        catalog.verify(manifest)


def test_staging_is_empty_at_the_start_and_gone_at_the_end(catalog: Catalog) -> None:
    catalog.staging.mkdir(parents=True)
    (catalog.staging / "left").write_text("")
    with catalog.publishing() as folder:
        assert list(catalog.staging.iterdir()) == [folder]
        (folder / "file").write_text("")
    assert list(catalog.staging.iterdir()) == []


def test_a_full_disk_or_the_like_is_an_error_of_the_catalog(catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="cannot write the data folder"), catalog.publishing():
        raise OSError(28, "No space left on device")
    with catalog.publishing():
        pass


def test_without_a_file_left_to_open_the_limit_is_named_and_not_the_pointer(catalog: Catalog) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        with pytest.raises(CatalogError, match=r"Too many open files.*ulimit -n") as reported:
            catalog.pointer()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "rollback" not in str(reported.value)


def test_an_adopted_release_is_not_current_until_it_is_switched_to(catalog: Catalog, manifest: Manifest) -> None:
    pointer = catalog.pointer()
    with catalog.publishing() as folder:
        (folder / "file").write_text("")
        catalog.adopt(folder, manifest)
    assert catalog.pointer() == pointer
    assert catalog.manifest(manifest.id) == manifest
