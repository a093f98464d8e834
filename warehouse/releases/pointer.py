"""The pointer of a data folder: which release is current. And the limits of names and numbers in documents."""

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from warehouse.files.remedies import remedy_for
from warehouse.schema.errors import CatalogError, NoSuchReleaseError

# Anything else among the releases (lost+found, a copy) is not a release, and is never retired.
_RELEASE = r"\d{8}T\d{6}Z-[0-9a-f]{1,80}"

# Anyone with write access to the bucket can name releases and files: no name leads out of the folder they go to.
ReleaseId = Annotated[str, Meta(pattern=rf"^{_RELEASE}\Z")]
FilePath = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*\Z", max_length=200)
]
# Limit of any number in a document. Numbers above 64 bits could be read, but not written.
Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Moment = Annotated[datetime, Meta(tz=True)]

_REMEDY = "`forecast extracts rollback RELEASE` writes a new one, and `forecast extracts list` shows the releases"


class Pointer(msgspec.Struct, frozen=True):
    """Which release is current. A new one is written at each switch."""

    release: str
    previous: str | None  # the release that was current before
    switched_at: Moment
    by: str | None = None  # the user who switched


def is_release_id(name: str) -> bool:
    return re.fullmatch(_RELEASE, name) is not None


def unreadable_current(error: CatalogError, alone: Path | None = None) -> CatalogError:
    """Returns the error for a damaged or missing current release. `alone`: its pointer, if no other one is whole."""
    remedy = "`forecast extracts rollback RELEASE` makes another one current"
    if alone is not None:
        remedy = f"no other release is whole: remove {alone}, and publish the last drop again"
    return CatalogError(f"the current release cannot be read: {str(error).partition('; ')[0]}; {remedy}")


def explain_missing_pointer(path: Path) -> str:
    """Returns the message that the pointer is missing, with the remedy."""
    return f"{path} is gone; {_REMEDY}"


def explain_unreadable_pointer(path: Path, error: Exception) -> str:
    """Returns the message that the pointer cannot be read, with the remedy.

    A lack of rights, memory or descriptors does not mean that it is damaged.
    """
    remedy = remedy_for(error) if isinstance(error, OSError) else _REMEDY
    if isinstance(error, PermissionError):
        remedy = "let the user of the service read it"
    elif isinstance(error, IsADirectoryError) or (isinstance(error, OSError) and error.errno is None):
        remedy = f"remove it, then {_REMEDY}"
    return f"{path} cannot be read: {error}{f'; {remedy}' if remedy else ''}"


def no_such_release(release: str, place: object) -> NoSuchReleaseError:
    """Returns the error for a release that `place` (a data folder, or the URL of a store) lacks."""
    return NoSuchReleaseError(f"no release {release} in {place}; `forecast extracts list` shows the releases")
