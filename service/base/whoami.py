"""Who changes something, and by which way: the names in manifests and the audit trail."""

import getpass
import os
import socket
from typing import Literal

from config.text import printable

Way = Literal["command", "http", "inbox", "instance"]

_LISTENER, _INBOX, INSTANCE = "operator listener", "inbox of", "forecast"
_WAYS: dict[str, Way] = {f"{_LISTENER} (": "http", f"{_INBOX} ": "inbox", f"{INSTANCE} (": "instance"}


def whoami() -> str:
    """Returns `user@host (uid N)` for the user who runs this command: the person behind sudo, if there is one.

    The name comes from the environment, which the person controls; the number comes from the system.
    """
    return f"{printable(f'{_user()}@{socket.gethostname()}', 180)} (uid {os.getuid()})"


def inbox() -> str:
    """Returns the name of the inbox that this process watches."""
    return f"{_INBOX} {whoami()}"


def caller(address: str) -> str:
    """Returns the name of a caller of the operators' listener."""
    return f"{_LISTENER} ({address})"


def way_of(by: str) -> Way:
    """Returns the way by which the actor of this name acts; it can be a command with a made-up name of a user."""
    return next((way for start, way in _WAYS.items() if by.startswith(start)), "command")


def _user() -> str:
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
