"""The process that mirrors the store of releases: ``python -m service.instance.mirror_main PARENT CONTROL_FD``.

The supervisor starts it if `FORECAST_RELEASES_URL` is set. Workers do not talk to it; they follow the data folder.
"""

import logging
import signal
import threading
from functools import partial
from pathlib import Path

from service.base.ipc import KeptOrders
from service.instance.kept_main import Control, run
from service.publishing.releases import forget_releases, open_releases_store
from service.publishing.warming import warm_release
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.upstream.mirror import Mirror

log = logging.getLogger("forecast.mirror")

_POLL_SECONDS = 0.5
_IDLE_SECONDS = 0.2


def _make_mirror(orders: KeptOrders) -> Mirror:
    settings = orders.settings

    def warm(folder: Path, manifest: Manifest) -> tuple[str, ...]:
        return tuple(finding.message for finding in warm_release(settings, folder, manifest, lambda _: None))

    forget = partial(forget_releases, settings)
    return Mirror(open_releases_store(settings), Catalog(settings.data_path), orders.instance, warm, forget)


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


def _mirror(control: Control) -> None:
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    mirror = _make_mirror(control.take_orders())
    threading.Thread(target=_work, args=(mirror,), daemon=True).start()
    while not stopping.is_set():
        mirror.look()
        control.report(mirror.problem)
        stopping.wait(_POLL_SECONDS)
    mirror.end()


def main() -> None:
    run("mirror", _mirror)


if __name__ == "__main__":
    main()
