"""Releases on disk: manifests, the catalog of them, and the pointer to the current one.

<data>/releases/<id>/       manifest.json, findings.json, serving files, tables/
<data>/staging/             what a publisher is building
<data>/current.json         the pointer: replaced whole, under the publish lock
"""

import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from warehouse.files.atomic import (
    checksum,
    clear_aside,
    exclusive,
    keep_spare,
    replace_from_spare,
    sync,
    sync_tree,
)
from warehouse.files.full_disk import with_remedy
from warehouse.files.reading import read_struct
from warehouse.schema.errors import BusyError, CatalogError, NoReleaseError, NoSuchReleaseError
from warehouse.schema.findings import Acceptance, ValidationReport

FINDINGS = "findings.json"
_MANIFEST = "manifest.json"
_UNREADABLE = (OSError, ValueError)

# Whatever else lies among releases, a disk's lost+found or somebody's copy, is none, and is never retired.
_RELEASE = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]+")

# Part of every release id: raised whenever what is built from the same tables changes.
BUILDER_VERSION = 2


class TableInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`carried_from` names the release that brought the table, if the drop of this one did not."""

    rows: int
    checksum: str
    files: tuple[str, ...]
    carried_from: str | None = None


class FileInfo(msgspec.Struct, frozen=True):
    bytes: int
    checksum: str


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Who published a release, and from where: `paths` are those of `host`, and name the drop, not its files."""

    by: str
    host: str
    paths: tuple[str, ...]
    via: Literal["command", "inbox", "demo"]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a release is made of. `illustrative`: its figures are made up, for demonstration. `origin` is unknown of
    releases that earlier versions published.
    """

    id: str
    published_at: datetime
    builder_version: int
    illustrative: bool
    attribution: tuple[str, ...]
    areas: tuple[str, ...]
    zip_codes: int
    cities: int
    tables: dict[str, TableInfo]
    files: dict[str, FileInfo]
    findings: dict[str, int]
    acceptance: Acceptance | None = None
    origin: Origin | None = None


class Pointer(msgspec.Struct, frozen=True):
    """The current release, and who made it so."""

    release: str
    previous: str | None
    switched_at: datetime
    by: str | None = None


class Catalog:
    """The releases of one data folder."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.releases = data / "releases"
        self.staging = data / "staging"
        self.pointer_file = data / "current.json"

    def pointer(self) -> Pointer | None:
        """None before the first publish. Raises CatalogError if the pointer cannot be read."""
        try:
            return read_struct(self.pointer_file, Pointer)
        except FileNotFoundError:
            return None
        except _UNREADABLE as error:
            remedy = "`forecast extracts rollback RELEASE` writes it anew"
            raise CatalogError(f"{self.pointer_file} cannot be read: {error}; {remedy}") from None

    def folder(self, release: str) -> Path:
        return self.releases / release

    def manifest(self, release: str) -> Manifest:
        path = self.folder(release) / _MANIFEST
        if not release or "/" in release or "\0" in release or release.startswith("."):
            raise NoSuchReleaseError(f"{release!r} is no release id; `forecast extracts list` shows those there are")
        try:
            manifest = read_struct(path, Manifest)
        except FileNotFoundError:
            raise NoSuchReleaseError(
                f"no release {release} in {self.data.absolute()}; `forecast extracts list` shows those there are"
            ) from None
        except _UNREADABLE as error:
            raise CatalogError(f"{path} cannot be read: {error}") from None
        if manifest.id != release:
            raise CatalogError(f"{path} is that of another release, {manifest.id}")
        return manifest

    def findings(self, release: str) -> ValidationReport:
        path = self.folder(release) / FINDINGS
        try:
            return read_struct(path, ValidationReport)
        except _UNREADABLE as error:
            raise CatalogError(f"{path} cannot be read: {error}") from None

    def current(self) -> Manifest:
        """Raises NoReleaseError before the first publish."""
        pointer = self.pointer()
        if pointer is None:
            raise NoReleaseError(
                f"nothing was published yet in {self.data.absolute()}: run `forecast extracts publish PATH`"
            )
        return self.manifest(pointer.release)

    def names(self) -> list[str]:
        """The ids of all releases, damaged ones too, newest first."""
        folders = (folder.name for folder in self.releases.glob("*/"))
        return sorted((name for name in folders if _RELEASE.fullmatch(name)), reverse=True)

    def has(self, release: str) -> bool:
        return release in self.names()

    def all(self) -> list[Manifest]:
        """Every readable release, newest first; a damaged one is left out."""
        found = []
        for name in self.names():
            try:
                found.append(self.manifest(name))
            except CatalogError:
                continue
        return found

    @contextmanager
    def examining(self) -> Iterator[Path]:
        """Yields an empty folder of its own, removed again at the end; takes no lock.

        Raises:
            CatalogError: if the folder cannot be written.
        """
        try:
            with tempfile.TemporaryDirectory(prefix="forecast-check-") as folder:
                yield Path(folder)
        except OSError as error:
            raise CatalogError(f"cannot write a temporary folder: {error.strerror or error}") from None

    @contextmanager
    def publishing(self) -> Iterator[Path]:
        """As `changing`, and yields an empty staging folder, removed again at the end."""
        with self.changing():
            # a name of its own: a crashed publisher's reader may live a moment longer, and writes by name
            folder = self.staging / f"release-{secrets.token_hex(4)}"
            folder.mkdir()
            yield folder

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Holds the publish lock. Needs no space on a disk on which something was published before.

        Raises:
            BusyError: if another publisher holds the lock.
            CatalogError: if the data folder cannot be written.
        """
        try:
            self._make_folders()
            with exclusive(self.data / "publish.lock") as held:
                if not held:
                    raise BusyError(f"another publisher is at work on {self.data}; try again when it is done")
                self._clear()  # what a crashed publisher left
                try:
                    yield
                finally:
                    self._clear()
                    if self.pointer_file.exists():
                        keep_spare(self.pointer_file)
        except OSError as error:
            raise CatalogError(with_remedy(self._unwritable(error))) from None

    def adopt(self, staged: Path, manifest: Manifest) -> None:
        """Moves a finished release from staging to its place, flushed to disk. It is not current yet."""
        (staged / _MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
        sync_tree(staged)
        if not self.folder(manifest.id).exists():  # the same tables, published twice within a second
            staged.rename(self.folder(manifest.id))
        sync(self.releases)

    def switch(self, release: str, by: str | None = None) -> Pointer:
        """Makes `release` current, for `by`; the caller holds the publish lock."""
        try:
            before = self.pointer()
        except CatalogError:  # this is how a damaged one is repaired
            before = None
        if before and before.release == release:
            return before
        pointer = Pointer(release, before.release if before else None, datetime.now(UTC), by)
        replace_from_spare(self.pointer_file, msgspec.json.encode(pointer))
        return pointer

    def verify(self, manifest: Manifest) -> None:
        """Raises CatalogError if a serving file of the release is missing or is not what was built."""
        for name, info in manifest.files.items():
            path = self.folder(manifest.id) / name
            try:
                intact = path.stat().st_size == info.bytes and checksum(path) == info.checksum
            except OSError as error:
                raise CatalogError(f"{path} cannot be read: {error.strerror}") from None
            if not intact:
                raise CatalogError(f"{path} is damaged: its checksum differs from the manifest's")

    def _unwritable(self, error: OSError) -> str:
        inside = error.filename if isinstance(error.filename, str) and error.filename != str(self.data) else None
        where = f"{self.data} ({inside})" if inside else str(self.data)
        return f"cannot write the data folder {where}: {error.strerror or error}"

    def _make_folders(self) -> None:
        if not self.releases.is_dir():
            self.releases.mkdir(parents=True, exist_ok=True)
            with suppress(PermissionError):  # a parent that may be passed, but not read
                sync(self.data.parent)
        if self.staging.is_symlink():  # all that is in it is removed
            raise CatalogError(f"{self.staging} is a link: make it a folder")
        self.staging.mkdir(exist_ok=True)

    def _clear(self) -> None:
        for entry in self.staging.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        clear_aside(self.pointer_file)
