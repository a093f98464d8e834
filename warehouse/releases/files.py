"""The files of a release: its normalised tables, and whole areas for download."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import msgspec

from warehouse.releases.pointer import Count

# endings of the flat files
FORMATS = ("parquet", "csv.gz")


def table_file(folder: Path, name: str) -> Path:
    """Returns the file of table `name` in the tables folder `folder`."""
    return folder / f"{name}.parquet"


class AreaContents(msgspec.Struct, frozen=True):
    """The contents of one area of a release, as its manifest describes them."""

    rows: Count  # records
    # records that differ from the release before, were added or were removed; None if unknown
    changed: Count | None


class ChangesPage(msgspec.Struct, frozen=True):
    """Some changed records, and the position after them; None after the last."""

    ids: tuple[str, ...]
    following: int | None


def flat_file(area: str, form: str) -> str:
    """Returns the name, in its release, of the file of `area` in one of the `FORMATS`."""
    return f"bulk/{area}.{form}"


def changes_file(area: str) -> str:
    """Returns the name, in its release, of the list of changed records."""
    return f"bulk/{area}.changes"


def write_changes(path: Path, ids: Iterable[str]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in ids))


def read_changes(path: Path, position: int, limit: int) -> ChangesPage:
    """Reads at most `limit` ids from `position` (bytes) on.

    Raises:
        OSError, msgspec.DecodeError: if the file cannot be read.
    """
    with path.open("rb") as stream:
        stream.seek(position)
        ids = tuple(msgspec.json.decode(line, type=str) for line in islice(stream, limit))
        following = stream.tell() if stream.peek(1) else None
    return ChangesPage(ids, following)
