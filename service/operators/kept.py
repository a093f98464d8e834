"""The history, events and rankings of an instance in its data folder, so that a restart does not lose them.

Each file is at most some megabytes, and replaced atomically. A damaged one is ignored.
"""

import logging
from pathlib import Path

import msgspec

from service.operators.history import Mark, Span
from service.operators.overview import Event
from service.operators.ranking import KeptRankings
from warehouse.files.atomic import write_atomically

log = logging.getLogger("forecast.operators")

SAVE_SECONDS = 60.0
MOST_EVENTS = 500
_MOST_BYTES = 16 << 20


class Kept(msgspec.Struct, frozen=True):
    """What one instance remembers. Times are monotonic seconds; `offset` converts them to Unix seconds."""

    offset: float
    marks: dict[Span, list[Mark]]
    events: tuple[Event, ...]
    rankings: KeptRankings


def kept_file(data: Path, operator_port: int) -> Path:
    """Returns the path of the file. Instances on one data folder have different operators' ports, or share it."""
    return data / f"operators-{operator_port}.history"


def write_kept(path: Path, kept: Kept) -> None:
    """Raises OSError."""
    write_atomically(path, msgspec.msgpack.encode(kept))


def read_kept(path: Path) -> Kept | None:
    """Returns what the last instance remembered; None if there is no usable file."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("it is too large")
        return msgspec.msgpack.decode(path.read_bytes(), type=Kept)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # also msgspec.DecodeError
        log_unusable(path, error)
        return None


def log_unusable(path: Path, error: Exception) -> None:
    log.warning("the history starts empty: %s cannot be used: %s", path, error)
