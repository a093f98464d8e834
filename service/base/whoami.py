"""Who runs this command, as manifests and the audit trail of the keys name them."""

import getpass
import os
import socket


def whoami() -> str:
    """`user@host (uid N)`; the user is the person behind sudo, if there is one.

    The name is what the environment says, and so what the person says; the number is what the system knows.
    """
    name = f"{_user()}@{socket.gethostname()}"
    # it may not speak to the terminal that shows it later
    shown = "".join(character if character.isprintable() else "?" for character in name)
    return f"{shown[:180]} (uid {os.getuid()})"


def _user() -> str:
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
