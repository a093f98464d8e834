"""The user who runs this command, as named in manifests and the audit trail."""

import getpass
import os
import socket

from config.text import printable


def whoami() -> str:
    """Returns `user@host (uid N)`; the user is the person behind sudo, if there is one.

    The name comes from the environment, which the person controls; the number comes from the system.
    """
    return f"{printable(f'{_user()}@{socket.gethostname()}', 180)} (uid {os.getuid()})"


def _user() -> str:
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
