"""How uPlot comes into the package."""

import io
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from config import hatch_build
from config.hatch_build import FILES, PACKAGE, DiffersError, bring, unpacked

_ROOT = Path(__file__).parents[2]


def package(path: Path, content: bytes) -> Path:
    """A package whose every file is `content`."""
    with tarfile.open(path, "w:gz") as archive:
        for member in FILES:
            entry = tarfile.TarInfo(f"package/{member}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def test_a_file_that_is_not_the_pinned_one_ends_the_build(tmp_path: Path) -> None:
    """Whatever a registry hands out."""
    with pytest.raises(DiffersError, match=f"of {PACKAGE} is not the file that is pinned"):
        unpacked(package(tmp_path / "uplot.tgz", b"something else"))


def test_without_npm_the_build_goes_on_without_charts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page then shows its tables."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not bring(tmp_path / "uplot")
    assert not (tmp_path / "uplot").exists()


def test_what_is_there_and_right_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there and altered is not kept."""
    monkeypatch.setattr(hatch_build, "FILES", dict.fromkeys(FILES, sha256(b"right").hexdigest()))
    monkeypatch.setenv("PATH", str(tmp_path))
    place = tmp_path / "uplot"
    place.mkdir()
    for member in FILES:
        (place / Path(member).name).write_bytes(b"right")
    assert bring(place)
    (place / "LICENSE").write_bytes(b"altered")
    assert not bring(place)
    assert not place.exists()


def test_the_library_is_never_committed() -> None:
    """It is in the package alone, with its licence."""
    listed = subprocess.run(["git", "ls-files"], cwd=_ROOT, capture_output=True, text=True, check=True).stdout
    assert not [line for line in listed.splitlines() if "uplot" in line.lower()]
    assert "LICENSE" in FILES
