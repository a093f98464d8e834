"""Who runs this command, as manifests and the audit trail of the keys name them."""

import getpass
import os
import socket


def whoami() -> str:
    """`user@host`; the user is the person behind sudo, if there is one."""
    name = f"{_user()}@{socket.gethostname()}"
    # the environment is anybody's: it may not speak to the terminal that shows it later
    return "".join(character if character.isprintable() else "?" for character in name)[:200]


def _user() -> str:
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
