"""Files of releases by their digest, as the store names them."""

from hashlib import sha256
from pathlib import Path

from warehouse.upstream.documents import FileOfRelease

_BLOCK = 1 << 20


def described(path: Path) -> FileOfRelease:
    """Size and digest of a file. Raises OSError."""
    digest = sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return FileOfRelease(digest.hexdigest(), path.stat().st_size)


def holds(path: Path, file: FileOfRelease) -> bool:
    """Whether `path` is that file, whole. Raises OSError if it cannot be read."""
    try:
        return path.stat().st_size == file.bytes and described(path) == file
    except FileNotFoundError:
        return False
