"""How libraries of browsers come into the package."""

import io
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from config.browser_libraries import CHARTS, DIAGRAMS, REFERENCE, DiffersError, NpmPackage, bring, unpacked

_ROOT = Path(__file__).parents[2]


RIGHT = NpmPackage("right@1", "place", {"dist/right.js": sha256(b"right").hexdigest()})

each = pytest.mark.parametrize("package", [CHARTS, REFERENCE, DIAGRAMS], ids=lambda one: one.name)


def packed(path: Path, package: NpmPackage, content: bytes) -> Path:
    """A package whose every file is `content`."""
    with tarfile.open(path, "w:gz") as archive:
        for member in package.files:
            entry = tarfile.TarInfo(f"package/{member}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


@each
def test_a_file_that_is_not_the_pinned_one_ends_the_build(tmp_path: Path, package: NpmPackage) -> None:
    with pytest.raises(DiffersError, match=f"of {package.name} differs from the file pinned"):
        unpacked(package, packed(tmp_path / "package.tgz", package, b"something else"))


def test_the_pinned_files_come_without_their_folders(tmp_path: Path) -> None:
    assert unpacked(RIGHT, packed(tmp_path / "package.tgz", RIGHT, b"right")) == {"right.js": b"right"}


@each
def test_without_npm_the_build_goes_on_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: NpmPackage
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not bring(package, tmp_path)
    assert not (tmp_path / package.place).exists()


def test_what_is_there_and_right_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "place" / "right.js"
    file.parent.mkdir()
    file.write_bytes(b"right")
    assert bring(RIGHT, tmp_path)
    file.write_bytes(b"altered")
    assert not bring(RIGHT, tmp_path)
    assert not file.exists()


@each
def test_the_library_is_never_committed(package: NpmPackage) -> None:
    command = ["git", "ls-files", package.place]
    assert subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout == ""
    assert any("LICENSE" in file for file in package.files)
