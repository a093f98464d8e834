"""The process that mirrors the store of releases: ``python -m service.instance.mirror_main PARENT CONTROL_FD``.

The supervisor starts it if `FORECAST_RELEASES_URL` is set. Workers do not talk to it; they follow the data folder.
"""

import logging
import os
import signal
import threading
from functools import partial
from pathlib import Path

from config.processes import name_process
from service.base import logs
from service.base.ipc import MirrorOrders
from service.instance.kept_main import Control, report_changes
from service.publishing.releases import forget_releases, open_releases_store
from service.publishing.warming import warm_release
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.upstream.mirror import Mirror

log = logging.getLogger("forecast.mirror")

_POLL_SECONDS = 0.5
_IDLE_SECONDS = 0.2


def _make_mirror(orders: MirrorOrders) -> Mirror:
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


def _run(control: Control) -> None:
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    orders = control.take_orders(MirrorOrders)
    logs.configure("json" if orders.log_json else "text", orders.settings.log_level)
    mirror = _make_mirror(orders)
    threading.Thread(target=_work, args=(mirror,), daemon=True).start()
    report = report_changes(control.report)
    while not stopping.is_set():
        mirror.look()
        report(mirror.problem)
        stopping.wait(_POLL_SECONDS)
    mirror.end()


def main() -> None:
    name_process("mirror")
    _run(Control())
    logging.shutdown()
    os._exit(0)  # threads that wait for the store cannot be stopped


if __name__ == "__main__":
    main()
