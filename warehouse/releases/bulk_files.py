"""What partners download of a release: each area as flat files, and the list of its records that changed.

<release>/bulk/<area>.parquet, <area>.csv.gz     a row for each record
<release>/bulk/<area>.changes                    an id a line, each a JSON string
"""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import msgspec

from warehouse.releases.pointer import Count

# endings of the flat files
FORMATS = ("parquet", "csv.gz")


class AreaContents(msgspec.Struct, frozen=True):
    """What one area of a release holds, as the manifest says it."""

    rows: Count  # records
    changed: (
        Count | None
    )  # how many differ from the release before, or came or went; None if that could not be found out


class ChangesPage(msgspec.Struct, frozen=True):
    """Some changed records, and the position behind them; None behind the last."""

    ids: tuple[str, ...]
    following: int | None


def flat_file(area: str, form: str) -> str:
    """The name, in its release, of the file of `area` in one of the `FORMATS`."""
    return f"bulk/{area}.{form}"


def changes_file(area: str) -> str:
    """The name, in its release, of the list of changed records."""
    return f"bulk/{area}.changes"


def write_changes(path: Path, ids: Iterable[str]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in ids))


def read_changes(path: Path, position: int, limit: int) -> ChangesPage:
    """At most `limit` ids from a position (bytes) on; nothing before it is read.

    Raises:
        OSError, msgspec.DecodeError: if the file cannot be read.
    """
    with path.open("rb") as stream:
        stream.seek(position)
        ids = tuple(msgspec.json.decode(line, type=str) for line in islice(stream, limit))
        following = stream.tell() if stream.peek(1) else None
    return ChangesPage(ids, following)
