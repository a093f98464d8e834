"""Brings uPlot, which draws the operators' charts, into the package when it is built or installed.

From its npm package, by npm: of whatever registry that is set up for. The digests pin every byte. Without npm the
service is complete but for the charts; the page then shows its tables alone, and says so.
"""

import shutil
import subprocess
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "service/operators/page/uplot"
PACKAGE = "uplot@1.6.32"
# member of the package -> its SHA-256
FILES = {
    "dist/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "dist/uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
_SECONDS = 60


class DiffersError(Exception):
    """A file is not the one that was pinned."""


class ChartsHook(BuildHookInterface[Any]):
    """What hatchling calls before it builds."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        if bring(Path(self.root) / PLACE):
            build_data["artifacts"].append(f"{PLACE}/*")  # git ignores them, the package has them


def bring(place: Path) -> bool:
    """Puts the pinned files into `place` unless they are there; whether they are. Raises DiffersError."""
    if all(_digest(place / Path(member).name) == digest for member, digest in FILES.items()):
        return True
    shutil.rmtree(place, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            command = ["npm", "pack", PACKAGE, "--silent", "--pack-destination", folder]
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS, cwd=folder)  # noqa: S603 - constants
        except (OSError, subprocess.SubprocessError):
            return False
        (package,) = Path(folder).glob("*.tgz")
        found = unpacked(package)
    place.mkdir(parents=True)
    for name, content in found.items():
        (place / name).write_bytes(content)
    return True


def unpacked(package: Path) -> dict[str, bytes]:
    """The pinned files of `package` by name. Raises DiffersError before anything of it is used."""
    found = {}
    with tarfile.open(package) as archive:
        for member, digest in FILES.items():
            file = archive.extractfile(f"package/{member}")
            content = b"" if file is None else file.read()
            if sha256(content).hexdigest() != digest:
                raise DiffersError(f"{member} of {PACKAGE} is not the file that is pinned in config/hatch_build.py")
            found[Path(member).name] = content
    return found


def _digest(file: Path) -> str | None:
    return sha256(file.read_bytes()).hexdigest() if file.is_file() else None
