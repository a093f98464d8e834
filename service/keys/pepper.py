"""The pepper: a secret kept apart from the key store, whose digests are worthless without it (Decision 10)."""

import hmac
import secrets
from hashlib import sha256
from pathlib import Path

from config.settings import SettingsError
from service.keys.store_identity import SEEN
from warehouse.files import atomic
from warehouse.files.reading import read_regular

_FILE = "pepper"
_LEAST_CHARACTERS = 16
LOST = (
    "the pepper {} is missing, though keys were made with it, and no key can be verified: restore it, or set "
    "FORECAST_KEYS_PEPPER, and start again; or give up those keys with `forecast keys adopt-store`, and start again"
)


def obtain(configured: str | None, data: Path, *, create: bool = True, from_scratch: bool = False) -> bytes:
    """Returns the configured pepper, or that of the data folder, which is created once.

    Without `create`, a data folder without one is unchanged, and the result is a pepper that no key was made with. The
    same if the pepper is lost, unless the keys start `from_scratch`: a new file would hide that the old one is missing.

    Raises:
        SettingsError: if it is too short, or its file cannot be read or created.
    """
    if configured is not None:
        if len(configured) < _LEAST_CHARACTERS:
            raise SettingsError(f"FORECAST_KEYS_PEPPER: needs at least {_LEAST_CHARACTERS} characters")
        return configured.encode()
    path = file_of(data)
    try:
        if not path.exists() and (not create or (is_lost(configured, data) and not from_scratch)):
            return secrets.token_hex(32).encode()
        _create(path)
        pepper = read_regular(path).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read or create the pepper {path}: {error}") from None
    if len(pepper) < _LEAST_CHARACTERS:
        raise SettingsError(f"the pepper {path} is damaged: restore it from a backup, or no key can be verified")
    return pepper.encode()


def is_lost(configured: str | None, data: Path) -> bool:
    """Returns whether the pepper is missing although keys were made with one: the data folder has seen their store."""
    try:
        return configured is None and not file_of(data).exists() and (data / SEEN).exists()
    except OSError:  # unknown
        return False


def file_of(data: Path) -> Path:
    """Returns the path of a data folder's pepper, used if none is configured."""
    return data / _FILE


def fingerprint(pepper: bytes) -> str:
    """Returns a value that identifies a pepper without revealing it."""
    return hmac.new(pepper, b"fingerprint", sha256).hexdigest()[:16]


def cursor_secret(pepper: bytes) -> bytes:
    """Returns the secret that only authenticates page cursors; the same wherever the pepper is the same."""
    return hmac.new(pepper, b"forecast page cursors\n", sha256).digest()


def _create(path: Path) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.create(path, f"{secrets.token_hex(32)}\n".encode(), mode=0o600)  # the second process reads the first one's
