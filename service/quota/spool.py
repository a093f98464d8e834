"""Counts that a worker could not store before it had to stop: a file in the data folder until another stores them.

They keep their worker's id and numbers, so that storing them twice counts them once, whoever does it.
"""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from service.quota.usage import Batch
from service.quota.usage_store import SEQUENCE_SECONDS
from warehouse.durable import write_atomically

log = logging.getLogger("forecast.usage")

FOLDER = "usage-spool"
# Later, the store may have forgotten what was added; four days are left for what was old when it was spooled.
OLDEST = timedelta(seconds=SEQUENCE_SECONDS) - timedelta(days=4)


class Spooled(msgspec.Struct, frozen=True):
    """`keys`: the batches of each key, in the order of their numbers."""

    worker_id: str
    written_at: datetime
    keys: dict[str, tuple[Batch, ...]]


class Spool:
    """`data` is the data folder. Files that cannot be used are set aside, never deleted."""

    def __init__(self, data: Path) -> None:
        self._folder = data / FOLDER

    def write(self, worker_id: str, keys: dict[str, tuple[Batch, ...]]) -> Path:
        """On disk when this returns. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f"{worker_id}.json"
        write_atomically(path, msgspec.json.encode(Spooled(worker_id, datetime.now(UTC), keys)), mode=0o600)
        return path

    def waiting(self) -> Iterator[tuple[Path, Spooled]]:
        """What is there, in no order; what another takes away meanwhile is skipped."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                spooled = msgspec.json.decode(path.read_bytes(), type=Spooled)
            except FileNotFoundError:
                continue
            except OSError as error:
                log.error("%s cannot be read: %s", path, error.strerror)
                continue
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                self._set_aside(path, "damaged", str(error))
                continue
            if datetime.now(UTC) - spooled.written_at > OLDEST:
                self._set_aside(path, "too-old", f"written on {spooled.written_at:%Y-%m-%d}")
                continue
            yield path, spooled

    def _set_aside(self, path: Path, why: str, detail: str) -> None:
        aside = path.with_name(f"{path.name}.{why}")
        log.error("usage in %s is not counted (%s): set aside as %s", path, detail, aside.name)
        try:
            path.rename(aside)
        except OSError as error:
            log.error("%s cannot be set aside: %s", path, error.strerror)
