"""The catalog of releases on disk: their manifests, and the pointer to the current one.

<data>/releases/<id>/       manifest.json, findings.json, serving files, tables/, bulk/
<data>/staging/             the release that a publisher is building
<data>/current.json         the pointer; replaced atomically, under the publish lock
"""

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
from warehouse.files.reading import read_struct
from warehouse.files.remedies import unwritable
from warehouse.releases.files import AreaContents
from warehouse.releases.pointer import (
    Count,
    FilePath,
    Moment,
    Pointer,
    explain_missing_pointer,
    explain_unreadable_pointer,
    is_release_id,
    no_such_release,
    unreadable_current,
)
from warehouse.schema.errors import (
    BusyError,
    CatalogError,
    DamagedError,
    NeedsNewerError,
    NoReleaseError,
    NoSuchReleaseError,
)
from warehouse.schema.findings import Acceptance, ValidationReport

FINDINGS = "findings.json"
_MANIFEST = "manifest.json"

# Part of the digest in every release id. Raise it when the files built from the same tables change.
BUILDER_VERSION = 4

# The format that a version must support to serve a release. Raise it when earlier versions cannot serve new releases.
RELEASE_FORMAT = 1


class TableInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One table of a release, as its manifest describes it."""

    rows: Count
    checksum: str  # of the content, regardless of the order of rows
    files: tuple[str, ...]  # labels of the files that brought it
    carried_from: str | None = None  # the release whose drop brought it, if an earlier one
    as_of: str | None = None  # the latest UPDATED_AT of its rows, as 2026-10-05
    month: Count | None = None  # the MONTH_CODE of its rows, if they have the same


class FileInfo(msgspec.Struct, frozen=True):
    """One file that is served from a release, as its manifest describes it."""

    bytes: Count
    checksum: str  # of the file (`atomic.checksum`)


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The user who published a release, and the drop's paths. Part of its manifest."""

    by: str  # the user
    host: str
    paths: tuple[str, ...]  # the drop's paths on `host`, as passed to publish
    via: Literal["command", "inbox", "demo"]
    delivered: Moment | None = None  # when the inbox took the drop; None if it came another way


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a release. Written once, when the release is built, and lives as long as the release."""

    id: str
    published_at: Moment
    builder_version: Count
    illustrative: bool  # the figures are made up, for demonstration
    attribution: tuple[str, ...]
    areas: tuple[str, ...]
    zip_codes: Count
    cities: Count
    tables: dict[str, TableInfo]
    files: dict[FilePath, FileInfo]
    findings: dict[str, Count]  # how many, by severity
    acceptance: Acceptance | None = None
    origin: Origin | None = None  # None if an earlier version published the release
    previous: str | None = None  # the release that was current when this one was built
    contents: dict[str, AreaContents] = {}  # by area; empty if an earlier version published the release
    format: int = 1  # the `RELEASE_FORMAT` that it needs

    @property
    def delivered(self) -> datetime:
        """When the drop was delivered: the release whose drop was delivered later is newer."""
        return (self.origin and self.origin.delivered) or self.published_at


class NeededFormat(msgspec.Struct, frozen=True):
    """The part of a manifest that every version can read."""

    format: int = 1


class Catalog:
    """The releases of one data folder. Created wherever needed: without state in memory, every call reads the disk."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.releases = data / "releases"
        self.staging = data / "staging"
        self.pointer_file = data / "current.json"

    def pointer(self) -> Pointer | None:
        """Returns the pointer; None before the first publish. Raises CatalogError if it cannot be read."""
        try:
            return read_struct(self.pointer_file, Pointer)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CatalogError(explain_unreadable_pointer(self.pointer_file, error)) from None

    @property
    def lost(self) -> str | None:
        """Why the current release is unknown, with the remedy; None if it is known, or none was published.

        A first publish that was interrupted leaves a release without a `previous` one.
        """
        try:
            there = self.pointer() is not None
        except CatalogError as error:
            return str(error)
        if there or not any(manifest.previous for manifest in self.all()):
            return None
        return explain_missing_pointer(self.pointer_file)

    def known_pointer(self) -> Pointer | None:
        """Returns the pointer; None before the first publish. Raises CatalogError if the current release is unknown."""
        if self.lost is not None:
            raise CatalogError(self.lost)
        return self.pointer()

    def folder(self, release: str) -> Path:
        """Returns the folder of a release, whether it exists or not."""
        return self.releases / release

    def manifest(self, release: str) -> Manifest:
        """Returns the manifest of a release.

        Raises:
            NoSuchReleaseError: if no release has this id.
            NeedsNewerError: if this version cannot read the release.
            CatalogError: if its manifest is damaged.
        """
        path = self.folder(release) / _MANIFEST
        if not release or "/" in release or "\0" in release or release.startswith("."):
            raise NoSuchReleaseError(f"{release!r} is not a release id; `forecast extracts list` shows the releases")
        try:
            check_format(release, read_struct(path, NeededFormat).format)
            manifest = read_struct(path, Manifest)
        except FileNotFoundError:
            raise no_such_release(release, self.data.absolute()) from None
        except OSError as error:
            raise CatalogError(f"{path} cannot be read: {error}") from None
        except ValueError as error:
            raise DamagedError(f"{path} cannot be read: {error}") from None
        if manifest.id != release:
            raise DamagedError(f"{path} belongs to another release, {manifest.id}")
        return manifest

    def findings(self, release: str) -> ValidationReport:
        """Returns the report on the drop of a release. Raises CatalogError if it cannot be read."""
        path = self.folder(release) / FINDINGS
        try:
            return read_struct(path, ValidationReport)
        except (OSError, ValueError) as error:
            raise CatalogError(f"{path} cannot be read: {error}") from None

    def current(self) -> Manifest:
        """Returns the manifest of the current release.

        Raises NoReleaseError before the first publish, and as `known_pointer` and `manifest`.
        """
        pointer = self.known_pointer()
        if pointer is None:
            raise NoReleaseError(
                f"nothing has been published yet in {self.data.absolute()}: run `forecast extracts publish PATH`"
            )
        try:
            return self.manifest(pointer.release)
        except (DamagedError, NoSuchReleaseError) as error:
            raise unreadable_current(error, None if self.all() else self.pointer_file) from None

    def names(self) -> list[str]:
        """Returns the ids of all releases, including damaged ones, newest first."""
        folders = (folder.name for folder in self.releases.glob("*/"))
        return sorted((name for name in folders if is_release_id(name)), reverse=True)

    def all(self) -> list[Manifest]:
        """Returns the manifests of all releases that can be read, newest first."""
        found = []
        for name in self.names():
            try:
                found.append(self.manifest(name))
            except CatalogError:
                continue
        return found

    @contextmanager
    def examining(self) -> Iterator[Path]:
        """Yields an empty temporary folder and removes it at the end. Takes no lock.

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
        """Holds the publish lock as `changing` does; also yields an empty staging folder and removes it at the end."""
        with self.changing():
            # a new name each time: the reader of a crashed publisher may live a moment longer, and writes by name
            folder = self.staging / f"release-{secrets.token_hex(4)}"
            folder.mkdir()
            yield folder

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Holds the publish lock. After the first publish, this works on a full disk.

        Raises:
            BusyError: if another publisher holds the lock.
            CatalogError: if the data folder cannot be written.
        """
        try:
            self._make_folders()
            with exclusive(self.data / "publish.lock") as held:
                if not held:
                    raise BusyError(f"another publisher is at work on {self.data}; retry when it is done")
                self._clear()  # removes what a crashed publisher left
                try:
                    yield
                finally:
                    self._clear()
                    if self.pointer_file.exists():
                        keep_spare(self.pointer_file)
        except OSError as error:
            raise CatalogError(unwritable(self.data, error)) from None

    def adopt(self, staged: Path, manifest: Manifest) -> None:
        """Flushes a finished release to disk and moves it from staging to its place. It is not current yet."""
        (staged / _MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
        sync_tree(staged)
        if not self.folder(manifest.id).exists():  # exists if the same tables were published twice within a second
            staged.rename(self.folder(manifest.id))
        sync(self.releases)

    def switch(self, release: str, by: str | None = None) -> Pointer:
        """Makes `release` current on behalf of the user `by`. The caller holds the publish lock."""
        try:
            before = self.pointer()
        except CatalogError:  # switching repairs a damaged pointer
            before = None
        if before and before.release == release:
            return before
        pointer = Pointer(release, before.release if before else None, datetime.now(UTC), by)
        replace_from_spare(self.pointer_file, msgspec.json.encode(pointer))
        return pointer

    def follow(self, pointer: Pointer) -> None:
        """Replaces the pointer with that of the store of releases. The caller holds the publish lock."""
        replace_from_spare(self.pointer_file, msgspec.json.encode(pointer))

    def verify(self, manifest: Manifest) -> None:
        """Raises CatalogError if a serving file of the release is missing or damaged."""
        for name, info in manifest.files.items():
            path = self.folder(manifest.id) / name
            try:
                intact = path.is_file() and path.stat().st_size == info.bytes and checksum(path) == info.checksum
            except OSError as error:
                raise CatalogError(f"{path} cannot be read: {error.strerror}") from None
            if not intact:
                raise DamagedError(f"{path} is damaged or missing: its checksum differs from the manifest's")

    def _make_folders(self) -> None:
        if not self.releases.is_dir():
            self.releases.mkdir(parents=True, exist_ok=True)
            with suppress(PermissionError):  # we may enter the parent folder, but not read it
                sync(self.data.parent)
        if self.staging.is_symlink():  # its target would be emptied
            raise CatalogError(f"{self.staging} is a link: make it a folder")
        self.staging.mkdir(exist_ok=True)

    def _clear(self) -> None:
        for entry in self.staging.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        clear_aside(self.pointer_file)


def check_format(release: str, needed: int) -> None:
    """Raises NeedsNewerError if this version cannot read a release that needs a format."""
    if needed > RELEASE_FORMAT:
        raise NeedsNewerError(
            f"release {release} needs format {needed}, and this version reads up to {RELEASE_FORMAT}: upgrade it"
        )
