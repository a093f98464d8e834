"""Adds two browser libraries to the package when it is built or installed.

uPlot draws the operators' charts; Swagger UI lets partners try requests.

npm fetches their packages from the registry that it is configured for. The digests pin every byte. Without npm only
these two are missing: the operators' page shows its tables, the reference its text.
"""

import shutil
import subprocess
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NpmPackage(NamedTuple):
    """Files of an npm package: the folder for them, and each member's SHA-256."""

    name: str  # with the version
    place: str
    files: dict[str, str]


CHARTS = NpmPackage(
    "uplot@1.6.32",
    "service/operators/page/uplot",
    {
        "dist/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
        "dist/uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
        "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    },
)
REFERENCE = NpmPackage(
    "swagger-ui-dist@5.35.0",
    "service/http/documentation/swagger",
    {
        "swagger-ui-bundle.js": "e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2",
        "swagger-ui.css": "5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d",
        "swagger-ui-bundle.js.LICENSE.txt": "37eb6e7e59aed57b2c1acf076574b818ea07b74265717e0bd67b59e0baf9abbb",
        "LICENSE": "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
        "NOTICE": "0d20d1adef18aee3f40dd258172155521ce702ac445cb5f7b7d60ed32dad2fb2",
    },
)
_SECONDS = 60


class DiffersError(Exception):
    """A file differs from the pinned one."""


class BrowserLibrariesHook(BuildHookInterface[Any]):
    """The hook that hatchling calls before it builds."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        for package in (CHARTS, REFERENCE):
            if bring(package, Path(self.root)):
                build_data["artifacts"].append(f"{package.place}/*")  # git ignores them, but the package includes them


def bring(package: NpmPackage, root: Path) -> bool:
    """Puts the pinned files below `root` unless they exist. Returns whether they exist now. Raises DiffersError."""
    place = root / package.place
    if all(_digest(place / Path(member).name) == digest for member, digest in package.files.items()):
        return True
    shutil.rmtree(place, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            command = ["npm", "pack", package.name, "--silent", "--pack-destination", folder]
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS, cwd=folder)  # noqa: S603 - constants
        except (OSError, subprocess.SubprocessError):
            return False
        (packed,) = Path(folder).glob("*.tgz")
        found = unpacked(package, packed)
    place.mkdir(parents=True)
    for name, content in found.items():
        (place / name).write_bytes(content)
    return True


def unpacked(package: NpmPackage, packed: Path) -> dict[str, bytes]:
    """Returns the pinned files by name. Raises DiffersError before any file is used."""
    found = {}
    with tarfile.open(packed) as archive:
        for member, digest in package.files.items():
            file = archive.extractfile(f"package/{member}")
            content = b"" if file is None else file.read()
            if sha256(content).hexdigest() != digest:
                raise DiffersError(f"{member} of {package.name} differs from the file pinned in config/hatch_build.py")
            found[Path(member).name] = content
    return found


def _digest(file: Path) -> str | None:
    return sha256(file.read_bytes()).hexdigest() if file.is_file() else None
