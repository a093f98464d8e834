"""Mirrors the store of releases into the data folder, in a process of its own.

The supervisor starts it if `FORECAST_RELEASES_URL` is set. Workers do not talk to it; they follow the data folder.
"""

import logging
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from config.settings import Settings
from service.publishing.releases import forget_releases, open_releases_store
from service.publishing.warming import warm_release
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.upstream.mirror import Mirror

log = logging.getLogger("forecast.mirror")

_POLL_SECONDS = 0.5
_IDLE_SECONDS = 0.2


def _make_mirror(settings: Settings, instance: str) -> Mirror:
    def warm(folder: Path, manifest: Manifest) -> tuple[str, ...]:
        return tuple(finding.message for finding in warm_release(settings, folder, manifest, lambda _: None))

    forget = partial(forget_releases, settings)
    return Mirror(open_releases_store(settings), Catalog(settings.data_path), instance, warm, forget)


def _work(mirror: Mirror) -> None:
    pause = threading.Event()
    while True:
        try:
            worked = mirror.work()
        except Exception:  # an error with one release must not end the mirror
            log.exception("fetch failed; will retry")
            worked = False
        if not worked:
            pause.wait(_IDLE_SECONDS)


def run_mirror(settings: Settings, instance: str, report: Callable[[str | None], None]) -> None:
    """Mirrors until SIGTERM; reports the problem of the store after each look at it."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    mirror = _make_mirror(settings, instance)
    threading.Thread(target=_work, args=(mirror,), daemon=True).start()
    while not stopping.is_set():
        mirror.look()
        report(mirror.problem)
        stopping.wait(_POLL_SECONDS)
    mirror.end()
