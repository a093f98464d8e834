"""Who changes something, and by which way: the names in manifests and the audit trail."""

import getpass
import os
import socket
from typing import Literal

from config.text import printable

Way = Literal["command", "http", "page", "inbox", "instance"]

COMMAND_AGENT = "forecast-command"  # User-Agent of commands that call an instance
_LISTENER, _PAGE, _INBOX, INSTANCE = "operator listener", "operator page", "inbox of", "forecast"
# By the way that a caller of the operators' listener takes.
_CALLERS: dict[Way, str] = {"http": _LISTENER, "page": _PAGE, "command": "command over the listener"}
_WAYS: dict[str, Way] = {
    f"{_LISTENER} (": "http",
    "link (": "http",  # the owner of a key, who opens its link
    f"{_PAGE} (": "page",
    f"{_INBOX} ": "inbox",
    f"{INSTANCE} (": "instance",
}


def whoami() -> str:
    """Returns `user@host (uid N)` for the user who runs this command: the person behind sudo, if there is one.

    The name comes from the environment, which the person controls; the number comes from the system.
    """
    return f"{printable(f'{_user()}@{socket.gethostname()}', 180)} (uid {os.getuid()})"


def inbox() -> str:
    """Returns the name of the inbox that this process watches."""
    return f"{_INBOX} {whoami()}"


def caller(address: str, name: str = "", way: Way = "http") -> str:
    """Returns the name of a caller of the operators' listener: `name` is what the caller says."""
    return f"{_CALLERS[way]} ({address}){': ' if name else ''}{name}"


def way_of(by: str) -> Way:
    """Returns the way by which the actor of this name acts; it can be a command with a made-up name of a user."""
    return next((way for start, way in _WAYS.items() if by.startswith(start)), "command")


def _user() -> str:
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
