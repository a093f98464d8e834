"""A small disk of its own, which a test can fill."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def mounted(folder: Path, kib: int, *, ext4: bool = False) -> Iterator[Path]:
    """A disk of `kib` KiB in memory, or an ext4 one where that can be made; skips where this user may mount none."""
    folder.mkdir()
    if not (ext4 and _mounted_ext4(folder, kib)) and not _run(
        "mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", folder
    ):
        pytest.skip("this user may not mount a disk of a chosen size")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Leaves not one free block; returns the file that took them."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as stream:
        for block in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    stream.write(bytes(block))
            os.fsync(stream.fileno())
    return filler


def _mounted_ext4(folder: Path, kib: int) -> bool:
    image = folder.with_name(f"{folder.name}.img")
    with image.open("wb") as stream:
        stream.truncate(kib << 10)
    # nothing is kept back for root, whom the tests may run as
    return _run("mkfs.ext4", "-q", "-m", "0", image) and _run("mount", "-o", "loop", image, folder)


def _run(program: str, *arguments: str | Path) -> bool:
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        return False
    return subprocess.run([path, *map(str, arguments)], capture_output=True, check=False).returncode == 0
