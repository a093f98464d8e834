"""Libraries of browsers that the pages load, from npm.

uPlot draws the operators' charts. In the documentation, RapiDoc lets partners try requests, and Mermaid draws pictures.

npm fetches their packages from the registry that it is configured for. The digests pin every byte. Without npm, the
operators' page shows its tables, and the documentation has neither the API reference nor pictures.
"""

import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple


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
    "rapidoc@9.3.8",
    "docs/partners/rapidoc",
    {
        "dist/rapidoc-min.js": "affbd173a65e870e18f392cca963113bcdafb6e50e88cd2f6a834a65b22db94d",
        "dist/rapidoc-min.js.LICENSE.txt": "b6366d212427ca41732dd93ce56a47ceaf7a0902edc2e90b22ca6a9d6feff20e",
        "LICENSE.txt": "92682ac573adb5e1357f1f41dd0eaa2f0e9dd6116b569218978c2469c1cd085c",
    },
)
DIAGRAMS = NpmPackage(
    "mermaid@11.17.2",
    "docs/design/mermaid",
    {
        "dist/mermaid.min.js": "581ed7d74bd9048d0e3a91363927d72ef22942d7722546b27f7cc29e35390eb8",
        "LICENSE": "ec9fb67dcb25eccc416ed56e1aab819222c805a2a4bfe4cb19e7556bf2ffde80",
    },
)
_SECONDS = 60


class DiffersError(Exception):
    """A file differs from the pinned one."""


def bring_all(packages: Iterable[NpmPackage], root: Path) -> None:
    """Does what `bring` does, at the same time for all."""
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda package: bring(package, root), packages))


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
                raise DiffersError(
                    f"{member} of {package.name} differs from the file pinned in config/browser_libraries.py"
                )
            found[Path(member).name] = content
    return found


def _digest(file: Path) -> str | None:
    return sha256(file.read_bytes()).hexdigest() if file.is_file() else None
